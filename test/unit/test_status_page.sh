#!/bin/bash
# The status page as a real numafitd serves it: where it listens, which requests it answers, and with what.
# usage: BUILD=build/debug test/unit/test_status_page.sh
set -u
test=page short=yes
. test/unit/script_rig.sh
. test/unit/page_rig.sh
: >"$dir/out"

start() { # SETTING...
	set -- "$@" machine=kep3545-8 topologyManagerPolicy=restricted reservedSystemCPUs=0,64 metrics.address= \
		nri.socketPath="$dir/nri.sock" runDirectory="$dir/run" kubeletRootDirectory="$dir/kubelet"
	for setting; do
		set -- "$@" --set "$setting"
		shift
	done
	rm -f "$dir/log" # of the one before
	"$bin/numafitd" "$@" >"$dir/log" 2>&1 &
	daemon=$!
	await grep -q event=started "$dir/log"
	port=$(sed -n 's/.* event=status-page-served .*port \([0-9]*\)".*/\1/p' "$dir/log")
}
check() { run "$1" "$2" "$bin/numafitd" --check-config --set machine=kep3545-8 --set runDirectory="$dir/run" --set metrics.address= --set ui.address="$3" ${4:+--set "$4"}; }

check "an address of the network is refused" 2 0.0.0.0:9466
see "and it says why" says err 'ui.address: "0.0.0.0:9466" is no loopback address'
check "every address is refused" 2 :9466
check "unless an operator insists" 0 :0 ui.insecure=true
check "localhost will do" 0 localhost:0
check "a port must be one" 2 127.0.0.1:http
name=

export NUMAFIT_FAULT_DOCUMENT_MS=300 # so long it takes to make the status
start ui.address=localhost:0
unset NUMAFIT_FAULT_DOCUMENT_MS
see "the page is served" gets 200 GET /
see "it is whole" has '</html>'
for h in "Content-Type: text/html; charset=utf-8" "Content-Security-Policy: default-src 'none'; script-src 'self'" \
	"X-Content-Type-Options: nosniff" "Referrer-Policy: no-referrer" "Cache-Control: no-store"; do
	see "with $h" header "$h"
done
see "its script is" gets 200 GET /page.js
see "as a script" header "Content-Type: text/javascript"
see "HEAD has no body" eval 'gets 200 HEAD / && [ -z "$(body)" ]'
see "POST is refused" gets 405 POST /api/status
see "another name is refused" gets 403 GET / evil.example.com
see "so is another address" gets 403 GET /api/status 10.0.0.1
see "any port will do" gets 200 GET / 127.0.0.1:1
see "another site's page gets no data" gets 403 GET /api/status localhost 'Sec-Fetch-Site: cross-site'
see "refusals have the headers, too" header "Content-Security-Policy: default-src 'none'"
see "the page itself gets them" gets 200 GET /api/status localhost 'Sec-Fetch-Site: same-origin'
see "as JSON" header "Content-Type: application/json"
see "it is the status" has '"machine":"kep3545-8"'
see "another one that asks gets the same" eval 'body >"$dir/first" && sleep 0.1 && gets 200 GET /api/status && body | cmp -s - "$dir/first"'
see "the machine has cores" eval 'gets 200 GET /api/machine && has "{\"cpus\":\"1,65\"}"'
see "and distances" has '"distances":"10 '
see "nothing was decided yet" eval 'gets 200 GET /api/decisions && has "{\"count\":0,\"decisions\":[]}"'
see "what-if says where" eval 'gets 200 GET "/api/whatif?cpus=4&memory=4Gi" && has "\"op\":\"hold\""'
see "and why not" eval 'gets 200 GET "/api/whatif?cpus=400&memory=4Gi" && has "\"class\":\"does-not-exist\""'
see "a wrong question is one" eval 'gets 400 GET "/api/whatif?cpus=x" && has "{\"error\":\"cpus: "'
see "there is nothing else" gets 404 GET /api/
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --json --trace test/traces/demo.yaml >"$dir/played" 2>&1
see "then the last 50 decisions are there" eval 'gets 200 GET /api/decisions && has "\"admitted\":false" && has "\"pod\":\"trainer-0\""'
see "with the line of a refusal" has 'cannot place container triton (12 CPUs, 40Gi of memory)'
see "what-if changes nothing" eval 'gets 200 GET /api/status && body >"$dir/before" && gets 200 GET "/api/whatif?cpus=8&memory=1Gi" &&
	gets 200 GET /api/status && [ "$(body | grep -o "\"pool\":\"[^\"]*\"")" = "$(grep -o "\"pool\":\"[^\"]*\"" "$dir/before")" ]'
see "it stops" stop_daemon
start ui.address=
see "without an address there is none" [ -z "$port" ]
stop_daemon
start ui.address=127.0.0.1:0 ui.insecure=true
see "where any address will do, addresses are taken" gets 200 GET / 10.0.0.1:9466
see "and names are not" gets 403 GET / node1.example.com
stop_daemon
finish
