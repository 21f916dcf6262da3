"""Makes the dashboards in ``dashboards/grafana`` from the metric table.

A dashboard is sections of panels. What a panel asks Prometheus is built from the families of
`gilscope.metrics.table`, so it can name no metric, type or label that is not exported.
"""
