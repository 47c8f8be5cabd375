#!/bin/bash
# Metrics and health as a real numafitd serves them, while numafit-sim plays the container runtime.
# usage: BUILD=build/debug test/unit/test_metrics.sh
set -u
test=metrics short=yes
. test/unit/script_rig.sh
ulimit -S -n 512 # as systemd and shells give fewer than they allow
daemon= sim=
trap 'kill -KILL $daemon $sim 2>/dev/null; rm -rf "$dir"' EXIT
: >"$dir/out"

see() { # WHAT COMMAND...
	what=$1
	shift
	"$@" >"$dir/said" 2>&1
	report $? "$what"
}
no() { ! "$@"; }

await() { # COMMAND...: until it succeeds
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}
start() { # SETTING...
	: >"$dir/log"
	set -- "$@" machine=kep3545-8 topologyManagerPolicy=restricted reservedSystemCPUs=0,64 \
		nri.socketPath="$dir/nri.sock" runDirectory="$dir/run" kubeletRootDirectory="$dir/kubelet" \
		nodeName=n1 logLevel=info
	for setting; do
		set -- "$@" --set "$setting"
		shift
	done
	"$bin/numafitd" "$@" >"$dir/log" 2>&1 &
	daemon=$!
	await grep -q event=started "$dir/log"
	port=$(sed -n 's/.* event=metrics-served .*port=//p' "$dir/log")
}
stop() {
	kill "$daemon"
	wait "$daemon"
	status=$?
	daemon=
	return "$status"
}
play() { # TRACE: through it
	"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --json \
		--node-name n1 --trace "test/traces/$1.yaml" >"$dir/played" 2>&1
}
host=localhost
ask() { # METHOD PATH: the answer with its head into out
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	printf '%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$1" "$2" "$host" >&3
	tr -d '\r' <&3 >"$dir/out"
	exec 3<&-
}
gets() { # STATUS PATH WORDS: is answered so, and the whole body is WORDS if these are given
	ask GET "$2" && grep -q "^HTTP/1.1 $1 " "$dir/out" &&
		{ [ $# -lt 3 ] || [ "$(sed '1,/^$/d' "$dir/out")" = "$3" ]; }
}
scrape() { ask GET /metrics && sed '1,/^$/d' "$dir/out" >"$dir/metrics"; }
value() { # SERIES: its value
	awk -v series="$1" '{ v = $NF; sub(/ [^ ]*$/, "") } $0 == series { print v }' "$dir/metrics"
}
is() { [ "$(value "$1")" = "$2" ]; } # SERIES VALUE
sum() { awk -v re="^$1" '$0 ~ re { s += $NF } END { printf "%.0f\n", s }' "$dir/metrics"; } # REGEX
log_count() { grep -c "$@" "$dir/log" || true; }
adds_up() { # REGEX VALUE
	sum=$(sum "$1")
	[ "$sum" = "$2" ] || { echo "$sum, not $2"; return 1; }
}
well_formed() { awk -f test/unit/check_metrics.awk "$dir/metrics"; }

# Before there is a runtime
start metrics.address=127.0.0.1:0
see "it lives" gets 200 /livez ok
see "healthz is the same" gets 200 /healthz ok
see "it is not ready" gets 503 /readyz
see "for one reason" eval '[ "$(sed "1,/^$/d" "$dir/out" | grep -c .)" = 1 ] && grep -q "^nri: .*$dir/nri.sock" "$dir/out"'
see "verbosely, each check is listed" gets 503 "/readyz?verbose"
see "those that pass" grep -qx '\[+\]journal ok' "$dir/out"
see "those that do not" grep -q '^\[-\]nri: the container runtime is not connected' "$dir/out"
see "and the whole" grep -qx 'readyz check failed' "$dir/out"
see "metrics come all the same" scrape
see "and are well-formed" well_formed
see "there is no connection" is numafit_nri_connected 0

# Decisions
see "the demo is played" play demo
see "metrics are served" scrape
see "in the format's content type" grep -qx 'Content-Type: text/plain; version=0.0.4; charset=utf-8' "$dir/out"
see "well-formed" well_formed
see "admissions are those of the log" is \
	'numafit_topology_manager_admission_requests_total{policy="restricted",result="admitted"}' \
	"$(log_count 'event=decision cause=create.* verdict=admitted')"
see "refusals, too" is \
	'numafit_topology_manager_admission_requests_total{policy="restricted",result="refused"}' \
	"$(log_count 'event=decision cause=create.* verdict=refused')"
see "of which there are some" [ "$(sum numafit_topology_manager_admission_requests_total.*refused)" -gt 0 ]
see "nobody was asked by another policy" is \
	'numafit_topology_manager_admission_requests_total{policy="none",result="admitted"}' 0
see "each decision has its time" is numafit_topology_manager_admission_duration_seconds_count \
	"$(log_count 'event=decision cause=create')"
see "and each answer" is 'numafit_nri_request_duration_seconds_count{request="CreateContainer"}' \
	"$(log_count 'event=decision cause=create')"
see "which takes longer" awk "BEGIN { exit !(\
	$(value 'numafit_nri_request_duration_seconds_sum{request="CreateContainer"}') > \
	$(value numafit_topology_manager_admission_duration_seconds_sum)) }"
see "CPUs of their own are asked for" is numafit_cpu_manager_pinning_requests_total \
	"$(grep '"event":"create"' "$dir/played" | grep -c '"exclusive":true\|"admitted":false')"
see "a node's CPUs add up" eval 'for n in 0 1 2 3 4 5 6 7; do
	adds_up "numafit_numa_node_cpus[{]numa_node=.$n." 16 || exit 1; done'
see "those that are held are the containers'" adds_up 'numafit_numa_node_cpus.*exclusive' \
	"$("$bin/numafit" status --socket "$dir/run/numafitd.sock" --json |
		grep -o '"cpus_held":[0-9]*' | awk -F: '{ s += $2 } END { print s }')"
held=$(sum 'numafit_numa_node_cpus.*exclusive')
see "the kubelet's gauges have them, too" eval '[ "$held" -gt 0 ] && is numafit_cpu_manager_exclusive_cpu_allocations "$held" &&
	adds_up "numafit_cpu_manager_allocation_per_numa[{]" "$held"'
see "the shared pool is what is shared and not reserved" is numafit_cpu_manager_shared_pool_size_millicores \
	"$((($(sum 'numafit_numa_node_shared_pool_cpus[{]') - 2) * 1000))"
see "errors are refusals" is numafit_topology_manager_admission_errors_total \
	"$(sum numafit_topology_manager_admission_requests_total.*refused)"
see "two are reserved" adds_up 'numafit_numa_node_cpus.*reserved' 2
see "the containers are there" adds_up 'numafit_containers[{]' \
	"$("$bin/numafit" status --socket "$dir/run/numafitd.sock" --json | grep -o '"container":' | grep -c .)"
see "memory is held" [ "$(sum 'numafit_numa_node_memory_bytes.*type="memory".*held')" -gt 0 ]
see "updates are those that were sent to the runtime" is numafit_container_updates_total \
	"$(grep '"event":' "$dir/played" | grep -o '"updates":[0-9]*' | awk -F: '{ s += $2 } END { print s }')"
see "the journal is as large as its file" is numafit_journal_bytes "$(stat -c %s "$dir/run/journal")"
see "it was there twice" is numafit_nri_connects_total "$(log_count event=synchronized)"
see "no line was dropped" is numafit_log_lines_dropped_total 0
see "the process started lately" eval '[ $(($(date +%s) - $(value process_start_time_seconds | cut -d. -f1))) -lt 600 ]'
see "it has as many descriptors as the kernel says" is process_open_fds \
	"$(($(ls "/proc/$daemon/fd" | wc -l) + 1))" # and the connection that asked
see "it has raised its limit to what is allowed" is process_max_fds "$(ulimit -H -n)"
start_time=$(value process_start_time_seconds)
see "its start does not move" eval 'scrape && is process_start_time_seconds "$start_time"'

# Pages
see "the index lists them" eval 'gets 200 / && grep -q "^/metrics " "$dir/out"'
see "the status is numafit's" eval 'gets 200 /status && grep -q "\"machine\":\"kep3545-8\"" "$dir/out"'
for host in localhost:1 127.0.0.1:9465 10.1.2.3 '[::1]:1' '[fd00::1]'; do
	see "by $host too" gets 200 /status
done
for host in rebound.example:9465 localhost.example 127.0.0.1.example n1 ''; do
	see "and not by \"$host\"" eval 'gets 403 /status && ! grep -q kep3545-8 "$dir/out"'
	see "which may have the metrics" gets 200 /metrics
done
host=localhost
see "what is not there is not found" gets 404 /metric
see "HEAD has no body" eval 'ask HEAD /metrics && grep -q "^Content-Length: [1-9]" "$dir/out" && ! grep -q numafit_ "$dir/out"'
see "nothing can be written" eval 'ask POST /metrics && grep -q "^HTTP/1.1 405 " "$dir/out" && grep -qx "Allow: GET, HEAD" "$dir/out"'
see "it ends well" stop

# What takes long is not made anew for each that asks, nor after each event
body() { sed '1,/^$/d' "$dir/out"; }
for ms in 60000 300; do
	rm -rf "$dir/run"
	export NUMAFIT_FAULT_DOCUMENT_MS=$ms
	start metrics.address=127.0.0.1:0
	unset NUMAFIT_FAULT_DOCUMENT_MS
	for path in /status /metrics; do
		see "$path is there" gets 200 $path
		body >"$dir/first${path#/}"
		sleep 0.1
		see "and again" gets 200 $path
		see "as it was" eval 'body | cmp -s - "$dir/first${path#/}"'
	done
	see "hints are played" play hints
	sleep 1
	for path in /status /metrics; do
		see "$path is there" gets 200 $path
		if [ $ms = 60000 ]; then
			see "as it was before them" eval 'body | cmp -s - "$dir/first${path#/}"'
		else
			see "and says what has happened" eval 'body | grep -q "rejected:not-fit\|\"admitted\":[1-9]\|\"container\""'
		fi
	done
	stop
done

# Hints
rm -rf "$dir/run"
start metrics.address=127.0.0.1:0 topologyManagerPolicyOptions.prefer-closest-numa-nodes=true
see "hints are played" play hints
see "metrics are served" scrape
see "well-formed" well_formed
hinted() { log_count "event=decision cause=create.* hint=$1 "; }
for verdict in accepted accepted-stale repaired rejected:uid rejected:not-fit rejected:numa; do
	see "hints with the verdict $verdict are counted" eval \
		"[ $(hinted $verdict) -gt 0 ] && is 'numafit_scheduler_hints_total{verdict=\"$verdict\"}' $(hinted $verdict)"
done
stop

# Shadow
rm -rf "$dir/run"
start metrics.address=127.0.0.1:0 mode=shadow
see "shadow is played" play shadow
scrape
see "metrics are well-formed" well_formed
see "the mode is shown" is 'numafit_settings_info{mode="shadow",policy="restricted",scope="container"}' 1
see "agreement is counted" is 'numafit_shadow_comparisons_total{result="agrees"}' "$(log_count verdict=agrees)"
see "disagreement, too" is 'numafit_shadow_comparisons_total{result="disagrees"}' "$(log_count verdict=disagrees)"
stop

# A runtime that stays, as nobody reads what it says.
rm -rf "$dir/run"
printf 'steps:\n- create: {pod: web, qos: besteffort, count: 1000}\n' >"$dir/trace"
mkfifo "$dir/unread"
exec 4<>"$dir/unread"
start metrics.address=127.0.0.1:0 mode=off
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --json --trace "$dir/trace" >&4 2>&1 &
sim=$!
see "in mode off it is ready once the runtime is there" await gets 200 /readyz ok
see "verbosely" eval 'gets 200 "/readyz?verbose" && grep -qx "readyz check passed" "$dir/out"'
see "and says that it is connected" eval 'scrape && is numafit_nri_connected 1'
kill -KILL "$sim" # it waits for its reader
wait "$sim" 2>/dev/null
sim=
exec 4>&-
see "it is not when the runtime is gone" await gets 503 /readyz
see "and lives on" gets 200 /livez ok
# An address that another one has
taken=$port
first=$daemon
mkdir "$dir/second"
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/second.sock" \
	--set runDirectory="$dir/second" --set metrics.address="127.0.0.1:$taken" >"$dir/log" 2>&1 &
daemon=$!
see "an address that is taken is an error with a way out" await \
	grep -q 'level=error event=metrics-not-served error="address 127.0.0.1:.*Address already in use" action=' "$dir/log"
see "not the daemon's end" await grep -q event=started "$dir/log"
see "that is logged once" [ "$(log_count event=metrics-not-served)" = 1 ]
kill "$first"
wait "$first"
see "and had as soon as it is free" await grep -q event=metrics-served "$dir/log"
port=$taken
see "then it is served" gets 200 /livez ok
stop

# A run directory that is not there yet
rm -rf "$dir/run"
: >"$dir/log" # what it says of the daemon before must not be taken for this one's
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" \
	--set runDirectory="$dir/later/run" --set metrics.address=127.0.0.1:0 >"$dir/log" 2>&1 &
daemon=$!
see "without a run directory it starts" await grep -q event=started "$dir/log"
port=$(sed -n 's/.* event=metrics-served .*port=//p' "$dir/log")
see "says so" grep -q 'level=error event=journal-not-written error=".*No such file or directory" action="make runDirectory' "$dir/log"
see "is not ready" eval 'gets 503 /readyz && grep -q "^journal: runDirectory $dir/later/run: No such file or directory$" "$dir/out"'
see "but lives" gets 200 /livez ok
see "and a metric has it" eval 'scrape && is numafit_journal_failing 1'
mkdir "$dir/later"
see "it goes on when it is there" await grep -q event=journal-written-again "$dir/log"
see "no check of the journal fails any more" eval 'gets 503 "/readyz?verbose" && grep -qx "\[+\]journal ok" "$dir/out"'
see "nor the metric" eval 'scrape && is numafit_journal_failing 0'
stop

# Credentials that are not there yet
rm -rf "$dir/run"
start metrics.address=127.0.0.1:0 mode=off podsWatch.enabled=true apiServer.kubeconfig="$dir/kube"
see "credentials that are not there are an error with a way out" grep -q \
	"level=error event=credentials-unusable error=\".*/kube: No such file or directory\" action=" "$dir/log"
see "that is shown beside a check that passes" eval 'gets 503 "/readyz?verbose" &&
	grep -q "^\[+\]apiserver: the credentials for it cannot be used: $dir/kube: No such file or directory$" "$dir/out"'
see "by the status" eval '"$bin/numafit" status -o wide --socket "$dir/run/numafitd.sock" |
	grep -q "^API server: the credentials for it cannot be used: $dir/kube: No such file or directory$"'
see "and by a metric" eval 'scrape && is numafit_apiserver_credentials_usable 0 &&
	[ "$(value numafit_apiserver_credential_failures_total)" -gt 0 ]'
see "well-formed" well_formed
printf '%s\n' 'current-context: a' 'contexts: [{name: a, context: {cluster: c}}]' \
	'clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]' >"$dir/kube.new"
mv "$dir/kube.new" "$dir/kube"
see "they are used as soon as they are there" await grep -q event=credentials-usable "$dir/log"
see "which is shown" eval 'gets 503 "/readyz?verbose" && grep -qx "\[+\]apiserver ok" "$dir/out"'
see "and counted" eval 'scrape && is numafit_apiserver_credentials_usable 1'
see "an API server that is away is no matter of theirs" await grep -q event=apiserver-unreachable "$dir/log"
stop

# With too few descriptors, of which slow clients would take what the rest needs
rm -rf "$dir/run"
: >"$dir/log"
(
	ulimit -n 512
	exec "$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" \
		--set runDirectory="$dir/run" --set metrics.address=127.0.0.1:0
) >"$dir/log" 2>&1 &
daemon=$!
see "it runs with few descriptors" await grep -q event=started "$dir/log"
see "and says that they are few" grep -q 'event=descriptors-low limit=512 ' "$dir/log"
stop
see "the extender does not" eval 'sh -c "ulimit -n 512; $bin/numafit-extender" 2>&1 |
	grep "512 open files are allowed .*, and 1024 are needed"'

rm -rf "$dir/run"
start metrics.address=
see "with no address nobody is served" no grep -q event=metrics- "$dir/log"
stop

# The checker that finds nothing wrong above would find this.
wrong() { # TEXT: is refused
	printf "$1" | no awk -f test/unit/check_metrics.awk >/dev/null
}
head='# HELP a_total a\n# TYPE a_total counter\n'
hist='# HELP a_seconds a\n# TYPE a_seconds histogram\n'
see "the checker takes what is right" eval 'printf "${head}a_total{b=\"\\\\\\\\\"} 1\n" | awk -f test/unit/check_metrics.awk'
see "nothing is refused" wrong ''
see "a sample without its family" wrong 'a 1\n'
see "a family without HELP" wrong '# TYPE a_total counter\na_total 1\n'
see "a family without a sample" wrong "$head"
see "a family in two pieces" wrong "${head}a_total 1\n# HELP b b\n# TYPE b gauge\nb 1\n${head}a_total 1\n"
see "a sample of another family" wrong "${head}b 1\n"
see "a series twice" wrong "${head}a_total{b=\"c\"} 1\na_total{b=\"c\"} 1\n"
see "a counter without _total" wrong '# HELP a a\n# TYPE a counter\na 1\n'
see "a gauge with it" wrong '# HELP a_total a\n# TYPE a_total gauge\na_total 1\n'
see "a counter below zero" wrong "${head}a_total -1\n"
see "milliseconds" wrong '# HELP a_ms a\n# TYPE a_ms gauge\na_ms 1\n'
see "a quote in a label" wrong "${head}a_total{b=\"c\"d\"} 1\n"
see "a label twice" wrong "${head}a_total{b=\"c\",b=\"d\"} 1\n"
see "an escape that is none" wrong "${head}a_total{b=\"\\\\t\"} 1\n"
see "no value" wrong "${head}a_total\n"
see "a value that is none" wrong "${head}a_total one\n"
see "buckets that do not add up" wrong "${hist}a_seconds_bucket{le=\"1\"} 2\na_seconds_bucket{le=\"+Inf\"} 1\na_seconds_sum 1\na_seconds_count 1\n"
see "a count that is not the last bucket" wrong "${hist}a_seconds_bucket{le=\"+Inf\"} 1\na_seconds_sum 1\na_seconds_count 2\n"
see "bounds that do not ascend" wrong "${hist}a_seconds_bucket{le=\"2\"} 1\na_seconds_bucket{le=\"1\"} 1\na_seconds_bucket{le=\"+Inf\"} 1\na_seconds_sum 1\na_seconds_count 1\n"
see "no bucket for +Inf" wrong "${hist}a_seconds_bucket{le=\"1\"} 1\na_seconds_sum 1\na_seconds_count 1\n"
see "no sum" wrong "${hist}a_seconds_bucket{le=\"+Inf\"} 1\na_seconds_count 1\n"
finish
