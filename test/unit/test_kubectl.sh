#!/bin/sh
# kubectl numafit: the plugin in deploy/, with a kubectl that answers for a cluster of three nodes. On
# worker-0 it runs the real numafit beside a real numafitd.
# usage: BUILD=build/debug test/unit/test_kubectl.sh
set -u
test=kubectl short=yes
. test/unit/script_rig.sh

mkdir "$dir/path"
cp deploy/kubectl-numafit "$dir/path"
# KUBE_MAY: the rights that there are not. Calls are in $dir/calls, one a line.
cat >"$dir/path/kubectl" <<'X'
#!/bin/sh
printf '%s\n' "$*" >>"$DIR/calls"
while :; do
	case $1 in
	--context=* | --kubeconfig=*) shift ;;
	*) break ;;
	esac
done
all=" $* "
deny() { echo "Error from server (Forbidden): $1 is forbidden" >&2; exit 1; }
lacks() { case ",${LACKS:-}," in *",$1,"*) return 0 ;; *) return 1 ;; esac; }
case $all in
" auth can-i get pods -nnumafit-system "*) lacks system-get && echo "no" && exit 1; echo yes ;;
" auth can-i list pods -nnumafit-system "*) lacks list && echo "no - no role" && exit 1; echo yes ;;
" auth can-i create pods --subresource=exec -nnumafit-system "*) lacks exec && echo no && exit 1; echo yes ;;
" auth can-i get pods "*) lacks get && echo no && exit 1; echo yes ;;
" get pod "*)
	lacks get && deny pods
	if lacks server; then
		echo 'E1123 07:19:44.235148   30246 memcache.go:265] "Unhandled Error" err="couldn'"'"'t get current server API group list"' >&2
		echo "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?" >&2
		exit 1
	fi
	lacks login && echo "error: You must be logged in to the server (Unauthorized)" >&2 && exit 1
	case $all in
	*" get pod inference -nai -o json "*)
		echo '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"inference","namespace":"ai","uid":"u"},"spec":{
			"containers":[{"name":"triton","resources":{"limits":{"cpu":"12","memory":"40Gi"}}}]}}'
		;;
	*" get pod escaped -nai -o json "*) cat "$DIR/escaped.json" ;;
	*" get pod inference "* | *" get pod escaped "*) printf 'ai worker-0' ;;
	*" get pod it's "*) printf 'ai worker-0' ;;
	*" get pod waiting "*) printf 'ai ' ;;
	*" get pod elsewhere "*) printf 'ai worker-9' ;;
	*) printf ' ' ;;
	esac
	;;
" get pods "*)
	lacks list && deny pods
	case $all in
	*spec.nodeName=worker-0*) echo "worker-0 numafitd-a" ;;
	*spec.nodeName=worker-1*) echo "worker-1 numafitd-b" ;;
	*spec.nodeName=*) ;;
	*) printf 'worker-0 numafitd-a\nworker-1 numafitd-b\n' ;;
	esac
	;;
" exec "*)
	lacks exec && deny pods/exec
	lacks system-get && deny pods
	case $all in
	*" numafitd-b "*) echo "error: unable to upgrade connection: container not found (\"numafitd\")" >&2 && exit 1 ;;
	esac
	while [ "$1" != -- ]; do shift; done
	verb=$3
	[ "$verb" != --help ] || exit 0
	shift 3
	case $verb in
	status) "$NUMAFIT" status --socket "$DIR/run/numafitd.sock" "$@" ;;
	explain | whatif | refusals)
		[ "$*" != "-f -" ] || { cat >"$DIR/read" && exec <"$DIR/read"; }
		"$NUMAFIT" "$verb" --run-directory "$DIR/run" "$@"
		;;
	esac
	code=$?
	[ $code -eq 0 ] || echo "command terminated with exit code $code" >&2
	exit $code
	;;
