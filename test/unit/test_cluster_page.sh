#!/bin/bash
# The page of the cluster as a real numafit-extender serves it: where it listens, which requests it answers,
# and with what, before anything is known of the cluster.
# usage: BUILD=build/debug test/unit/test_cluster_page.sh
set -u
test=cluster-page short=yes
. test/unit/script_rig.sh
. test/unit/page_rig.sh
: >"$dir/out"

# an API server at which nobody listens
cat >"$dir/kubeconfig" <<'END'
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: k, user: u}}]
END
settings() { printf 'listen: 127.0.0.1:0\nkubeconfig: %s\nui: %s\n' "$dir/kubeconfig" "$1" >"$dir/extender.yaml"; } # UI
start() { # UI
	settings "$1"
	rm -f "$dir/log" # of the one before
	"$bin/numafit-extender" --config "$dir/extender.yaml" >"$dir/log" 2>&1 &
	daemon=$!
	await grep -q event=started "$dir/log"
	port=$(sed -n 's/.* event=status-page-served .*port \([0-9]*\)".*/\1/p' "$dir/log")
	verbs=$(sed -n 's/.* event=started .* port=\([0-9]*\).*/\1/p' "$dir/log")
}
check() { # WHAT STATUS UI
	settings "$3"
	run "$1" "$2" "$bin/numafit-extender" --check-config --config "$dir/extender.yaml"
}

check "an address of the network is refused" 2 '{address: "0.0.0.0:9469"}'
see "and it says why" says err 'ui.address: "0.0.0.0:9469" is no loopback address, such as 127.0.0.1:9469; another one takes ui.insecure: true'
check "every address is refused" 2 '{address: ":9469"}'
check "unless an operator insists" 0 '{address: ":0", insecure: true}'
check "localhost will do" 0 '{address: "localhost:0"}'
see "and the check says it" says out "page of the cluster at localhost:0"
check "a port must be one" 2 '{address: "127.0.0.1:http"}'
check "this machine must have the address" 2 '{address: "192.0.2.1:9469", insecure: true}'
check "without an address there is nothing to check" 0 '{poolLabel: example.com/pool}'
name=

start '{address: "localhost:0", poolLabel: "<b>"}'
see "the page is served" gets 200 GET /
see "it is the cluster's" has '<title>numafit cluster</title>'
see "it is whole" has '</html>'
for h in "Content-Type: text/html; charset=utf-8" "Content-Security-Policy: default-src 'none'; script-src 'self'" \
	"X-Content-Type-Options: nosniff" "Referrer-Policy: no-referrer" "Cache-Control: no-store"; do
	see "with $h" header "$h"
done
for file in /cluster.js /shared.js; do
	see "$file is served" gets 200 GET $file
	see "$file is a script" header "Content-Type: text/javascript"
done
for file in /cluster.css /page.css; do
	see "$file is served" gets 200 GET $file
	see "$file is a style sheet" header "Content-Type: text/css"
done
see "a node's page is not" gets 404 GET /page.js
see "HEAD has no body" eval 'gets 200 HEAD / && [ -z "$(body)" ]'
see "POST is refused" gets 405 POST /api/cluster
see "another name is refused" gets 403 GET / evil.example.com
see "so is another address" gets 403 GET /api/cluster 10.0.0.1
see "and no Host at all" gets 403 GET /api/cluster ""
see "any port will do" gets 200 GET / 127.0.0.1:1
see "another site's page gets no data" gets 403 GET /api/cluster localhost 'Sec-Fetch-Site: cross-site'
see "refusals have the headers, too" header "Content-Security-Policy: default-src 'none'"
see "the page itself gets them" gets 200 GET /api/cluster localhost 'Sec-Fetch-Site: same-origin'
see "as JSON" header "Content-Type: application/json"
see "which says what is not known yet" has '"unready":"the nodes are not known yet"'
see "the label is text" has '"pool_label":"<b>"'
see "no node is known" has '"all":true,"nodes":[],"gone":[]'
see "schedulers are not answered here" gets 405 POST /filter
see "nor by another method" gets 404 GET /filter
see "nor are metrics" gets 404 GET /metrics
crowd() { # more at once than may wait, right after an answer: the first of them are answered, and the last is put off
	ask GET /api/cluster
	fds=()
	for _ in $(seq 17); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port" || return 1
		printf 'GET /api/cluster HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&"$fd"
		fds+=("$fd")
	done
	for fd in "${fds[@]}"; do head -n 1 <&"$fd"; exec {fd}<&-; done >"$dir/said"
	[ "$(grep -c ' 200 ' "$dir/said")" -eq 16 ] && grep -q ' 429 ' "$dir/said"
}
see "of many that ask at once 16 are answered, and others put off" await crowd
page=$port port=$verbs
see "where the verbs are the page is not" gets 404 GET /api/cluster
see "nor by another path" gets 404 GET /cluster.js
port=$page
see "it stops" stop_daemon
start '{}'
see "without an address there is none" [ -z "$port" ]
stop_daemon
start '{address: "127.0.0.1:0", insecure: true}'
see "where any address will do, addresses are taken" gets 200 GET / 10.0.0.1:9469
see "and names are not" gets 403 GET / node1.example.com
stop_daemon
finish
