#!/bin/sh
# The manual: links and anchors lead somewhere, commands run, YAML is taken, tables of names are complete.
# usage: BUILD=build/debug test/unit/test_docs.sh
set -u
test=docs short=yes
. test/unit/script_rig.sh
root=$PWD
bin=$(realpath "$bin")
docs=deploy/docs

same() { # WHAT WANTED GOT (files)
	diff "$2" "$3" >"$dir/out" 2>&1
	report $? "$1"
}
none() { # WHAT: "$dir/out" is empty
	[ ! -s "$dir/out" ]
	report $? "$1"
}

# Links and fences

pages=$(find . -name '*.md' ! -path './build/*' ! -path './.git/*' | sort)
run "every link and anchor of every page" 0 tools/check-docs
cat >"$dir/faults.md" <<'X'
# A page
[one](no-such-file.md) [two](#no-such-heading) [three](#a-page) `[four](no.md)`
`T=x make no-such-target`, `make e2e`, `src/no-such-folder/*.c`, `unit/test_docs.sh`, `test/unit/test_{docs,no}.sh`, `test/unit/NAME.c`
```
no word
```
X
run "planted faults" 1 tools/check-docs "$dir/faults.md"
see "are five" [ "$(wc -l <"$dir/out")" -eq 5 ]
see "a file" says out "no-such-file.md"
see "an anchor" says out "#no-such-heading"
see "a fence" says out "a fence needs a word"
see "a make target" line out "faults.md:3" "no target no-such-target"
see "a path" line out "faults.md:3" "there is no src/no-such-folder/*.c"
name=

for page in $docs/*.md; do
	see "deploy/README.md has a link to ${page##*/}" grep -qF "(docs/${page##*/})" deploy/README.md
	awk 'NR > 2 && !NF { exit } NR > 2' "$page" >"$dir/intro"
	see "${page##*/} begins with what it is for, in three lines at most" \
		sh -c '[ "$(wc -l <"$1")" -le 3 ] && grep -qw For "$1"' sh "$dir/intro"
done

# Words

mkdir "$dir/programs"
printf '#!/bin/sh\nexit 0\n' | tee "$dir/programs/kubectl" >"$dir/programs/codespell"
chmod +x "$dir/programs"/*
printf 'The daemon prints a line.\nIt is told so.\n' >"$dir/page.md"
run "a word that is not used" 1 env PATH="$dir/programs:$PATH" tools/check-words "$dir/page.md"
see "is named, with its line and what to write" line out "page.md:2" '"told"' 'print'
see "and no other" [ "$(wc -l <"$dir/out")" -eq 1 ]
name=

# Commands: each block of sh runs in a folder of its own that has the repository's deploy and test, with
# our programs first in PATH, and a kubectl that does nothing

mkdir "$dir/blocks" "$dir/tree"
# shellcheck disable=SC2086
tools/check-docs --blocks "$dir/blocks" $pages
ln -s "$root/deploy" "$root/test" "$dir/tree/"
in_tree() { (cd "$dir/tree" && PATH=$dir/programs:$bin:$PATH "$@"); }
nr=0
for block in "$dir"/blocks/*.sh; do
	nr=$((nr + 1)) what=${block##*/}
	run "${what%.sh}: its commands run" 0 in_tree sh -e "$block"
done
see "there are some" [ "$nr" -ge 8 ]

# YAML: it parses; settings are numafitd's; a pod is placed

run "a reader of YAML" 0 ${CC:-cc} -o "$dir/flat" test/unit/yaml_values.c -lyaml
settings=0 placed=0
for block in "$dir"/blocks/*.yaml; do
	what=${block##*/} what=${what%.yaml}
	"$dir/flat" <"$block" >"$dir/out" 2>"$dir/err"
	report $? "$what: it is YAML"
	if head -n 1 "$block" | grep -qx '# numafitd.yaml'; then
		settings=$((settings + 1))
		run "$what: these are settings" 0 "$bin/numafitd" --set machine=kep3545-8 --set metrics.address= \
			--check-config --config "$block" --node-name gpu-1 --node-label example.com/pool=latency
	elif grep -q '^kind: Pod$' "$block" && ! grep -q '^---' "$block"; then
		placed=$((placed + 1))
		run "$what: this pod is placed" 0 "$bin/numafit" whatif --machine kep3545-8 -f "$block"
	fi
