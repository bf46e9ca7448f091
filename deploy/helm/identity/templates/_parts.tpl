{{/* What several objects have in common. */}}

{{- define "identity.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "identity.labels" -}}
app.kubernetes.io/name: identity
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* (list . "login"): the pods of one component. */}}
{{- define "identity.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: identity
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "identity.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* Of a pod: a user that is not root, and no token of the cluster. */}}
{{- define "identity.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Another Secret is another pod, at the next `helm upgrade`. */}}
{{- define "identity.annotations" -}}
checksum/secret: {{ (lookup "v1" "Secret" .Release.Namespace .Values.secretName).data | toJson | sha256sum }}
{{- with .Values.podAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "identity.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* (list . "login"): spread over nodes and zones as far as there are any. */}}
{{- define "identity.spread" -}}
topologySpreadConstraints:
  {{- $selector := include "identity.selector" . }}
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- $selector | nindent 8 }}
  {{- end }}
{{- end }}

{{/* (list . "login" "DATABASE_URL"): what a process serves, settings, and secrets as files. */}}
{{- define "identity.settings" -}}
{{- $root := index . 0 -}}
image: {{ include "identity.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
{{ include "identity.container" $root }}
env:
  - {name: SERVE, value: {{ index . 1 }}}
  {{- range $name, $value := $root.Values.settings }}
  - {name: {{ $name }}, value: {{ $value | toString | quote }}}
  {{- end }}
  {{- range list "DATABASE_URL" "SECRET_KEY" "KEY_ENCRYPTION_KEYS" }}
  - {name: {{ . }}_FILE, value: /run/secrets/identity/{{ . }}}
  {{- end }}
  {{- if $root.Values.secretKeyFallbacks }}
  - {name: SECRET_KEY_FALLBACKS_FILE, value: /run/secrets/identity/SECRET_KEY_FALLBACKS}
  {{- end }}
  {{- if $root.Values.settings.MTLS_URL }}
  - {name: PROXY_SECRET_FILE, value: /run/secrets/identity/PROXY_SECRET}
  {{- end }}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets/identity, readOnly: true}
  - {name: data, mountPath: /var/lib/identity}
  - {name: temporary, mountPath: /tmp}
{{- end }}

{{/* (list . "DATABASE_URL" "1Gi"): the volumes of that container. */}}
{{- define "identity.volumes" -}}
{{- $root := index . 0 -}}
volumes:
  - name: secrets
    secret:
      secretName: {{ $root.Values.secretName }}
      items:
        - {key: {{ index . 1 }}, path: DATABASE_URL}
        - {key: SECRET_KEY, path: SECRET_KEY}
        - {key: KEY_ENCRYPTION_KEYS, path: KEY_ENCRYPTION_KEYS}
        {{- if $root.Values.secretKeyFallbacks }}
        - {key: SECRET_KEY_FALLBACKS, path: SECRET_KEY_FALLBACKS}
        {{- end }}
        {{- if $root.Values.databaseAuthority }}
        - {key: DATABASE_CA, path: DATABASE_CA}
        {{- end }}
        {{- if $root.Values.settings.MTLS_URL }}
        - {key: PROXY_SECRET, path: PROXY_SECRET}
        {{- end }}
  - name: data
    emptyDir: {sizeLimit: {{ index . 2 }}}
  - name: temporary
    emptyDir: {sizeLimit: 256Mi}
{{- end }}

{{/* Probes of a node: only one that does not answer at all is started again. */}}
{{- define "identity.probes" -}}
ports:
  - {name: http, containerPort: 8000}
startupProbe:
  httpGet: {path: /health/live, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:  # through its socket: a node that accepts no connection for a while is not dead
  exec: {command: [python, -I, deploy/container/is_ready.py, /health/live]}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /health/ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 4
  failureThreshold: 2
lifecycle:
  # Others hear that this node goes before it refuses connections.
  preStop:
    exec: {command: [sleep, "5"]}
{{- end }}

{{/* (dict "root" . "name" "nightly" "schedule" "…" "command" list): work that is done now and then. */}}
{{- define "identity.cronjob" -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "identity.name" .root }}-{{ .name }}
  labels: {{- include "identity.labels" .root | nindent 4 }}
spec:
  schedule: {{ .schedule | quote }}
  timeZone: {{ .root.Values.settings.TIME_ZONE | default "Asia/Kuala_Lumpur" }}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: {{ .deadline }}
  jobTemplate:
    spec:
      backoffLimit: 2
      ttlSecondsAfterFinished: 86400
      template:
        metadata:
          labels: {{- include "identity.selector" (list .root "job") | nindent 12 }}
        spec:
          {{- include "identity.pod" .root | nindent 10 }}
          restartPolicy: Never
          containers:
            - name: {{ .name }}
              {{- include "identity.settings" (list .root "staff") | nindent 14 }}
              command: {{- toYaml .command | nindent 16 }}
              resources: {{- toYaml .root.Values.jobs.resources | nindent 16 }}
          {{- include "identity.volumes" (list .root "DATABASE_URL" "256Mi") | nindent 10 }}
{{- end }}
