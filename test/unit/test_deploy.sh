#!/bin/sh
# What is in deploy/, and the image: manifests that parse and say what the programs need, settings
# that the daemon takes, an archive that is the same twice and whose programs run.
# usage: BUILD=build/debug test/unit/test_deploy.sh
set -u
test=deploy
. test/unit/script_rig.sh
: >"$dir/out"

check() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >"$dir/out" 2>&1
	report $? "$what"
}
same() { # WHAT WANTED GOT
	printf '%s' "${2:+$2
}" | diff - "$dir/got" >"$dir/out" 2>&1
	report $? "$1"
}

# Every value of a YAML file with its path: "0.metadata.name numafitd"
check "there is a reader of YAML" ${CC:-cc} -o "$dir/flat" test/unit/yaml_values.c -lyaml
flat() { "$dir/flat" <"$1"; }
value() { flat "$1" | sed -n "s/^[0-9]*\.$2 //p"; } # FILE PATH (a sed pattern) -> the values

# Manifests

for file in $(find deploy -name '*.yaml' ! -path '*/templates/*' | sort); do
	check "$file is YAML" flat "$file"
done
for file in $(find deploy -name kustomization.yaml | sort); do
	for part in $(value "$file" '\(resources\|components\)\.[0-9]*'); do
		part=$(dirname "$file")/$part
		[ ! -d "$part" ] || part=$part/kustomization.yaml
		check "$file: $part is there" test -f "$part"
	done
done
version=$(sed -n 's/.*NUMAFIT_VERSION "\(.*\)".*/\1/p' include/numafit/version.h)
for file in deploy/overlays/*/kustomization.yaml; do
	value "$file" 'images\.0\..*' >"$dir/got"
	same "$file takes this version" "localhost/numafit
$version"
done
check "and so does the DaemonSet" grep -q "image: localhost/numafit:$version\$" deploy/base/daemonset.yaml

sed -n '1s/^numafit (\(.*\)) .*/\1/p' deploy/debian/changelog >"$dir/got"
same "Debian's packages are this version" "$version"
awk '/^Build-Depends:/ {on = 1; next} on && !/^ / {exit} on {gsub(/[ ,]/, ""); print}' deploy/debian/control | sort >"$dir/got"
same "and are built with what tools/setup has for building, beside what every package is built with" \
	"$(tools/setup --list build | grep -vxE 'gcc|g\+\+|libc6-dev|binutils|make' | sort)"

# What numafitd may do in the API server: each line is a call that it makes. Pods are listed and
# watched by apiserver/pods, NodeResourceTopology and Numatopology are applied (which is a patch,
# and a create where there is none) by apiserver/apply.
rules() { # FILE: "group/resource: verbs", sorted
	flat "$1" | awk '
		match($1, /rules\.[0-9]+\./) || match($1, /value\./) {
			rule = substr($1, 1, RSTART + RLENGTH - 1); field = substr($1, RSTART + RLENGTH)
		}
		field ~ /^apiGroups/ {group[rule] = $2}
		field ~ /^resources/ {resource[rule] = resource[rule] " " $2}
		field ~ /^verbs/ {verbs[rule] = verbs[rule] " " $2}
		{field = ""}
		END {for (rule in verbs) print group[rule] "/" substr(resource[rule], 2) ":" verbs[rule]}' | sort
}
rules deploy/base/rbac.yaml >"$dir/got"
same "RBAC is what is called, and no more" "/events: create
/nodes: get
/pods: list watch
topology.node.k8s.io/noderesourcetopologies: create patch"
rules deploy/extender/rbac.yaml >"$dir/got"
same "so is the extender's" "/nodes pods events: list watch
/pods/binding: create
/pods: get
topology.node.k8s.io/noderesourcetopologies: list watch"
component() { # FOLDER: the rules in its patches
	flat "deploy/$1/kustomization.yaml" | sed -n 's/^0\.patches\.[0-9]*\.patch //p' |
		while read -r patch; do printf "%b" "$patch" >"$dir/patch.yaml"; rules "$dir/patch.yaml"; done
}
component components/evict >"$dir/got"
same "evict adds evictions" "/pods/eviction: create"
component components/device-claims >"$dir/got"
same "device-claims adds lists and watches of ResourceSlices" "resource.k8s.io/resourceslices: list watch"
component components/dra-driver >"$dir/got"
same "dra-driver adds what its slices and claims need" "resource.k8s.io/resourceclaims: get
resource.k8s.io/resourceslices: get list watch create update delete"
flat deploy/components/dra-driver/policy.yaml >"$dir/got"
check "and its policy is about what numafitd is called, and about slices" sh -c "
	grep -q 'numafit-system:numafitd' '$dir/got' && grep -qF 'resourceRules.0.resources.0 resourceslices' '$dir/got' &&
	grep -qF 'spec.driver == \"numafit.io\"' '$dir/got'"
