#!/bin/bash
# The version is said once, in include/numafit/version.h; all other places have the same: what programs
# print and serve, man pages, the image, manifests, the chart, the changelog and the manual.
# (NRI, device plugin and DRA registration have versions of the API, and none of the plugin.)
# usage: BUILD=build/debug test/unit/test_version.sh
set -u
test=version short=yes
. test/unit/script_rig.sh
extender=
trap 'kill $daemon $extender 2>/dev/null; wait; rm -rf "$dir"' EXIT
: >"$dir/out"

defined() { sed -n "s/^#define $1 *\"\(.*\)\".*/\1/p" include/numafit/version.h; }
version=$(defined NUMAFIT_VERSION) date=$(defined NUMAFIT_DATE)
see "version.h has a version and a day" sh -c 'echo "$1 $2" | grep -qE "^[0-9]+\.[0-9]+\.[0-9]+ 20[0-9]{2}-[0-9]{2}-[0-9]{2}$"' sh "$version" "$date"

each() { # WHAT WANTED: $dir/out has this text in each of its lines, and has lines
	[ -s "$dir/out" ] && ! grep -vxF -e "$2" "$dir/out"
	report $? "$1"
}
places() { # WHAT NR SED-SCRIPT FILE...: so many places in the files, which the script prints, have the version
	what=$1 nr=$2 script=$3
	shift 3
	sed -n "$script" "$@" >"$dir/out"
	each "$what" "$version"
	see "$what: there are $nr" [ "$(wc -l <"$dir/out")" -eq "$nr" ]
}

# Programs, their pages

for program in numafitd numafit numafit-sim numafit-extender; do
	"$bin/$program" --version >"$dir/out"
	each "$program --version" "$program $version"
done
for page in "numafitd --man" "numafit --man" "numafit-sim --man" "numafit-extender --man" "numafit config --manual"; do
	# shellcheck disable=SC2086
	"$bin"/$page | sed -n 's/^\.TH [^ ]* [0-9] \("[^"]*" "[^"]*"\).*/\1/p' >"$dir/out"
	each "$page" "\"$date\" \"numafit $version\""
done
deploy/kubectl-numafit --version >"$dir/out"
each "kubectl numafit --version" "kubectl-numafit $version"

# Metrics, as they are served

await() { # COMMAND...: until it succeeds
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}
served() { # EVENT KEY: by the program whose log names its port so
	await grep -q "event=$1 " "$dir/log"
	exec 3<>"/dev/tcp/127.0.0.1/$(sed -n "s/.* event=$1 .* $2=\([0-9]*\).*/\1/p" "$dir/log")" || return
	printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
	tr -d '\r' <&3 | grep build_info | grep -v '^#' >"$dir/out"
	exec 3<&-
}
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
	--set kubeletRootDirectory="$dir/kubelet" --set nodeName=n1 --set metrics.address=127.0.0.1:0 >"$dir/log" 2>&1 &
daemon=$!
served metrics-served port
each "numafitd's metrics" "numafit_build_info{version=\"$version\"} 1"
cat >"$dir/kubeconfig" <<'Y'
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
Y
printf 'listen: 127.0.0.1:0\nmetrics: {address: "127.0.0.1:0"}\nkubeconfig: %s\nplugins:\n- name: NodeResourceTopologyMatch\n' \
	"$dir/kubeconfig" >"$dir/extender.yaml"
rm "$dir/log" # or numafitd's line might be found in it
"$bin/numafit-extender" --config "$dir/extender.yaml" >"$dir/log" 2>&1 &
extender=$!
served started metrics_port
each "numafit-extender's" "numafit_extender_build_info{version=\"$version\"} 1"

# Manifests, image, chart

image='localhost\/numafit:'
places "images of manifests" 2 "s/^ *image: $image//p" deploy/base/daemonset.yaml deploy/extender/deployment.yaml
places "tags of overlays" 3 's/^  newTag: //p' deploy/overlays/*/kustomization.yaml
places "the Dockerfile's example" 1 "s/.* -t $image\([^ ]*\) .*/\1/p" deploy/Dockerfile
places "the chart, and what it installs" 2 's/^\(version\|appVersion\): //p' deploy/helm/numafit/Chart.yaml
run "the image" 0 env TMPDIR="$dir" tools/image "$bin" "$dir/image"
see "is named after it" says out "localhost/numafit:$version "
mkdir "$dir/layout"
tar -xf "$dir/image/numafit-$version-"*.tar -C "$dir/layout"
places_in_layout() { grep -ohE "$2" $1 | sed 's/.*[":]\([0-9][^"]*\)"$/\1/' >"$dir/out"; }
places_in_layout "$dir/layout/manifest.json" '"RepoTags":\["[^"]*"'
each "its tag for docker" "$version"
places_in_layout "$dir/layout/index.json" '"(io.containerd.image.name|org.opencontainers.image.ref.name)":"[^"]*"'
each "its names for others" "$version"
# shellcheck disable=SC2046
places_in_layout "$dir/layout/$(sed -n 's/.*"Config":"\([^"]*\)".*/\1/p' "$dir/layout/manifest.json")" \
	'"org.opencontainers.image.version":"[^"]*"'
each "its label" "$version"
name=

# Pages

sed -n 's/^## //p' deploy/CHANGELOG.md | grep -v '(unreleased)$' | head -n 1 >"$dir/out"
each "the changelog's first entry of a released version" "$version ($date)"
places "tags in the manual" "$(cat deploy/docs/*.md | grep -cE 'numafit:[0-9]|newTag: |numafit-[0-9]|--version [0-9]')" \
	's/.*\(numafit:\|newTag: \|numafit-\|--version \)\([0-9][0-9.]*[0-9]\).*/\2/p' deploy/docs/*.md
{
	sed -n '1s/^numafit (\(.*\)) .*/\1/p' deploy/debian/changelog
	date -u -d "$(sed -n 's/^ -- .*>  //p' deploy/debian/changelog | head -n 1)" +%F
	sed -n 's/^\.TH [^ ]* 1 "\([^"]*\)".*/\1/p' deploy/debian/kubectl-numafit.1
} | paste -sd ' ' >"$dir/out"
each "the packages' changelog, and their page of kubectl-numafit" "$version $date $date"
grep -oE '[0-9]+\.[0-9]+\.[0-9]+' deploy/helm/numafit/README.md >"$dir/out"
each "versions in the chart's README" "$version"
finish