*) echo "kubectl: what is $*?" >&2 && exit 9 ;;
esac
X
chmod +x "$dir/path/kubectl"
DIR=$dir NUMAFIT=$(realpath "$bin/numafit") PATH=$dir/path:$PATH
export DIR NUMAFIT PATH
plugin() { : >"$dir/calls" && kubectl-numafit "$@"; }
no() { ! "$@"; }
called() { grep -qxF -e "$1" "$dir/calls"; } # LINE
nr_calls() { [ "$(wc -l <"$dir/calls")" -eq "$1" ]; }

"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
	--set topologyManagerPolicy=restricted --set reservedSystemCPUs=0,64 --set metrics.address= >"$dir/log" 2>&1 &
daemon=$!
"$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --reserved 0,64 --trace test/traces/demo.yaml \
	>"$dir/out" 2>&1
report $? "containers come to worker-0"

run "a pod's explanation" 0 plugin explain inference -n ai
see "is the one of the daemon on its node" says out "ai/inference/triton: accepted"
see "which was found by the pod" called "get pod inference -nai --ignore-not-found -o jsonpath={.metadata.namespace} {.spec.nodeName}"
see "and by the label of the DaemonSet" called "get pods -n numafit-system -l app.kubernetes.io/name=numafit --field-selector status.phase=Running,spec.nodeName=worker-0 -o jsonpath={range .items[*]}{.spec.nodeName}{\" \"}{.metadata.name}{\"\\n\"}{end}"
see "and asked by exec" called "exec -n numafit-system numafitd-a -c numafitd -- numafit explain -n ai inference"
see "with three calls" nr_calls 3
run "a container's, in the context's namespace, with options" 0 plugin explain inference/triton --all -o table
see "goes on as it is" called "exec -n numafit-system numafitd-a -c numafitd -- numafit explain -n ai inference/triton --all -o table"
run "a name with an apostrophe" 1 plugin --context "it's" explain "it's" -n ai --run-directory "$dir/run"
see "goes on whole" called "--context=it's exec -n numafit-system numafitd-a -c numafitd -- numafit explain -n ai it's --run-directory $dir/run"
see "and the answer's no is the exit code" says err "numafit explain: the journal in $dir/run has nothing of \"it's\""
see "without kubectl's words on it" no says err "command terminated"
run "kubectl's own options" 0 plugin --kubeconfig "$dir/my config" explain inference --context=c
see "are its own again" called "--kubeconfig=$dir/my config --context=c get pod inference --ignore-not-found -o jsonpath={.metadata.namespace} {.spec.nodeName}"
run "a pod that is gone, by its node" 0 plugin explain --node worker-0 inference -n ai
see "is not looked for" nr_calls 2
run "another namespace of numafitd's" 0 plugin status worker-0 --numafit-namespace numa
see "is where it is looked for" called "exec -n numa numafitd-a -c numafitd -- numafit status"

