{{- /*
The agent as an item of `initContainers`, where it is a sidecar, or of `containers`. In the pod template of a chart that depends on this one:

    shareProcessNamespace: true
    initContainers:
      {{- include "gilscope.container" .Subcharts.gilscope | nindent 6 }}
    volumes:
      {{- include "gilscope.volumes" .Subcharts.gilscope | nindent 6 }}

with gilscope.podLabels among the labels, if a PodMonitor is to find the pods.
*/}}
{{- define "gilscope.container" -}}
{{- $onNode := eq .Values.mode "daemonset" -}}
{{- $port := ternary "metrics" "gilscope" $onNode -}}
- name: gilscope
  {{- if not $onNode }}
  # A sidecar of Kubernetes: it starts before the server, and ends after it.
  restartPolicy: Always
  {{- end }}
  image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - serve
    - --listen
    - "0.0.0.0:{{ .Values.port }}"
    {{- toYaml .Values.args | nindent 4 }}
  ports:
    - name: {{ $port }}
      containerPort: {{ .Values.port }}
  env:
    - name: XDG_CACHE_HOME
      value: /var/cache
    {{- with .Values.extraEnv }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  securityContext:
    runAsUser: 0
    runAsNonRoot: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add:
        {{- toYaml (ternary (concat .Values.capabilities .Values.daemonsetCapabilities) .Values.capabilities $onNode) | nindent 8 }}
    seccompProfile:
      {{- toYaml .Values.seccompProfile | nindent 6 }}
    {{- if and $onNode .Values.appArmorProfile }}
    appArmorProfile:
      {{- toYaml .Values.appArmorProfile | nindent 6 }}
    {{- end }}
  livenessProbe:
    httpGet:
      path: /healthz
      port: {{ $port }}
      scheme: {{ .Values.healthScheme }}
    # Time to search interpreters, and with BCC to compile the probes.
    initialDelaySeconds: 60
    periodSeconds: 10
    timeoutSeconds: 5
  resources:
    {{- toYaml .Values.resources | nindent 4 }}
  volumeMounts:
    - name: gilscope-tmp
      mountPath: /tmp
    {{- if and $onNode .Values.cacheHostPath }}
    - name: gilscope-cache
      mountPath: /var/cache/gilscope
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "gilscope.volumes" -}}
- name: gilscope-tmp
  emptyDir: {}
{{- if and (eq .Values.mode "daemonset") .Values.cacheHostPath }}
- name: gilscope-cache
  hostPath:
    path: {{ .Values.cacheHostPath }}
    type: DirectoryOrCreate
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
