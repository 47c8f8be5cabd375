#!/bin/sh
# numafit config, and numafitd --check-config with a file for many nodes.
# usage: BUILD=build/debug test/unit/test_config.sh
set -u
test=config
. test/unit/script_rig.sh

config() { "$bin/numafit" config "$@"; }
documented() { # the table in deploy/docs/reference-settings.md is what is printed
	awk '/^\| key \| takes \|/ { on = 1 } on && !/^\|/ { exit } on' deploy/docs/reference-settings.md | cmp - "$dir/out"
}

run "the reference" 0 config --markdown
see "is the one in deploy/docs/reference-settings.md" documented
run "one setting" 0 config --explain sharedPoolStep
see "is explained" is out "sharedPoolStep
    takes:   auto | number of CPUs, 0 to 1024
    default: auto
    change:  while numafitd runs
    sharedPool.enforce updates: CPUs that a NUMA node's shared pool gives up or gets back beyond need, so that not every container changes it; a quarter of the NUMA node's CPUs at most. auto: none as long as fewer than 30 containers share the pool, else 16"
run "one that is read at the start" 0 config --explain nri.socketPath
see "says so" says out "change:  needs a restart of numafitd"
run "a map's settings" 0 config --explain schedulerHint
see "are all there" [ "$(grep -c '^schedulerHint\.' "$dir/out")" -eq 5 ]
run "all of them" 0 config --explain
see "are many" [ "$(grep -c 'takes:' "$dir/out")" -gt 60 ]
run "an unknown one" 1 config --explain logLevl
see "is named with the key that is meant" is err "numafit config: logLevl: unknown key, did you mean logLevel?"
run "a map that is none" 1 config --explain nr
run "nothing to do is bad usage" 2 config
run "two things are, too" 2 config --explain --markdown
run "an operand too many is, too" 2 config --check a b
run "a label without a value is, too" 2 config --check a --node-label pool
run "it explains itself" 0 config --help
run "the example" 0 config --check deploy/numafitd.yaml
see "is the defaults" is out "# every setting has its default"
run "a file that is not there" 2 config --check "$dir/none"
see "is named" is err "numafit config: config file: $dir/none: No such file or directory"

cat >"$dir/fleet.yaml" <<'X'
topologyManagerPolicy: restricted
nodes:
- names: [gpu-*]
  settings: {topologyManagerPolicy: single-numa-node}
- labels: {node.kubernetes.io/instance-type: m5.metal}
  settings: {mode: shadow, logLevel: warn}
unmatchedNodes: off
X
run "a node by its name" 0 config --check "$dir/fleet.yaml" --node-name gpu-7 --node-label pool=x
see "has its section's settings" is out "nodes.0 (line 3): for this node
nodes.1 (line 5): for other nodes
topologyManagerPolicy: single-numa-node"
run "a node by its labels" 0 config --check "$dir/fleet.yaml" --node-name a --node-label pool=x \
	--node-label node.kubernetes.io/instance-type=m5.metal --set logLevel=debug
see "likewise, and the command line above" is out "nodes.0 (line 3): for other nodes
nodes.1 (line 5): for this node
mode: shadow
topologyManagerPolicy: restricted
logLevel: debug"
run "a node whose labels are not known" 0 config --check "$dir/fleet.yaml" --node-name a
see "is reported so" is out "nodes.0 (line 3): for other nodes
nodes.1 (line 5): by labels, and this node's are not known: not used
no section is for this node, and unmatchedNodes is off: mode off
mode: off
topologyManagerPolicy: restricted"
echo "- {names: [x], settings: {mode: on}}" >>"$dir/fleet.yaml"
sed -i 's/^unmatchedNodes.*//' "$dir/fleet.yaml"
run "a section that is wrong for others" 2 config --check "$dir/fleet.yaml" --node-name gpu-7
see "is wrong" is err "numafit config: config file $dir/fleet.yaml: line 8: mode: \"on\" is not one of off, manage, shadow, release"
run "what does not go together" 2 config --check /dev/null --set refusalAction=evict
see "is refused" says err "refusalAction: evict needs"

sed -i '/mode: on/d' "$dir/fleet.yaml"
run "the daemon's own check" 0 "$bin/numafitd" --check-config --config "$dir/fleet.yaml" \
	--set machine=kep3545-8 --node-name gpu-7 --node-label pool=x
