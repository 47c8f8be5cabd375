#!/bin/sh
# numafit bundle: what a real daemon and its journal give, with the names of pods and without.
# usage: BUILD=build/debug test/unit/test_bundle.sh
set -u
test=bundle short=yes
. test/unit/script_rig.sh
numafit=$bin/numafit
folder=numafit-bundle

start() {
	: >"$dir/daemon"
	"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
		--set kubeletRootDirectory="$dir/kubelet" --set metrics.address= --set topologyManagerPolicy=restricted \
		--set reservedSystemCPUs=0,64 --set 'namespaces=names=shop,telco allowed=quiet' >"$dir/daemon" 2>&1 &
	daemon=$!
	tail -n +1 -f --pid="$daemon" "$dir/daemon" | grep -q -m1 'event=started'
}
unpack() { # ARCHIVE
	rm -rf "${dir:?}/$folder"
	tar -C "$dir" -xf "$1"
}

start
# a journal's first line has these words, too
cat >"$dir/words.yaml" <<'X'
steps:
- create: {namespace: shop, pod: exporter, container: node, qos: burstable, cpu: 500m, memory: 1Gi}
- create: {namespace: shop, pod: cpus, container: memory, qos: burstable, cpu: 500m, memory: 1Gi}
X
run "containers are called as what a machine has" 0 "$bin/numafit-sim" --socket "$dir/nri.sock" \
	--machine kep3545-8 --reserved 0,64 --trace "$dir/words.yaml"
run "the demo's containers are placed" 0 "$bin/numafit-sim" --socket "$dir/nri.sock" \
	--machine kep3545-8 --reserved 0,64 --trace test/traces/demo.yaml
stop_daemon
start # so that there are two journals

run "a bundle is made" 0 "$numafit" bundle --run-directory "$dir/run" -o "$dir/all.tar"
see "and its name printed" is out "$dir/all.tar"
see "nobody else may read it" [ "$(stat -c %a "$dir/all.tar")" = 600 ]
see "tar unpacks it" unpack "$dir/all.tar"
see "all parts are there" [ "$(ls "$dir/$folder" | tr '\n' ' ')" = \
	"about.txt journal journal.1 log.txt machine.txt metrics.txt settings.txt status.json " ]
see "the journals are as they were" cmp "$dir/run/journal" "$dir/$folder/journal"
see "both of them" cmp "$dir/run/journal.1" "$dir/$folder/journal.1"
see "the log has the daemon's lines" cmp "$dir/daemon" "$dir/$folder/log.txt"
see "the metrics are there, though nobody serves them" grep -q '^numafit_build_info{version=' "$dir/$folder/metrics.txt"
see "the status is a document" grep -q '^{"version":.*"pod":"trainer-0"' "$dir/$folder/status.json"
see "the settings are there" grep -qx 'topologyManagerPolicy: restricted' "$dir/$folder/settings.txt"
see "the machine can be loaded" "$numafit" topology --machine "$dir/$folder/machine.txt"
see "about.txt says that it names pods" grep -q '^not redacted: ' "$dir/$folder/about.txt"
run "a file that is there is not overwritten" 3 "$numafit" bundle --run-directory "$dir/run" -o "$dir/all.tar"
see "and why" says err "File exists"

run "a bundle without names goes to a pipe" 0 sh -c "'$numafit' bundle --redact --run-directory '$dir/run' -o - | cat >'$dir/none.tar'"
see "tar unpacks it" unpack "$dir/none.tar"
for word in shop telco batch trainer analytics postgres inference triton report-0 web-1 642ad0a1 nginx; do
	see "no part has $word" eval "! grep -rq $word '$dir/$folder'"
done
see "the settings have other words for them" grep -q '^namespaces: names=namespace-[0-9]*,namespace-[0-9]* allowed=quiet$' "$dir/$folder/settings.txt"
see "about.txt says so" grep -q '^redacted: [1-9][0-9]* names' "$dir/$folder/about.txt"
run "what was decided is decided the same" 0 "$numafit" replay "$dir/$folder/journal.1"
see "and is all of it" [ "$(cat "$dir/out")" = "$("$numafit" replay "$dir/run/journal.1")" ]
see "a name has one word everywhere" eval "$numafit status --json --run-directory '$dir/run' >'$dir/said' &&
	[ \$(grep -o 'pod=pod-[0-9]* container=container-[0-9]*' '$dir/$folder/log.txt' | sort -u | wc -l) -le \
	\$(grep -o '\"pod_name\":\"[^\"]*\"' '$dir/$folder/journal.1' | sort -u | wc -l) ]"

stop_daemon
run "without a daemon there are its journals" 0 "$numafit" bundle --run-directory "$dir/run" -o "$dir/dead.tar"
see "what is missing is printed" says err "status.json is left out: "
see "tar unpacks it" unpack "$dir/dead.tar"
see "about.txt names it" grep -q '^status.json .*; NOT HERE: ' "$dir/$folder/about.txt"
see "and not what there is" eval "! grep '^journal' '$dir/$folder/about.txt' | grep -q 'NOT HERE'"
run "a full disk is an error" 3 sh -c "'$numafit' bundle --run-directory '$dir/run' -o - >/dev/full"
see "and why" says err "No space left on device"
run "so is a file that cannot be written to its end" 3 sh -c \
	"trap '' XFSZ; ulimit -f 8; exec '$numafit' bundle --run-directory '$dir/run' -o '$dir/half.tar'"
see "and why" says err "the archive cannot be written: File too large"
see "no half of it stays" [ ! -e "$dir/half.tar" ]
run "a mistyped option is" 2 "$numafit" bundle --redacted
finish
