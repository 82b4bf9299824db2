{{- define "agent.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "agent.labels" -}}
app.kubernetes.io/name: brewbench-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
