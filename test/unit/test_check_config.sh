#!/bin/sh
# All mistakes of a config file at once, each with its line, the same from every program that checks
# one: numafitd, numafit config, numafit-extender.
# usage: BUILD=build/debug test/unit/test_check_config.sh
set -u
test=check-config
. test/unit/script_rig.sh

config() { "$bin/numafit" config --check "$@"; }
daemon() { "$bin/numafitd" --check-config --set machine=kep3545-8 "$@"; }
extender() { "$bin/numafit-extender" --check-config --config "$dir/extender.yaml"; }

# Of the text, of values, of what does not go together
cat >"$dir/wrong.yaml" <<'X'
mode: on
mode: shadow
schedulerHint: {order: nobody}
refusalAction: evict
no key: {at: all}
metrics:
  address: localhost:http
reservedMemory:
- {numaNode: 0, limits: {memory: much}}
- {limits: {memory: 1Gi}}
cpuManagerPolicyOptions: {align-by-socket: 'true', full-pcpus-only: perhaps}
nodes:
- names: [gpu-*]
  settings: {runDirectory: /x, logLevl: debug}
- settings: {mode: off}
X
sed "s,^[0-9],config file $dir/wrong.yaml: line &," >"$dir/wanted" <<'X'
1: mode: "on" is not one of off, manage, shadow, release
2: mode: the key is there twice
3: schedulerHint.order: "nobody" is none of numafit, koordinator, katalyst, volcano, crane, godel
4: refusalAction: evict needs to know what made a pod: podsWatch.enabled must be true
5: "no key" is not a key: letters, digits, '-' and '_' are
7: metrics.address: "localhost:http" is no address to listen at: 127.0.0.1:9465, [::1]:9465 or, for every address, :9465 is expected
9: reservedMemory.0.limits.memory: "much" is not a quantity above 0
9: reservedMemory.0: limits is missing
10: reservedMemory.1: numaNode is missing
11: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "perhaps": invalid syntax
11: new static policy error: CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided
14: runDirectory: it belongs to the top of the file: what is for a node is found by it
14: logLevl: unknown key, did you mean logLevel?
15: nodes.1: which nodes it is for is missing: names or labels
--set: sharedPoolStep: "few" is not auto or a number from 0 to 1024
X
echo "15 mistakes" >>"$dir/wanted"
prints_wanted() { sed "s/^$1: //" "$dir/err" | diff "$dir/wanted" - >"$dir/said"; } # PROGRAM
run "a file with many mistakes" 2 config "$dir/wrong.yaml" --set sharedPoolStep=few
see "has all of them printed, in their order" prints_wanted "numafit config"
see "and nothing is said to be right" is out ""
run "the daemon's own check of it" 2 daemon --config "$dir/wrong.yaml" --set sharedPoolStep=few
see "prints the same" prints_wanted numafitd
run "a start with it" 2 "$bin/numafitd" --config "$dir/wrong.yaml" --set sharedPoolStep=few --set machine=kep3545-8
see "prints all that keeps it from starting" says err "numafitd: 14 mistakes"
rm -f "$dir/said"

printf 'refusalAction: evict\nmode: on\nlogLevel: [debug\npodsWatch: {enabled: true}\n' >"$dir/torn.yaml"
torn="config file $dir/torn.yaml: line 4: did not find expected ',' or ']'"
run "a file that is no YAML from some line on" 2 config "$dir/torn.yaml"
see "has one mistake, and none that may only follow from it" is err "numafit config: $torn"
run "the daemon's own check of it" 2 daemon --config "$dir/torn.yaml"
see "finds the same" is err "numafitd: $torn"
printf 'cpuManagerPolicyOptions: {full-pcpus-only: true\nlogLevel: debug\n' >"$dir/torn.yaml"
run "a bracket that is not closed" 2 config "$dir/torn.yaml"
see "is not taken for a value of several words" is err \
	"numafit config: config file $dir/torn.yaml: line 2: did not find expected ',' or '}'"
printf 'listen: [127.0.0.1\nnothing: 1\n' >"$dir/extender.yaml"
run "numafit-extender with a file that is no YAML" 2 extender
see "has one mistake, too" [ "$(wc -l <"$dir/err")" -eq 1 ]
awk 'BEGIN { for (i = 1; i <= 300; i++) print "key" i ": 1" }' >"$dir/many.yaml"
run "300 mistakes" 2 config "$dir/many.yaml"
see "are too many: 100 of them are printed" [ "$(wc -l <"$dir/err")" -eq 101 ]
see "and that there are more" says err "numafit config: the first 100 mistakes: there are more"
awk 'BEGIN { print "nodes:"; for (i = 0; i < 70; i++) print "- names: [a]" }' >"$dir/sections.yaml"
run "more sections than there may be" 2 config "$dir/sections.yaml"
see "are one mistake each" says err "numafit config: 6 mistakes"

