#!/bin/sh
# A text of the greatest size that nests, or repeats, what makes a YAML or JSON library work for the square of
# its length: each program that reads it refuses it within CPU_SECONDS. The mended reader takes a fraction of a
# second; one without a limit takes minutes.
# usage: BUILD=build/debug test/unit/test_hostile_texts.sh
set -u
test=hostile-texts
. test/unit/script_rig.sh
CPU_SECONDS=20

repeated() { # FILE BEGIN BYTES: what repeats comes from the input
	printf '%s' "$2" >"$1"
	yes "$(cat)" | tr -d '\n' | head -c "$3" >>"$1"
}
within() { # COMMAND...: of this many processor seconds
	(
		ulimit -t $CPU_SECONDS
		exec "$@"
	)
}
refused() { # STATUS READER TEXT: for its limit
	run "$2 of $3" "$1" "$2" "$dir/$3"
	see "is refused for its limit" grep -qE \
		'inside each other|lines begin with|anchors|maximum parsing depth|no current-context|is damaged' \
		"$dir/err" "$dir/out"
}
config() { within "$bin/numafit" config --check "$1"; }
daemon() { within "$bin/numafitd" --check-config --set machine=kep3545-8 --config "$1"; }
extender() { within "$bin/numafit-extender" --check-config --config "$1"; }
kubeconfig() {
	within "$bin/numafitd" --check-config --set machine=kep3545-8 --set apiServer.kubeconfig="$1" --set podsWatch.enabled=true
}
kubelet() {
	within "$bin/numafitd" --check-config --set machine=kep3545-8 --set kubeletConfigFile="$1"
}
trace() { within "$bin/numafit-sim" --socket "$dir/socket" --machine kep3545-8 --trace "$1"; }
whatif() { within "$bin/numafit" whatif --machine kep3545-8 -f "$1"; }
decide() { within "$bin/numafit" decide "$1"; }
replay() { within "$bin/numafit" replay "$1"; }

# Settings, traces: up to 256 KiB. Kubelet and kubeconfig: 1 MiB. Objects: 4 MiB.
small=262000 middle=1000000 large=4000000
printf '[' | repeated "$dir/lists" 'a: ' $small
printf '{a: ' | repeated "$dir/maps" '' $small
awk 'BEGIN { for (i = 0; length(all) < 250000; i++) all = all "%TAG !" i "! x\n"; printf "%s--- {a: 1}\n", all }' >"$dir/tags"
awk 'BEGIN { printf "a: ["; for (i = 0; i < 100000; i++) printf "&a%d x,", i; print "]" }' >"$dir/anchors"
for text in lists maps tags; do
	for reader in config daemon extender; do
		refused 2 $reader $text
	done
	refused 2 trace $text
done

printf '[' | repeated "$dir/lists" 'a: ' $middle
printf '{a: ' | repeated "$dir/maps" '' $middle
awk 'BEGIN { for (i = 0; i < 50000; i++) printf "%%TAG !%d! x\n", i; print "--- {a: 1}" }' >"$dir/tags"
for text in lists maps tags anchors; do
	refused 2 kubeconfig $text
	refused 2 kubelet $text
done

printf '[' | repeated "$dir/lists" 'a: ' $large
printf '{"a":' | repeated "$dir/json" '' $large
awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%%TAG !%d! x\n", i; print "--- {a: 1}" }' >"$dir/tags"
# libyaml ends a line at CR, NEL and Unicode's separators, too
tags_between() { # FILE BREAK
	awk -v between="$2" 'BEGIN { for (i = 0; i < 200000; i++) printf "%%TAG !%d! x%s", i, between; print "\n--- {a: 1}" }' >"$1"
}
tags_between "$dir/tags-cr" "$(printf '\r')"
tags_between "$dir/tags-nel" "$(printf '\302\205')"
tags_between "$dir/tags-ls" "$(printf '\342\200\250')"
tags_between "$dir/tags-ps" "$(printf '\342\200\251')"
for text in lists json tags tags-cr tags-nel tags-ls tags-ps; do
	refused 2 whatif $text
done
refused 1 decide json
refused 3 replay json
finish