run "a node's status" 0 plugin status worker-0
see "is the daemon's" says out "mode manage, policy restricted"
run "a pod's" 0 plugin status pod/inference -n ai -o json
see "is its node's" says out '"machine"'
run "what would fit on a node" 0 plugin whatif worker-0 --cpus 2 --memory 1Gi
run "what would not" 1 plugin whatif worker-0 --cpus 100 --memory 1Gi
see "is a no" called "exec -n numafit-system numafitd-a -c numafitd -- numafit whatif --cpus 100 --memory 1Gi"
cat >"$dir/pod.yaml" <<'X'
kind: Pod
apiVersion: v1
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {cpu: 2, memory: 1Gi}}}]}
X
run "a pod in a file" 0 plugin whatif worker-0 -f "$dir/pod.yaml"
see "is read here, not on the node" called "exec -i -n numafit-system numafitd-a -c numafitd -- numafit whatif -f -"
run "room for a pod in a file" 0 plugin defrag worker-0 --for "$dir/pod.yaml" --moves 2
see "is read here as well" called "exec -i -n numafit-system numafitd-a -c numafitd -- numafit defrag --for - --moves 2"
run "and so it is with -f" 0 plugin defrag worker-0 -f "$dir/pod.yaml" --apply
see "for whoever knows that" called "exec -i -n numafit-system numafitd-a -c numafitd -- numafit defrag -f - --apply"
run "an option of whatif" 2 plugin defrag worker-0 --cpus 8
see "is none of it" says err "defrag: unknown option --cpus"
run "another pod like one that is there" 1 plugin whatif inference -n ai
see "is asked for with its specification" called "get pod inference -nai -o json"
see "and would not fit" says out "12 CPUs"
cat >"$dir/escaped.json" <<'X'
{"kind":"Pod","apiVersion":"v1","metadata":{"name":"escaped","namespace":"ai","uid":"u"},
"spec":{"containers":[{"name":"c","args":["a\nb \\. \"q\" \\c\t\u0041"],"resources":{"limits":{"cpu":"2","memory":"1Gi"}}}]}}
X
run "a pod whose JSON has backslashes" 0 plugin whatif escaped -n ai
see "is passed on byte for byte" cmp "$dir/escaped.json" "$dir/read"
run "something else on a pod's node" 0 plugin whatif inference -n ai --cpus 2
see "is asked for by itself" called "exec -n numafit-system numafitd-a -c numafitd -- numafit whatif --cpus 2"
run "refusals of a node" 0 plugin refusals worker-0 --since 1h
see "are asked for there" says out "inference"
run "refusals of all nodes, one of which does not answer" 3 plugin refusals -n ai
see "are printed for those that do" line out inference
see "under the node's name" says out "node worker-0:"
see "and the other is named" says err "container not found"
run "all nodes at a glance, one of which does not answer" 3 plugin top
see "are a line each" is out "NODE      MODE    POLICY      NUMA NODES  CPUS  EXCLUSIVE  POOL  FREE MEMORY   CONTAINERS  REFUSED
worker-0  manage  restricted  8           128   106        22    140 of 464Gi  16          1"
see "and the other is named" says err "worker-1: kubectl numafit: unable to upgrade connection"
run "one node at a glance" 0 plugin top worker-0
see "has one line" [ "$(wc -l <"$dir/out")" -eq 2 ]

run "a pod that is not there" 3 plugin explain nosuch -n ai
see "is named, with what can be done" says err "kubectl numafit: there is no pod ai/nosuch."
see "such as asking its node" says err "--node NODE asks the numafitd that it was on"
run "what is neither a node nor a pod" 3 plugin status nosuch
see "is both" says err "there is no pod nosuch, and no numafitd on a node of that name."
run "a pod that waits for a node" 3 plugin explain waiting -n ai
see "is not known to any numafitd" says err "pod ai/waiting is on no node yet"
run "a pod on a node without numafitd" 3 plugin explain elsewhere -n ai
see "cannot be explained" says err "kubectl numafit: no numafitd runs on node worker-9 (no running pod with label app.kubernetes.io/name=numafit in namespace numafit-system there)."

