#!/bin/sh
# Names, annotations and files that other people made, with all that a terminal obeys in them: nothing that any
# verb prints has a control character but newline and tab, a C1 control, a bidi control, or a byte that is not UTF-8.
# usage: BUILD=build/debug test/unit/test_hostile_names.sh
set -u
test=hostile-names short=yes
. test/unit/script_rig.sh
export LC_ALL=C

# ESC, BEL, backspace, CR, DEL, C1 (CSI), right-to-left override, isolate, line separator, byte order mark, tag
evil=$(printf 'x\033[31m\007\010\015\177\302\233\342\200\256\342\201\246\342\200\250\357\273\277\363\240\200\201y')
# The same, and bytes that are not UTF-8
bytes=$(printf '%s\200\377\303' "$evil")
yaml='x\e[31m\a\b\r\x7f\x9b\u202e\u2066\u2028\ufeff\U000e0001y'

unsafe() { # FILE
	grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xef\xbb\xbf|\xf3\xa0[\x80\x81]' "$1"
}
prints() { # NAME COMMAND...: whatever it returns
	name=$1
	shift
	"$@" >"$dir/out" 2>"$dir/err" </dev/null
	[ -s "$dir/out" ] || [ -s "$dir/err" ]
	report $? "$name: something is printed"
	for printed in out err; do
		! unsafe "$dir/$printed" && iconv -f UTF-8 -t UTF-8 "$dir/$printed" >/dev/null 2>&1
		status=$?
		[ "$status" -eq 0 ] || cat -v "$dir/$printed" | cut -c1-300 | sed 's/^/# /'
		rm -f "$dir/$printed.bad"
		[ "$status" -eq 0 ] || mv "$dir/$printed" "$dir/$printed.bad"
		report $status "$name: $printed is safe to show"
	done
}
names_hostile() { # the last command has printed a name, escaped
	grep -qF 'u001b[31m' "$dir/out" "$dir/err" || grep -qF 'x?[31m' "$dir/out" "$dir/err"
	report $? "$name: the name is there"
}

cat >"$dir/trace.yaml" <<X
steps:
- create: {namespace: n, pod: p, container: c, qos: guaranteed, cpu: 4, memory: 4Gi}
- create: {namespace: n, pod: q, container: c, qos: guaranteed, cpu: 200, memory: 4Gi}
- create:
    namespace: n
    pod: r
    container: c
    qos: guaranteed
    cpu: 2
    memory: 1Gi
    annotations: ["numafit.io/cores=$yaml"]
X
numafit=$bin/numafit
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
	--set metrics.address= --set topologyManagerPolicy=restricted --set podWishes.allowed=cores >"$dir/log" 2>&1 &
daemon=$!
prints "the player" "$bin/numafit-sim" --socket "$dir/nri.sock" --machine kep3545-8 --trace "$dir/trace.yaml"
names_hostile
prints status "$numafit" status --run-directory "$dir/run"
prints "status -o json" "$numafit" status --run-directory "$dir/run" -o json
prints top "$numafit" top --run-directory "$dir/run"
prints "defrag of a daemon" "$numafit" defrag --run-directory "$dir/run"
stop_daemon
! unsafe "$dir/log"
report $? "the daemon's log is safe to show"
prints explain "$numafit" explain --run-directory "$dir/run" --all c
names_hostile
prints "explain a name" "$numafit" explain --run-directory "$dir/run" "$bytes"
prints "explain -o json" "$numafit" explain --run-directory "$dir/run" --all c -o json
prints "explain -o wide" "$numafit" explain --run-directory "$dir/run" --all c -o wide
prints "explain --list" "$numafit" explain --run-directory "$dir/run" --list
for form in table wide json; do
	prints "refusals -o $form" "$numafit" refusals --run-directory "$dir/run" -o $form
	names_hostile
done
prints "refusals of a namespace" "$numafit" refusals --run-directory "$dir/run" -n "$bytes"
prints replay "$numafit" replay "$dir/run/journal"
sed 's/"cpus":"[^"]*"/"cpus":"9"/' "$dir/run/journal" >"$dir/changed"
prints "replay of a changed journal" "$numafit" replay "$dir/changed"
prints "replay of no journal" "$numafit" replay "$dir/$bytes"
printf '%s\n' "$bytes" >"$dir/torn"
prints "replay of a torn journal" "$numafit" replay "$dir/torn"
prints bundle "$numafit" bundle --run-directory "$dir/run" -o "$dir/$bytes/x.tar"

printf 'apiVersion: v1\nkind: "%s"\nmetadata: {name: "%s"}\nspec: {containers: [{name: "%s", resources: {limits: {cpu: "%s"}}}]}\n' \
	"$yaml" "$yaml" "$yaml" "$yaml" >"$dir/object.yaml"
prints "whatif -f" "$numafit" whatif --machine kep3545-8 -f "$dir/object.yaml"
sed -i 's/^kind: .*/kind: Pod/' "$dir/object.yaml"
prints "whatif -f of a pod" "$numafit" whatif --machine kep3545-8 -f "$dir/object.yaml"
prints "whatif of a device" "$numafit" whatif --machine kep3545-8 --cpus 2 --device "$bytes/node9"
prints "hint check" "$numafit" hint check --machine kep3545-8 "$dir/object.yaml"
printf '{"name":"%s","machine":"%s"}\n' 'a\u001b\u009b\u202e' 'b\u001b\u009b\u202e' >"$dir/question"
prints decide "$numafit" decide "$dir/question"
prints "decide --check" "$numafit" decide --check "$dir/question"
prints score "$numafit" score "$dir/question"
prints topology "$numafit" topology --machine "$bytes"

# A character may be cut where a buffer ends.
other=$(yes 'ж€é𝒳' | head -n 3000 | tr -d '\n')
printf '{"name":"a%s","machine":"none"}\n' "$other" >"$dir/question"
prints "decide of other languages" "$numafit" decide "$dir/question"
see "which stay as they are" says out "a$other"

printf 'nodeName: "%s"\n"%s": 1\nlogLevel: "%s"\n' "$yaml" "$yaml" "$yaml" >"$dir/settings.yaml"
prints "config --check" "$numafit" config --check "$dir/settings.yaml"
prints "numafitd --check-config" "$bin/numafitd" --check-config --set machine=kep3545-8 --config "$dir/settings.yaml"
prints "numafitd --print-config" "$bin/numafitd" --print-config --set machine=kep3545-8 --set nodeName="$evil"
prints "numafitd --config" "$bin/numafitd" --config "$dir/$bytes"
printf 'listen: "%s"\n"%s": 1\n' "$yaml" "$yaml" >"$dir/extender.yaml"
prints "numafit-extender --check-config" "$bin/numafit-extender" --check-config --config "$dir/extender.yaml"
prints "numafit-extender --config" "$bin/numafit-extender" --config "$dir/extender.yaml"
prints "numafit-sim" "$bin/numafit-sim" --socket "$dir/s" --machine kep3545-8 --trace "$dir/settings.yaml"
prints "an option" "$numafit" status "--$bytes"
prints "a verb" "$numafit" "$bytes"
finish
