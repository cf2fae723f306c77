{{- define "colloquy.fullname" -}}
{{- if contains "colloquy" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-colloquy" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "colloquy.serviceAccount" -}}
{{- if .Values.serviceAccount.name -}}
{{- .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.create | ternary (include "colloquy.fullname" .) "default" -}}
{{- end -}}
{{- end -}}

{{- define "colloquy.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "colloquy.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: colloquy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Labels that never change: (dict "root" $ "name" service) */}}
{{- define "colloquy.selector" -}}
app.kubernetes.io/name: colloquy
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{/* One section of the configuration file: (list name settings) */}}
{{- define "colloquy.section" -}}
[{{ index . 0 }}]
{{- range $key, $value := index . 1 }}
{{- if kindIs "string" $value }}
{{ $key }} = {{ $value | toJson }}
{{- else if kindIs "float64" $value }}
{{ $key }} = {{ eq $value (floor $value) | ternary (int64 $value | toString) ($value | toString) }}
{{- else }}
{{ $key }} = {{ $value }}
{{- end }}
{{- end }}
{{ end -}}

{{/* The configuration file of every process. */}}
{{- define "colloquy.config" -}}
{{- $server := dict "grpc_listen" "0.0.0.0:7100" "http_listen" "0.0.0.0:7180" "admin_listen" "0.0.0.0:7190" -}}
{{- include "colloquy.section" (list "server" (merge $server (.Values.config.server | default dict))) }}
{{ range $name, $settings := omit .Values.config "server" -}}
{{ include "colloquy.section" (list $name $settings) }}
{{ end -}}
[services]
{{- range $name, $_ := .Values.services }}
{{ $name }} = "http://{{ include "colloquy.fullname" $ }}-{{ $name }}.{{ $.Release.Namespace }}.svc:7100"
{{- end }}
{{ end -}}

{{- define "colloquy.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "colloquy.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
