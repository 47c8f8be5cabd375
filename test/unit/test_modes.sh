#!/bin/sh
# What the daemon does in each of its modes, beside a kubelet that places containers itself:
# numafit-sim plays runtime and kubelet, and says what came into force.
# usage: BUILD=build/debug test/unit/test_modes.sh
set -u
test=modes short=yes
. test/unit/script_rig.sh

# play NAME TRACE SETTING...: the daemon with these settings, through the whole trace
play() {
	name=$1 trace=test/traces/$2.yaml
	shift 2
	set -- "$@" machine=kep3545-8 topologyManagerPolicy=restricted reservedSystemCPUs=0,64 \
		nri.socketPath="$dir/nri.sock" runDirectory="$dir/run" metrics.address= kubeletRootDirectory="$dir/kubelet"
	for setting; do
		set -- "$@" --set "$setting"
		shift
	done
	rm -rf "$dir/run"
	"$bin/numafitd" "$@" >"$dir/log" 2>&1 &
	daemon=$!
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --json \
		--trace "$trace" >"$dir/out" 2>&1
	played=$?
	stop_daemon
	report "$played" "$name: the trace is played to its end"
}


decided() { line out '"event":"'"$1"'"' '"pod":"'"$2"'"' "$3"; } # EVENT POD WORD
says() { line log "$@"; }
count() { [ "$(grep -c -e "$2" "$dir/log")" -eq "$1" ]; }
no() { ! "$@"; }
explained() { # POD WORDS
	"$bin/numafit" explain --run-directory "$dir/run" "$1" >"$dir/explained" 2>&1
	tr -s ' \n' ' ' <"$dir/explained" | grep -q -e "$2"
}
untouched() { grep -q '"updates":0}$' "$dir/out" && no grep -q '"updates":[1-9]' "$dir/out"; }

play manage shadow
see "the kubelet's word does not count" decided create cache '"cpus":"5-6,69-70"'
see "a cpuset from elsewhere is put right" decided update web '"cpus":"0-127"'
see "a container that must make room does" decided create db '"updates":1'
see "nothing is compared" count 0 event=shadow

play shadow shadow mode=shadow
see "nobody is adjusted or updated" untouched
see "the kubelet's word counts" decided create cache '"cpus":"40-41,104-105"'
see "agreement is reported" says event=shadow pod=db verdict=agrees
see "so is that there was nothing to compare" says event=shadow pod=web verdict=nothing-to-compare
see "one disagreement" count 1 verdict=disagrees
see "with both cpusets" says event=shadow pod=cache "numafit 5-6,69-70, kubelet 40-41,104-105"
see "and both NUMA nodes of memory" says pod=cache "memory: numafit 0, kubelet 5"
see "which does not lead to the next" says event=shadow pod=upf verdict=agrees
see "explain says that nothing was put in force" explained cache "numafitd places nothing"
"$bin/numafit" replay "$dir/run/journal" >"$dir/out" 2>&1
see "replay decides the same" line out "4 decided again, 0 differ"

play off shadow mode=off
see "nobody is adjusted or updated" untouched
see "nothing is decided" no grep -q 'event=decision cause=[^a]' "$dir/log"
see "running containers are known" says event=stopped containers=4

see "a line of its log begins with its time" no grep -qv '^time=[0-9TZ:.-]* level=[a-z]* event=' "$dir/log"
play "as JSON" shadow mode=off logFormat=json
see "each line is an object" no grep -qv '^{"time":"[0-9TZ:.-]*","level":"[a-z]*","event":"[a-z-]*".*}$' "$dir/log"
see "with the same events and keys" says '"event":"stopped"' '"containers":"4"'
play "for journald" shadow mode=off logFormat=journal
see "each line begins with its priority" no grep -qv '^<[3-7]>time=' "$dir/log"

mkdir "$dir/kubelet"
echo '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}' >"$dir/kubelet/cpu_manager_state"
play "beside a kubelet that places nothing" shadow
see "numafitd decides" decided create cache '"cpus":"5-6,69-70"'
see "without a warning" count 0 kubelet-manages-too

echo '{"policyName":"static","defaultCpuSet":"0-127","checksum":1}' >"$dir/kubelet/cpu_manager_state"
play "beside a static kubelet" shadow
see "we only look on" untouched
see "and compare" says event=shadow pod=cache verdict=disagrees
see "one line says so" count 1 kubelet-manages-too
see "as a warning with the way out" says level=warn mode=shadow cpuManagerPolicy besideStaticKubelet

play "set to manage beside it" shadow besideStaticKubelet=manage
see "numafitd decides" decided create cache '"cpus":"5-6,69-70"'
see "and warn all the same" says level=warn kubelet-manages-too mode=manage
see "a cpuset in a request is logged once" count 1 cpuset-in-request
rm -r "$dir/kubelet"

play "onAdopt place" unasked
see "a container that ran before is placed" line out '"event":"restart-runtime"' '"containers":2,"updates":2'
see "with CPUs of its own" says cause=adopt pod=db exclusive=yes cpus=1-4,65-68
see "explain does not say that the container keeps what it ran with" explained db "has placed the container while it ran"

play "onAdopt leave" unasked onAdopt=leave
see "a container that ran before is left alone" untouched
see "and the log says why" says cause=adopt pod=db exclusive=no "left as it ran: onAdopt is leave"
finish