done
see "some are settings" [ "$settings" -ge 4 ]
see "some are pods" [ "$placed" -ge 2 ]

# The demo

cat >"$dir/within.awk" <<'X'
# whether the lines of the first file are in the second one, one after another
NR == FNR { want[++n] = $0; next }
{ have[++m] = $0 }
END {
	for (i = 1; i <= m - n + 1; i++) {
		for (j = 1; j <= n && have[i + j - 1] == want[j]; j++)
			;
		if (j > n)
			exit 0
	}
	exit 1
}
X
run "the demo" 0 env BUILD="$bin" tools/demo
sed '/^numafit status, after/,/^-o wide shows/d' "$dir/out" | cat -s >"$dir/demo"
for block in "$dir"/blocks/deploy-docs-demo.*.text "$dir"/blocks/README.*.text; do
	cat -s "$block" >"$dir/block"
	what=${block##*/}
	see "${what%.text} is what it prints" awk -f "$dir/within.awk" "$dir/block" "$dir/demo"
done
name=

# Names

"$bin/numafit" --help | awk '/^verbs:/ { on = 1; next } on && !NF { exit }
	on { v = substr($0, 3, 14); sub(/ +$/, "", v); print "| `" v "` | " substr($0, 17) " |" }' >"$dir/want"
awk '/^\| verb \| what it does \|/ { on = 1; getline; next } on && !/^\|/ { exit } on' $docs/reference-verbs.md >"$dir/have"
same "reference-verbs.md has the verbs of numafit --help" "$dir/want" "$dir/have"

cat src/numafitd/*.c src/numafit-extender/*.c src/dra-driver/*.c | tr '\n\t' '  ' |
	grep -oE 'log_line\(([a-z> -]+ \? LOG_[A-Z]+ : )? *LOG_[A-Z]+, *"[a-z-]+"' | sed 's/.*"\(.*\)"/\1/' | sort -u >"$dir/want"
see "log_line() has many events" [ "$(wc -l <"$dir/want")" -gt 80 ]
awk '/^## Log events/ { on = 1 } on && /^\| `/ { split($0, cell, "|"); print cell[2] }' $docs/reference-events.md |
	grep -o '`[a-z-]*`' | tr -d '`' | sort -u >"$dir/have"
comm -23 "$dir/want" "$dir/have" >"$dir/out"
none "reference-events.md has all of them"
{ # each watch gives the reflector's events a beginning of its own, but for those of numafit-extender
	echo
	sed -n 's/.*text_add(&t, "\([a-z]*-\)%s", event).*/\1/p' src/apiserver/*.c
} >"$dir/watches"
see "four watches" [ "$(wc -l <"$dir/watches")" -eq 4 ]
while read -r watch; do
	echo "${watch}watch-lost ${watch}watch-synced ${watch}watch-waiting"
done <"$dir/watches" | tr ' ' '\n' | sort | comm -23 - "$dir/have" >"$dir/out"
none "reference-events.md has the events of each watch"
cat src/*/*.c src/*/*.h | grep -oE '"[a-z-]+"' | tr -d '"' | sort -u >"$dir/literals"
sed 's/^\(pods\|slices\|claims\)-\(watch-\(lost\|synced\|waiting\)\)$/\2/' "$dir/have" | sort -u | comm -23 - "$dir/literals" >"$dir/out"
none "and no other"

cat src/*/*.[ch] include/numafit/*.h deploy/components/*/*.yaml | grep -oE 'numafit\.io/[A-Za-z0-9]+(-[A-Za-z0-9]+)*' |
	grep -vx 'numafit.io/\(NAME\|CONTAINER\)' | sort -u >"$dir/want"
sed 's|numafit.io/|\n&|g' $docs/reference-annotations.md | grep -oE '^numafit\.io/[A-Za-z0-9]+(-[A-Za-z0-9]+)*' | sort -u >"$dir/have"
comm -23 "$dir/want" "$dir/have" >"$dir/out"
none "reference-annotations.md has every name below numafit.io/"
finish