see "lists sections, too" is out "config ok: mode manage, policy single-numa-node, machine kep3545-8 with 8 NUMA nodes and 128 CPUs
nodes.0 (line 3): for this node
nodes.1 (line 5): for other nodes"
on_host() { # NAME COMMAND...
	unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
}
if on_host GPU-7 true 2>/dev/null; then
	run "a host whose name has large letters" 0 on_host GPU-7 env -u NODE_NAME "$bin/numafitd" \
		--check-config --config "$dir/fleet.yaml" --set machine=kep3545-8
	see "is a node whose name has none" says out "nodes.0 (line 3): for this node"
else
	number=$((number + 1))
	echo "ok $number # SKIP a host whose name has large letters: only root may name one"
fi
# A kubeconfig, as far as it can be checked without the files that it names
kubeconfig() { # USER: into kube
	printf '%s\n' 'current-context: a' 'contexts: [{name: a, context: {cluster: c, user: u}}]' \
		'clusters: [{name: c, cluster: {server: https://x, certificate-authority: none}}]' \
		"users: [{name: u, user: {$1}}]" >"$dir/kube"
}
daemon() { "$bin/numafitd" --check-config --set machine=kep3545-8 "$@"; }
run "a kubeconfig that is not here" 0 config --check /dev/null --set apiServer.kubeconfig="$dir/kube"
see "cannot be checked" is out "apiServer.kubeconfig: $dir/kube
apiServer.kubeconfig not checked: $dir/kube: No such file or directory"
run "on the node" 0 daemon --set apiServer.kubeconfig="$dir/kube"
see "it may come later" says out "apiServer.kubeconfig not checked: $dir/kube: No such file or directory"
kubeconfig 'tokenFile: none'
run "one whose files are still to come" 0 config --check /dev/null --set apiServer.kubeconfig="$dir/kube"
see "is right" is out "apiServer.kubeconfig: $dir/kube"
run "on the node" 0 daemon --set apiServer.kubeconfig="$dir/kube"
see "likewise" is out "config ok: mode manage, policy best-effort, machine kep3545-8 with 8 NUMA nodes and 128 CPUs"
run "a context that it has not" 2 config --check /dev/null --set apiServer.kubeconfig="$dir/kube" --set apiServer.context=b
see "is an error" says err 'there is no context "b", but: a'
kubeconfig 'exec: {command: aws}'
run "a plugin" 2 config --check /dev/null --set apiServer.kubeconfig="$dir/kube"
see "is an error" says err "numafit config: --set: apiServer.kubeconfig: $dir/kube: line 4: user u: exec: plugins are not supported"
run "on the node" 2 daemon --set apiServer.kubeconfig="$dir/kube"
see "likewise" says err "numafitd: --set: apiServer.kubeconfig: $dir/kube: line 4: user u: exec: plugins are not supported"
see "and nothing is said to be right" is out ""

run "a setting that changes nothing beside the others" 0 config --check /dev/null \
	--set topologyManagerPolicy=single-numa-node --set topologyManagerPolicyOptions.prefer-closest-numa-nodes=true
see "is named, with the reason" says out "warning: topologyManagerPolicyOptions.prefer-closest-numa-nodes: it changes no decision: only the policies best-effort and restricted look at distances"
run "on the node" 0 daemon --set reservedSystemCPUs=0 --set kubeReserved.cpu=2
see "likewise" says out "warning: kubeReserved.cpu: it changes no decision: reservedSystemCPUs counts"
run "CPUs that are counted" 0 daemon --set kubeReserved.cpu=2
see "are not taken for that" is out "config ok: mode manage, policy best-effort, machine kep3545-8 with 8 NUMA nodes and 128 CPUs"

run "every setting is printed" 0 "$bin/numafitd" --print-config --config "$dir/fleet.yaml" --set nodeName=gpu-7
see "with its value and what a change needs" says out "topologyManagerPolicy: single-numa-node
    none | best-effort | restricted | single-numa-node; default best-effort; reloadable."
see "or a restart" says out "default this; needs a restart."
run "a label that is none" 2 "$bin/numafitd" --node-label pool
see "is reported" is err 'numafitd: --node-label: "pool": KEY=VALUE is expected (see numafitd --help)'
finish