value deploy/components/dra-driver/deviceclasses.yaml 'metadata\.name' >"$dir/got"
same "it has two classes" "numafit.io
numafit.io-whole-cores"
value deploy/components/dra-driver/deviceclasses.yaml 'spec\.selectors\.0\.cel\.expression' | sort -u >"$dir/got"
same "both of this driver's devices" "device.driver == \"$(sed -n 's/^#define CLAIM_DRIVER "\(.*\)"/\1/p' include/numafit/resource_claim.h)\""
component components/quiet >"$dir/got"
same "quiet adds no right in the cluster" ""
component components/observed-placement >"$dir/got"
same "observed-placement adds patches of pods" "/pods: patch"
flat deploy/components/observed-placement/policy.yaml >"$dir/got"
check "and its policy is about what numafitd is called, and the annotation that it writes" sh -c "
	grep -q 'numafit-system:numafitd' '$dir/got' &&
	grep -qF \"\$(sed -n 's/^#define OBSERVED_ANNOTATION \\(.*\\)/\\1/p' src/apiserver/observed_json.h)\" '$dir/got'"
component components/numatopology >"$dir/got"
same "numatopology adds Numatopology" "nodeinfo.volcano.sh/numatopologies: create patch"
flat deploy/components/own-node/policy.yaml | awk '
	sub(/^0\.spec\.matchConstraints\.resourceRules\.[0-9]*\./, "") {
		if ($1 == "apiGroups.0") group = $2
		if ($1 == "resources.0") print group "/" $2
	}' | sort >"$dir/got"
same "own-node is about every kind that numafitd may write" "$(
	{ rules deploy/base/rbac.yaml; component components/numatopology; } | sed -n 's/: create patch$//p' | sort)"
component extender/numatopology >"$dir/got"
same "and the extender's reads it" "nodeinfo.volcano.sh/numatopologies: list watch"

# Settings

numafitd() { "$bin/numafitd" --set machine=kep3545-8 "$@"; }
setting() { numafitd --print-config "$@" | sed -n "s/^$key: //p"; }
check "the cluster's settings are taken" numafitd --check-config --config deploy/base/numafitd.yaml
check "and so is the example with every key" numafitd --check-config --config deploy/numafitd.yaml
sed '/^# nodes:/,/^# unmatchedNodes:/s/^# //' deploy/base/numafitd.yaml >"$dir/nodes.yaml"
check "and the cluster's with its example of some nodes otherwise" numafitd --check-config --config "$dir/nodes.yaml"
for file in deploy/components/*/kustomization.yaml deploy/overlays/*/kustomization.yaml; do
	for set in $(flat "$file" | sed -n 's/.*value: \(--set=[^\\]*\)\\n.*/\1/p'); do
		check "$file: $set is taken" numafitd --check-config --config deploy/base/numafitd.yaml "$set"
	done
done