export LACKS
LACKS=get
run "without the right to get the pod" 3 plugin explain inference -n ai
see "is said in one line, with what to do" is err "kubectl numafit: you may not get pods in namespace ai: whoever administers the cluster can allow it, as in deploy/kubectl-numafit-role.yaml (kubectl create rolebinding kubectl-numafit -n numafit-system --role=kubectl-numafit --user=YOU); without it kubectl describe pod shows why a pod was refused"
LACKS=list
run "without the right to list numafitd's pods" 3 plugin status worker-0
see "that is named" says err "kubectl numafit: you may not list pods in namespace numafit-system: whoever"
LACKS=exec,system-get
run "without the right to run numafit there" 3 plugin status worker-0
see "both rights are named" says err "you may not get pods in namespace numafit-system and create pods/exec in namespace numafit-system: whoever"
see "in one line" [ "$(wc -l <"$dir/err")" -eq 1 ]
LACKS=server
run "an API server that does not answer" 3 plugin explain inference -n ai
see "is said in one line, without kubectl's log" is err "kubectl numafit: no API server answers kubectl (The connection to the server 10.0.0.1:6443 was refused): check that the cluster is up and that kubectl's context is the right one, or name another by --context or --kubeconfig"
see "and is not asked about rights" nr_calls 1
LACKS=login
run "credentials that are not valid any more" 3 plugin explain inference -n ai
see "are named" is err "kubectl numafit: the API server does not accept your credentials (You must be logged in to the server (Unauthorized)): log in to the cluster anew, or name another user by --context or --kubeconfig"
LACKS=

run "nothing to do" 2 plugin
run "an unknown verb" 2 plugin explane inference
see "is named with the one that is meant" is err "kubectl numafit: there is no verb explane, did you mean explain? (see kubectl numafit --help)"
run "a misspelt option of its own" 2 plugin explain inference --numafit-namspace x
see "is named with the one that is meant" is err "kubectl numafit: explain: unknown option --numafit-namspace, did you mean --numafit-namespace? (see kubectl numafit --help)"
see "before anything is asked" nr_calls 0
run "a misspelt option of the verb" 2 plugin refusals --sinc=1h
see "is, too" is err "kubectl numafit: refusals: unknown option --sinc, did you mean --since? (see kubectl numafit --help)"
run "another verb's option" 2 plugin top --since 1h
see "is unknown" is err "kubectl numafit: top: unknown option --since (see kubectl numafit --help)"
run "an option before the verb" 2 plugin --contxt c explain inference
see "is misspelt, too" is err "kubectl numafit: unknown option --contxt, did you mean --context? (see kubectl numafit --help)"
run "what a newer numafit may know" 2 plugin explain inference -n ai -- --newest
see "goes on unread" called "exec -n numafit-system numafitd-a -c numafitd -- numafit explain -n ai inference --newest"
eval "$(sed -n '/^options_of() {/,/^}/p' deploy/kubectl-numafit)"
for verb in explain whatif status refusals; do
	name="$verb on a node"
	"$NUMAFIT" $verb --help | sed -n '/^options:/,/^[a-z].*:$/s/^  \(-.\|  \)[, ] \(--[a-z-]*\).*/\1 \2/p' | tr -s ' ' '\n' |
		grep -vxE -e '|-n|--namespace|-h|--help|-V|--version' | sort >"$dir/out"
	options_of $verb | tr ' ' '\n' | sort >"$dir/said"
	see "has just the options that the plugin knows" cmp "$dir/out" "$dir/said"
	see "which are some" [ "$(wc -l <"$dir/said")" -ge 5 ]
done
rm "$dir/said"
run "its version" 0 plugin -V
see "is numafit's" [ "$(sed 's/^kubectl-//' "$dir/out")" = "$("$NUMAFIT" --version)" ]
run "the long form" 0 plugin explain --version
run "a verb without its pod" 2 plugin explain -n ai
run "an option without its value" 2 plugin explain inference -n
run "it explains itself" 0 plugin --help
see "with every verb" [ "$(grep -cE '^  (explain|whatif|defrag|status|refusals|top) ' "$dir/out")" -eq 6 ]
run "a node's own help of a verb" 0 plugin explain inference --help
see "is asked for there" called "exec -n numafit-system numafitd-a -c numafitd -- numafit explain -n ai inference --help"
PATH=${PATH#*:}
run "without kubectl" 3 env KUBECTL=nokubectl deploy/kubectl-numafit status worker-0
see "it says so, and what to do" is err 'kubectl numafit: nokubectl is not in PATH: install kubectl, or name it in $KUBECTL'

stop_daemon
finish