# What only this machine shows
mkdir "$dir/kubelet"
touch "$dir/file"
echo 'cpuManagerPolicy: perhaps' >"$dir/kubelet.yaml"
cat >"$dir/here.yaml" <<X
metrics: {address: "192.0.2.1:9465"}
runDirectory: $dir/file
kubeletConfigFile: $dir/kubelet.yaml
reservedSystemCPUs: 0,200
machine: kep3545-8
reservedMemory: [{numaNode: 9, limits: {memory: 1Gi}}]
X
run "another machine's address, CPUs and NUMA nodes, a file as directory, a file that is no kubelet's" 2 \
	"$bin/numafitd" --check-config --config "$dir/here.yaml"
see "are mistakes, all of them" is err "numafitd: config file $dir/here.yaml: line 1: metrics.address: address 192.0.2.1:9465: Cannot assign requested address
numafitd: config file $dir/here.yaml: line 2: runDirectory: $dir/file: Not a directory
numafitd: config file $dir/here.yaml: line 3: kubeletConfigFile: $dir/kubelet.yaml: cpuManagerPolicy: \"perhaps\" is not one of none, static
numafitd: config file $dir/here.yaml: line 4: reservedSystemCPUs: kep3545-8 has no CPU 200
numafitd: config file $dir/here.yaml: line 6: reservedMemory.0: the reserved memory configuration references a NUMA node 9 that does not exist on this machine
numafitd: 5 mistakes"
run "what is wrong on this machine alone" 0 config "$dir/here.yaml"
run "a machine that is not there" 2 "$bin/numafitd" --check-config --set machine=nowhere
see "is a mistake, too" says err "numafitd: --set: machine: "
run "a run directory whose path is too long for a socket's" 2 daemon --set runDirectory="/$(printf '%0100d' 0)"
see "is one" says err "is too long for the path of a socket in it: 93 bytes at most"
echo '{"policyName":"static","defaultCpuSet":"","checksum":1353318690}' >"$dir/kubelet/cpu_manager_state"
run "beside a static kubelet" 0 daemon --set kubeletRootDirectory="$dir/kubelet"
see "nothing would be placed" says out "config ok: mode shadow"
see "and it says why" says out "warning: the kubelet's cpuManagerPolicy is static in $dir/kubelet: numafitd starts in mode shadow; set it to none, or besideStaticKubelet to manage"
echo 'cpuManagerPolicy: static' >"$dir/kubelet.yaml"
rm "$dir/kubelet/cpu_manager_state"
run "beside one that will be static" 0 daemon --set kubeletRootDirectory="$dir/kubelet" --set kubeletConfigFile="$dir/kubelet.yaml"
see "it says so" says out "warning: the kubelet's cpuManagerPolicy is static in $dir/kubelet.yaml: once the kubelet has started with it, numafitd's mode is shadow"

run "in mode shadow with reports, without the kubelet's config file" 0 daemon --set mode=shadow \
	--set nodeResourceTopology.enabled=true --set kubeletConfigFile="$dir/none"
see "it says what is missing then" says out "warning: kubeletConfigFile: $dir/none: No such file or directory: schedulers do not get the kubelet's policy"

# numafit-extender's
cat >"$dir/extender.yaml" <<'X'
listen: 0.0.0.0:9467
apiTimeout: 4 s
nothing: 1
metrics: {address: "192.0.2.1:9468"}
maxHeldBytes: 64Mi
tls: {keyFile: none}
kubeconfig: nowhere
plugins:
- name: NodeResourceTopologyMtch
- weight: 0
X
sed "s,^[0-9],numafit-extender: config file $dir/extender.yaml: line &," >"$dir/wanted" <<'X'
1: listen: at 0.0.0.0:9467 anybody could bind pods: set tls.clientCAFile, tls.certFile and tls.keyFile, or an address of the loopback, or insecure: true
2: apiTimeout: "4 s" is not a duration from 100ms to 10m
3: unknown key "nothing"
4: metrics.address: address 192.0.2.1:9468: Cannot assign requested address
5: maxHeldBytes: less than maxRequestBytes
6: tls: certFile and keyFile go together
6: tls.keyFile: none: No such file or directory
7: kubeconfig: nowhere: No such file or directory
9: plugins: there is no "NodeResourceTopologyMtch"
10: plugins.1.weight: 0 is not within 1 and 1000000
10: plugins: one has no name
X
echo "numafit-extender: 11 mistakes" >>"$dir/wanted"
run "numafit-extender with many mistakes" 2 extender
see "prints all of them" cmp "$dir/wanted" "$dir/err"
printf '%s\n' 'listen: 127.0.0.1:9467' "tls: {certFile: $dir/file, keyFile: $dir/file}" 'metrics: {address: ":9467"}' \
	>"$dir/extender.yaml"
run "files that are no certificates, and a port twice" 2 extender
see "are mistakes" says err "numafit-extender: config file $dir/extender.yaml: line 2: tls: "
see "both" says err "numafit-extender: config file $dir/extender.yaml: line 3: metrics.address: :9467: listen has that port"
echo 'listen: 127.0.0.1:9467' >"$dir/extender.yaml"
run "a file that is right" 0 extender
finish