# The chart knows every setting by its name: those with a part of the file each, and sections of nodes.
{ numafitd --print-config | sed -n 's/^\([a-zA-Z]*\)[.:].*/\1/p'; echo nodes; echo unmatchedNodes; } | sort -u >"$dir/wanted"
flat deploy/helm/numafit/values.schema.json | sed -n 's/^0\.properties\.settings\.propertyNames\.enum\.[0-9]* //p' | sort >"$dir/got"
same "the chart's schema has every setting, and no other" "$(cat "$dir/wanted")"
for link in $(find deploy/helm -type l); do
	check "$link leads somewhere" test -e "$link"
done

# The DaemonSet beside the daemon's settings

daemonset=deploy/base/daemonset.yaml
flat $daemonset >"$dir/daemonset"
says() { grep -qxF -e "0.spec.template.$1" "$dir/daemonset"; }
has_mount() { grep -qE "^0\.spec\.template\.spec\.containers\.0\.volumeMounts\.[0-9]+\.mountPath $1\$" "$dir/daemonset"; }
of_host() { grep -qE "^0\.spec\.template\.spec\.volumes\.[0-9]+\.hostPath\.path $1\$" "$dir/daemonset"; }
for key in nri.socketPath runDirectory kubeletRootDirectory; do
	path=$(setting --config deploy/base/numafitd.yaml)
	case $key in
	nri.socketPath) paths=$(dirname "$path") ;;
	kubeletRootDirectory) paths="$path/device-plugins $path/pod-resources $path/pods-api $path/cpu_manager_state $path/memory_manager_state" ;;
	*) paths=$path ;;
	esac
	for path in $paths; do
		check "$key: $path is mounted" has_mount "$path"
		check "$key: $path is the host's" of_host "$path"
	done
done
check "so are the cgroups, to be read" has_mount /sys/fs/cgroup
key=kubeletConfigFile
check "shadow mounts the kubelet's config file" \
	grep -q "mountPath: $(setting --set mode=shadow), readOnly: true" deploy/overlays/shadow/kustomization.yaml
key=metrics.address
port=$(setting --config deploy/base/numafitd.yaml)
check "the metrics port is the one that is probed" says "spec.containers.0.ports.0.containerPort ${port##*:}"
check "the file that is read is the one that is mounted" says "spec.containers.0.args.1 /etc/numafit/numafitd.yaml"
for fact in "spec.containers.0.securityContext.capabilities.drop.0 ALL" \
	"spec.containers.0.securityContext.readOnlyRootFilesystem true" \
	"spec.containers.0.securityContext.allowPrivilegeEscalation false" \
	"spec.containers.0.securityContext.seccompProfile.type RuntimeDefault" \
	"spec.containers.0.env.0.name NODE_NAME" \
	"spec.containers.0.livenessProbe.httpGet.path /livez" \
	"spec.containers.0.readinessProbe.httpGet.path /readyz" \
	"spec.priorityClassName system-node-critical" \
	"spec.tolerations.0.operator Exists"; do
	check "DaemonSet: $fact" says "$fact"
done
grep -hE "privileged|hostPID|hostIPC|capabilities\.add" "$dir/daemonset" >"$dir/got"
same "and nothing of the privileged kind" ""

