{{/* A CronJob has at most 52 characters. */}}
{{- define "server.name" -}}
{{- .Release.Name | trunc 44 | trimSuffix "-" -}}
{{- end -}}

{{- define "server.labels" -}}
app.kubernetes.io/name: brewbench-server
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "server.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* What every Pod of the chart may do. */}}
{{- define "server.pod" -}}
automountServiceAccountToken: false
# A Service of this name would add variables that begin with BREWBENCH_.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  fsGroup: 65532
  # Files keep the permissions that the server gave them.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "server.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}
