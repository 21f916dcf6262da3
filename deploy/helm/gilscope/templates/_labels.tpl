{{- define "gilscope.selector" -}}
app.kubernetes.io/name: gilscope
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gilscope.labels" -}}
{{ include "gilscope.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gilscope.name" -}}
{{- if contains "gilscope" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}-gilscope
{{- end }}
{{- end }}

{{- /* What the pods of sidecars have to carry, for the PodMonitor. */}}
{{- define "gilscope.podLabels" -}}
gilscope: sidecar
{{- end }}