# Whoever requires the plugin must let its own pod pass: one name in all places.
tolerated=$(sed -n 's/.*tolerate_missing_plugins_annotation = .\(.*\).$/\1/p' deploy/containerd/*.toml deploy/crio/*.conf | sort -u)
check "numafitd's pod is let pass where numafit is required" \
	says "metadata.annotations.$tolerated true"

# The extender's Deployment beside its settings

extender=deploy/extender/deployment.yaml
flat $extender >"$dir/daemonset"
mkdir "$dir/tls"
cp test/tls/server.pem "$dir/tls/tls.crt"
cp test/tls/server.key "$dir/tls/tls.key"
cp test/tls/ca.pem "$dir/tls/ca.crt"
sed "s|/etc/numafit/tls|$dir/tls|" deploy/extender/extender.yaml >"$dir/extender.yaml"
check "the extender's settings are taken" "$bin/numafit-extender" --check-config --config "$dir/extender.yaml"
port=$(value deploy/extender/extender.yaml listen)
metrics=$(value deploy/extender/extender.yaml 'metrics\.address')
for fact in "spec.containers.0.ports.0.containerPort ${port##*:}" \
	"spec.containers.0.ports.1.containerPort ${metrics##*:}" \
	"spec.containers.0.readinessProbe.httpGet.path /readyz" \
	"spec.containers.0.readinessProbe.httpGet.port metrics" \
	"spec.containers.0.livenessProbe.httpGet.path /livez" \
	"spec.containers.0.livenessProbe.httpGet.port metrics" \
	"spec.containers.0.args.1 $(value $extender 'spec\.template\.spec\.containers\.0\.volumeMounts\.0\.mountPath')" \
	"spec.containers.0.image localhost/numafit:$version" \
	"spec.containers.0.securityContext.runAsNonRoot true" \
	"spec.containers.0.securityContext.capabilities.drop.0 ALL" \
	"spec.containers.0.securityContext.readOnlyRootFilesystem true" \
	"spec.containers.0.securityContext.allowPrivilegeEscalation false"; do
	check "extender: $fact" says "$fact"
done
tls=$(value $extender 'spec\.template\.spec\.containers\.0\.volumeMounts\.1\.mountPath')
value deploy/extender/extender.yaml 'tls\..*' >"$dir/got"
same "extender: its key is where it is looked for" "$tls/tls.crt
$tls/tls.key
$tls/ca.crt"
check "extender: it knows its node's address" says "spec.containers.0.env.0.valueFrom.fieldRef.fieldPath status.hostIP"
policy=deploy/extender/networkpolicy/networkpolicy.yaml
value $policy 'spec\.ingress\.[0-9]*\.ports\.[0-9]*\.port' >"$dir/got"
same "the policy is about its ports, by their names" "$(value $extender 'spec\.template\.spec\.containers\.0\.ports\.[0-9]*\.name')"
value $policy 'spec\.podSelector\.matchLabels\..*' >"$dir/got"
same "and about its pods" "$(value $extender 'spec\.template\.metadata\.labels\..*')"

# The keys, as deploy/docs/scheduler-side.md has them made

mkdir "$dir/keys"
sed -n '/^key="-newkey/,/^```/{/^```/d;p}' deploy/docs/scheduler-side.md >"$dir/recipe"
check "the recipe for keys works" sh -ec 'cd "$1"; kubectl() { echo "$@" >called; }; . ../recipe' sh "$dir/keys"
check "the Secret is made of what it makes" sh -c 'cd "$1" && for f in $(tr " " "\n" <called | sed -n "s/^--from-file=\(.*=\)\{0,1\}//p"); do test -s "$f" || exit 1; done' sh "$dir/keys"
purpose() { openssl verify -CAfile "$dir/keys/ca.crt" -purpose "$1" "$dir/keys/$2.crt"; }
is_for() { openssl x509 -in "$dir/keys/$1.crt" -noout -ext extendedKeyUsage | grep -qx " *$2"; }
check "kube-scheduler's certificate is a client's" is_for kube-scheduler "TLS Web Client Authentication"
check "and the extender's a server's" is_for numafit-extender "TLS Web Server Authentication"
check "which is as openssl sees it" purpose sslserver numafit-extender
check "in both ways" purpose sslclient kube-scheduler
check "a server's is no client's" eval '! purpose sslclient numafit-extender'
check "nor the other way round" eval '! purpose sslserver kube-scheduler'
name=$(value deploy/extender/scheduler.yaml 'extenders\.0\.tlsConfig\.serverName')
check "its name is the one that kube-scheduler wants" openssl verify -CAfile "$dir/keys/ca.crt" \
	-verify_hostname "$name" "$dir/keys/numafit-extender.crt"

# The image

store=$dir/image tree=$dir/tree
pack() { (umask "$2" && TMPDIR=$dir SOURCE_DATE_EPOCH=1700000000 tools/image "$bin" "$1"); }
mkdir -p "$store" "$tree"
check "an image is written" pack "$dir/one" 022
archive=$(ls "$dir"/one/numafit-*.tar)
check "and once more" pack "$dir/two" 077
check "it is the same, byte for byte" cmp "$archive" "$dir/two/$(basename "$archive")"
check "it is an archive" tar -xf "$archive" -C "$store"
blobs=$store/blobs/sha256
for blob in "$blobs"/*; do
	sha256sum "$blob" | cut -d' ' -f1
done >"$dir/got"
same "every blob is called by its digest" "$(ls "$blobs")"
listed() { grep -o '"[a-z/]*sha256[:/][0-9a-f]*"' "$1" | tr -d '"' | sed 's/.*[:/]//'; }
manifest=$(listed "$store/index.json")
check "the index names a manifest" test -f "$blobs/$manifest"
listed "$blobs/$manifest" >"$dir/got"
same "which lists what docker's does" "$(listed "$store/manifest.json")"
config=$(head -n 1 "$dir/got")
layers=$(sed 1d "$dir/got")
for layer in $layers; do
	gzip -dc "$blobs/$layer" | sha256sum | cut -d' ' -f1
	gzip -dc "$blobs/$layer" | tar -x -C "$tree"
done >"$dir/got"
same "the layers are those of the configuration" "$(listed "$blobs/$config")"
check "which says what is started" grep -q '"Entrypoint":\["/usr/bin/numafitd"\]' "$blobs/$config"
cp deploy/base/numafitd.yaml "$tree/etc/numafit/"
# The tree's own linker and libraries; as root nothing else is in sight, not even the /proc that
# sanitizers look into.
linker() { "$tree"/lib64/ld-linux*.so.* --inhibit-cache --library-path "$(echo "$tree"/usr/lib/*-linux-gnu)" "$@"; }
if [ "$(id -u)" = 0 ] && ! ldd "$bin/numafitd" | grep -q 'lib[at]san'; then
	at=
	within() { chroot "$tree" "$@"; }
else
	at=$tree
	within() { linker "$tree$@"; }
fi
check "numafitd runs in it" within /usr/bin/numafitd --version
check "so does numafit" within /usr/bin/numafit version
check "kubectl numafit is in it" test -x "$tree/usr/bin/kubectl-numafit"
check "with the settings and the machines that are in it" within /usr/bin/numafitd --check-config \
	--config "$at/etc/numafit/numafitd.yaml" --set machine="$at/usr/share/numafit/machines/kep3545-8.machine"
linker --list "$tree"/usr/lib/*-linux-gnu/libcurl.so.4 >"$dir/got" 2>&1
check "libcurl is there" grep -q libcrypto "$dir/got"
check "and all that it needs" sh -c "! grep '=>' '$dir/got' | grep -vF ' $tree/'"
ls "$tree/var/lib/dpkg/status.d" >"$dir/got"
same "each package's licence is there" "$(cd "$tree/usr/share/doc" && ls | grep -vx numafit)"
sbom=$tree/usr/share/sbom/numafit.spdx.json
check "its bill of materials has what SPDX 2.3 wants, each package and each program" test/packages/sbom "$sbom" "$tree"
check "and is the one beside the archive" cmp "$sbom" "${archive%.tar}.spdx.json"
for fault in 's/"versionInfo": "[^"]*", //' 's/"SHA256", "checksumValue": "./&0/' 's/relatedSpdxElement": "SPDXRef-package-libc6"/relatedSpdxElement": "SPDXRef-libc6"/' \
	's/"name": "base-files"/"name": "other-files"/' 's/SPDX-2.3/SPDX-2.2/' '/"DESCRIBES"/d'; do
	sed "$fault" "$sbom" >"$dir/sbom"
	check "a bill that is wrong by $fault is seen" sh -c 'test -s "$2" && ! cmp -s "$1" "$2" && ! test/packages/sbom "$1" "$3"' sh "$dir/sbom" "$sbom" "$tree"
done
find "$tree" ! -user "$(id -un)" -o -perm /6000 -o -type f -perm /022 >"$dir/got"
same "nothing is setuid, or to be written by others" ""

# The chart

bundle() { (umask "$2" && TMPDIR=$dir SOURCE_DATE_EPOCH=1700000000 tools/chart "$1"); }
check "a chart is written" bundle "$dir/chart" 022
check "and once more" bundle "$dir/chart2" 077
check "it is the same, byte for byte" cmp "$dir/chart/numafit-$version.tgz" "$dir/chart2/numafit-$version.tgz"
check "so is its index" cmp "$dir/chart/oci/index.json" "$dir/chart2/oci/index.json"
blobs=$dir/chart/oci/blobs/sha256
for blob in "$blobs"/*; do
	sha256sum "$blob" | cut -d' ' -f1
done >"$dir/got"
same "every blob is called by its digest" "$(ls "$blobs")"
manifest=$blobs/$(listed "$dir/chart/oci/index.json")
{ basename "$manifest"; listed "$manifest"; } | sort >"$dir/got"
same "and all of them are listed" "$(ls "$blobs")"
check "one of them is the archive" cmp "$dir/chart/numafit-$version.tgz" "$blobs/$(listed "$manifest" | tail -n 1)"
grep -o 'application/vnd.cncf[^"]*' "$manifest" >"$dir/got"
same "they have helm's types" "application/vnd.cncf.helm.config.v1+json
application/vnd.cncf.helm.chart.content.v1.tar+gzip"
tar -tvf "$dir/chart/numafit-$version.tgz" | grep -v '^-rw-r--r-- 0/0 ' >"$dir/got"
same "it has files alone, and they are nobody's" ""
tar -tf "$dir/chart/numafit-$version.tgz" | sed -n 's|^numafit/files/\(.*\)|\1|p' >"$dir/got"
same "the manifests of kustomize are in it" "$(cd deploy/helm/numafit/files && find -L . -type f | sed 's|^./||' | LC_ALL=C sort)"

# The rest

if command -v systemd-analyze >/dev/null; then
	sed "s|/usr/local/bin/numafitd|$(realpath "$bin")/numafitd|" deploy/systemd/numafitd.service >"$dir/numafitd.service"
	check "systemd takes the unit" systemd-analyze verify "$dir/numafitd.service"
fi
for file in base helm/numafit $(cd deploy && ls -d overlays/* components/* extender/scheduler.yaml extender/extender.yaml extender/numatopology extender/networkpolicy containerd/* crio/* crd/n* systemd/* debian Dockerfile ./*.yaml | sed 's|^\./||'); do
	check "deploy/README.md names $file" grep -qF "$file" deploy/README.md
done
metrics=$({
	sed -n 's/^\t\(METRIC_ROW\|OBJECT\|EACH\|NOW\|TOTAL\)("\([a-z_]*\)",.*/\1 \2/p' src/daemon-files/metrics_text.c |
		awk '{print ($1 == "METRIC_ROW" ? "" : $1 == "OBJECT" ? "numafit_apiserver_" : "numafit_") $2 ($1 == "TOTAL" ? "_total" : "")}'
	sed -n 's/^\tROW("\([a-z_]*\)",.*/numafit_extender_\1/p; s/^\tMETRIC_ROW("\([a-z_]*\)",.*/\1/p' src/numafit-extender/extender_metrics_text.c
} | sort -u)
reference=deploy/docs/reference-metrics.md
grep -o '`\(numafit\|process\)_[a-z][a-z_]*`' $reference | tr -d '`' | sort -u >"$dir/got"
same "$reference names every metric, and no other" "$metrics"
finish
