{{/*
The manifests of this chart are those of kustomize, below files/: no template here has a copy of one.
What kustomize does with them, these templates do for the part of it that is used there: resources,
patches (JSON6902 with add and replace, and strategic merges), ConfigMaps of components, components,
namespace and labels. What is
not known here fails. A dict `all` has the objects so far, in its list `objects`; templates change it and
print nothing.
*/}}

{{/* Read the text of a file; the namespace in it becomes the release's. (root, path) */}}
{{- define "numafit.text" -}}
{{- $text := .root.Files.Get (printf "files/%s" .path) }}
{{- if not $text }}{{ fail (printf "files/%s is not there, or empty" .path) }}{{ end }}
{{- $text | replace "numafit-system" .root.Release.Namespace }}
{{- end }}

{{/* Read the objects of a file. (root, all, path) */}}
{{- define "numafit.read" -}}
{{- range $text := splitList "\n---\n" (include "numafit.text" .) }}
{{- $object := fromYaml $text }}
{{- if not $object.kind }}{{ fail (printf "files/%s: %s" $.path (default "an object without a kind" $object.Error)) }}{{ end }}
{{- $_ := set $.all "objects" (append $.all.objects $object) }}
{{- end }}
{{- end }}

{{/* Apply a kustomization.yaml: its resources that are files, a component's ConfigMaps, its patches. (root, all, folder) */}}
{{- define "numafit.apply" -}}
{{- $kustomization := include "numafit.text" (dict "root" .root "path" (printf "%s/kustomization.yaml" .folder)) | fromYaml }}
{{- range $file := $kustomization.resources }}
{{- if hasSuffix ".yaml" $file }}
{{- $_ := include "numafit.read" (dict "root" $.root "all" $.all "path" (printf "%s/%s" $.folder $file)) }}
{{- end }}
{{- end }}
{{- if hasPrefix "components/" .folder }}
{{- range $config := $kustomization.configMapGenerator }}
{{- $data := dict }}
{{- range $file := $config.files }}
{{- $_ := set $data $file (include "numafit.text" (dict "root" $.root "path" (printf "%s/%s" $.folder $file))) }}
{{- end }}
{{- $metadata := dict "name" $config.name "namespace" $config.namespace "labels" $config.options.labels }}
{{- $_ := set $.all "objects" (append $.all.objects (dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" $metadata "data" $data)) }}
{{- end }}
{{- end }}
{{- range $patch := $kustomization.patches }}
{{- $object := include "numafit.find" (dict "all" $.all "kind" $patch.target.kind "name" $patch.target.name) | fromYaml }}
{{- $_ := include "numafit.patch" (dict "object" (index $.all.objects (int $object.index)) "patch" $patch.patch) }}
{{- end }}
{{- end }}

{{/* Print where an object is in the list, as `index: N`. (all, kind, name) */}}
{{- define "numafit.find" -}}
{{- $found := list }}
{{- range $i, $object := .all.objects }}
{{- if and (eq $object.kind $.kind) (eq $object.metadata.name $.name) }}{{ $found = append $found $i }}{{ end }}
{{- end }}
{{- if ne (len $found) 1 }}{{ fail (printf "there are %d objects %s %s" (len $found) .kind .name) }}{{ end -}}
index: {{ first $found }}
{{- end }}

{{/* Change an object by the text of a patch. (object, patch) */}}
{{- define "numafit.patch" -}}
{{- if hasPrefix "- " (trim .patch) }}
{{- range $step := fromYamlArray .patch }}
{{- $_ := include "numafit.step" (dict "object" $.object "step" $step) }}
{{- end }}
{{- else }}
{{- $_ := include "numafit.merge" (dict "to" .object "from" (fromYaml .patch)) }}
{{- end }}
{{- end }}

{{/* Do one step of a JSON6902 patch: what it changes is a key of a map, or the end of a list. (object, step) */}}
{{- define "numafit.step" -}}
{{- if not (has .step.op (list "add" "replace")) }}{{ fail (printf "a patch's op is %s" .step.op) }}{{ end }}
{{- $keys := list }}
{{- range $key := splitList "/" (trimPrefix "/" .step.path) }}
{{- $keys = append $keys ($key | replace "~1" "/" | replace "~0" "~") }}
{{- end }}
{{- $key := last $keys }}
{{- $ways := initial $keys }}
{{- $end := eq $key "-" }}
{{- if $end }}{{ $key = last $ways }}{{ $ways = initial $ways }}{{ end }}
{{- $map := .object }}
{{- range $way := $ways }}
{{- if kindIs "slice" $map }}{{ $map = index $map (int $way) }}{{ else }}{{ $map = index $map $way }}{{ end }}
{{- end }}
{{- if not (kindIs "map" $map) }}{{ fail (printf "a patch's path %s leads nowhere" .step.path) }}{{ end }}
{{- if $end }}
{{- $_ := set $map $key (append (index $map $key) .step.value) }}
{{- else }}
{{- $_ := set $map $key .step.value }}
{{- end }}
{{- end }}

{{/* Merge one map into another as kustomize's strategic merge does: in a list whose items have a key, those
of the patch come first. (to, from) */}}
{{- define "numafit.merge" -}}
{{- $ids := dict "containers" "name" "initContainers" "name" "volumes" "name" "env" "name" "imagePullSecrets" "name"
	"volumeMounts" "mountPath" "ports" "containerPort" }}
{{- range $key, $value := .from }}
{{- $old := index $.to $key }}
{{- if kindIs "invalid" $value }}
{{- $_ := unset $.to $key }}
{{- else if and (kindIs "map" $value) (kindIs "map" $old) }}
{{- $_ := include "numafit.merge" (dict "to" $old "from" $value) }}
{{- else if and (kindIs "slice" $value) (kindIs "slice" $old) (hasKey $ids $key) }}
{{- $id := index $ids $key }}
{{- $new := list }}
{{- $rest := $old }}
{{- range $item := $value }}
{{- $same := $item }}
{{- range $one := $old }}
{{- if eq (index $one $id | toString) (index $item $id | toString) }}
{{- $_ := include "numafit.merge" (dict "to" $one "from" $item) }}
{{- $same = $one }}
{{- $rest = without $rest $one }}
{{- end }}
{{- end }}
{{- $new = append $new $same }}
{{- end }}
{{- $_ := set $.to $key (concat $new $rest) }}
{{- else }}
{{- $_ := set $.to $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* Give all objects the namespace and the labels of a kustomization.yaml. (root, all, folder) */}}
{{- define "numafit.stamp" -}}
{{- $kustomization := include "numafit.text" (dict "root" .root "path" (printf "%s/kustomization.yaml" .folder)) | fromYaml }}
{{- range $object := .all.objects }}
{{- range $labels := $kustomization.labels }}
{{- $_ := set $object.metadata "labels" (merge (default dict $object.metadata.labels) $labels.pairs) }}
{{- end }}
{{- if not (has $object.kind (list "Namespace" "ClusterRole" "ClusterRoleBinding")) }}
{{- $_ := set $object.metadata "namespace" $kustomization.namespace }}
{{- end }}
{{- end }}
{{- end }}

{{/* Print a file of settings: as it is, with values merged into it, or another text. (root, path, values) */}}
{{- define "numafit.settings" -}}
{{- $text := include "numafit.text" . }}
{{- if .values.settingsFile }}
{{- $text = .values.settingsFile }}
{{- else if .values.settings }}
{{- $text = mergeOverwrite (fromYaml $text) (deepCopy .values.settings) | toYaml | printf "%s\n" }}
{{- end }}
{{- $text }}
{{- end }}

{{/* Add the ConfigMap with it. (root, all, path, values, name) */}}
{{- define "numafit.config" -}}
{{- $object := dict "apiVersion" "v1" "kind" "ConfigMap" "metadata" (dict "name" .name) "data" (dict (base .path) (include "numafit.settings" .)) }}
{{- $_ := set .all "objects" (append .all.objects $object) }}
{{- end }}

{{/* The name of the extender's: another file has another name, and replaces the pods one after the other. (the root) */}}
{{- define "numafit.extenderConfig" -}}
numafit-extender-{{ include "numafit.settings" (dict "root" . "path" "extender/extender.yaml" "values" .Values.extender) | sha256sum | trunc 10 }}
{{- end }}

{{/* Put what values say into the pod template of an object. (root, object, values) */}}
{{- define "numafit.pod" -}}
{{- $template := .object.spec.template }}
{{- $pod := $template.spec }}
{{- $container := first $pod.containers }}
{{- $_ := set $container "image" (include "numafit.image" .root) }}
{{- $_ := set $container "imagePullPolicy" .root.Values.image.pullPolicy }}
{{- with .root.Values.imagePullSecrets }}{{ $_ := set $pod "imagePullSecrets" . }}{{ end }}
{{- with .values.resources }}{{ $_ := set $container "resources" . }}{{ end }}
{{- with .values.extraArgs }}{{ $_ := set $container "args" (concat $container.args .) }}{{ end }}
{{- with .values.nodeSelector }}{{ $_ := set $pod "nodeSelector" (merge $pod.nodeSelector .) }}{{ end }}
{{- with .values.tolerations }}{{ $_ := set $pod "tolerations" . }}{{ end }}
{{- with .values.affinity }}{{ $_ := set $pod "affinity" . }}{{ end }}
{{- with .values.priorityClassName }}{{ $_ := set $pod "priorityClassName" . }}{{ end }}
{{- with .values.podLabels }}{{ $_ := set $template.metadata "labels" (merge $template.metadata.labels .) }}{{ end }}
{{- with .values.podAnnotations }}{{ $_ := set $template.metadata "annotations" (merge (default dict $template.metadata.annotations) .) }}{{ end }}
{{- with .values.patch }}{{ $_ := include "numafit.merge" (dict "to" $.object "from" .) }}{{ end }}
{{- end }}

{{- define "numafit.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Print all objects. (all) */}}
{{- define "numafit.print" -}}
{{- range .all.objects }}
---
{{ toYaml . }}
{{- end }}
{{- end }}
