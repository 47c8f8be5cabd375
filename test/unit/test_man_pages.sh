#!/bin/sh
# Every option, verb and setting is in its man page and in the completion of each shell; the pages have
# no mistakes; and bash, zsh and fish really complete.
# usage: BUILD=build/debug test/unit/test_man_pages.sh
set -u
test=man-pages short=yes
. test/unit/script_rig.sh
PATH=$(cd "$bin" && pwd):$PATH
export PATH
verbs=$(numafit help | sed -n '/^verbs:/,/^options:/s/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' | tr ' ' +)

# options PROGRAM [VERB...]: the long ones, and -c for short ones, as its help lists them
options() {
	"$@" --help | sed -n '/^options:/,/^[a-z].*:$/{s/^  \(   \|-\(.\),\) --\([a-zA-Z-]*\).*/-\2 --\3/p}' | tr ' ' '\n' | grep -v '^-$'
}
plain() { sed 's/\\f[BIR]//g; s/\\-/-/g' "$1"; } # FILE: a page's text

# missing_in_page PAGE PROGRAM [VERB...]: options that the page, or the verb's part of it, has not
missing_in_page() {
	page=$1
	shift
	plain "$page" | awk -v verb="$(echo "$*" | sed 's/^[^ ]* *//')" -v program="$1" '
		/^\.S[SH] / { on = verb == "" ? !/^\.SS/ : index($0, ".SS \"" program " " verb " - ") == 1 } on' >"$dir/part"
	# shellcheck disable=SC2068 # a verb may be two words
	for option in $(options $@); do
		grep -qE -e "^(-., )?$option( |\$)|^$option, --" "$dir/part" || printf '%s\n' "$option"
	done
}

for page in numafit.1 numafitd.8 numafit-extender.8 numafit-sim.1; do
	program=${page%.*}
	"$program" --man >"$dir/$page"
	run "$page has every option" 0 missing_in_page "$dir/$page" "$program"
	see "all of them" is out ""
	see "which are some" [ "$(options "$program" | wc -l)" -ge 4 ]
done
for verb in $verbs; do
	words=$(echo "$verb" | tr + ' ')
	# shellcheck disable=SC2086
	run "numafit.1 has every option of numafit $words" 0 missing_in_page "$dir/numafit.1" numafit $words
	see "all of them" is out ""
done
see "the verbs are many" [ "$(echo "$verbs" | wc -l)" -ge 12 ]
numafit config --manual >"$dir/numafitd.yaml.5"
missing_keys() { # PAGE
	plain "$1" >"$dir/part"
	numafit config --markdown | sed -n 's/^| `\([^`]*\)`.*/\1/p' | while read -r key; do
		grep -qxF -e "$key" "$dir/part" || echo "$key"
	done
}
run "numafitd.yaml.5 has every setting" 0 missing_keys "$dir/numafitd.yaml.5"
see "all of them" is out ""

missing_extender_keys() {
	plain "$dir/numafit-extender.8" >"$dir/part"
	numafit-extender --print-config | sed -n 's/^\([^ :]*\):.*/\1/p' | while read -r key; do
		grep -qxF -e "$key" "$dir/part" || echo "$key"
	done
}
run "numafit-extender.8 has every setting" 0 missing_extender_keys
see "all of them" is out ""
see "which are some" [ "$(numafit-extender --print-config | grep -c '^[a-z]')" -gt 10 ]

for page in numafit.1 numafitd.8 numafit-extender.8 numafit-sim.1 numafitd.yaml.5; do
	run "$page names no file of numafit's sources" 1 grep -nE '(src|test|include)/|README|[a-z]\.h\b' "$dir/$page"
done
name="a page that lacks"
sed '/logLevel/d' "$dir/numafitd.yaml.5" >"$dir/lacks"
missing_keys "$dir/lacks" >"$dir/out"
see "a setting is found out" is out "logLevel"
awk '!/\\-\\-all/' "$dir/numafit.1" >"$dir/lacks"
missing_in_page "$dir/lacks" numafit explain >"$dir/out"
see "an option is found out" is out "-a
--all"
name=

for page in numafit.1 numafitd.8 numafit-extender.8 numafit-sim.1 numafitd.yaml.5; do
	run "mandoc finds no mistake in $page" 0 mandoc -Tlint "$dir/$page"
	see "not even of style" is out ""
	if man --version 2>/dev/null | grep -q '^man '; then
		run "man has no warning for $page" 0 sh -c "man --warnings -E UTF-8 -l -Tutf8 -Z '$dir/$page' >/dev/null"
		see "at all" is err ""
	fi
done

# What the shells offer
for shell in bash zsh fish; do
	for program in numafit numafitd numafit-extender numafit-sim; do
		"$program" --completion $shell >"$dir/$program.$shell"
	done
done
cat >"$dir/complete.bash" <<'Y'
. "$1"
shift
program=$1
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"_${program//-/_}"
printf '%s\n' "${COMPREPLY[@]}"
Y
offers_bash() { # WORD...: the last one is to be completed
	bash "$dir/complete.bash" "$dir/$1.bash" "$@" 2>"$dir/err"
}
offers_zsh() {
	printf '%s' "$*" >"$dir/line" # the last word may be empty
	timeout 60 zsh -f test/unit/zsh_complete.zsh "$dir/$1.zsh" "$dir" "$(cat "$dir/line")" 2>"$dir/err"
}
offers_fish() {
	line=$*
	fish --no-config -c "source $dir/$1.fish; complete -C '$line'" 2>"$dir/err" | cut -f1
}
# missing_in_completion SHELL PROGRAM [VERB...]: options that it does not offer
missing_in_completion() {
	shell=$1
	shift
	case $shell in
	fish) { "offers_$shell" "$@" -; "offers_$shell" "$@" --; } ;;
	zsh) "offers_$shell" "$@" -- ; "offers_$shell" "$@" - ;;
	*) "offers_$shell" "$@" - ;;
	esac | sort -u >"$dir/offered"
	for option in $(options "$@"); do
		grep -qxE -e "${option%PAGE}=?" "$dir/offered" || printf '%s\n' "$option"
	done
}
for shell in bash zsh fish; do
	for program in numafitd numafit-extender numafit-sim; do
		run "$shell offers every option of $program" 0 missing_in_completion $shell $program
		see "all of them" is out ""
	done
	for verb in $verbs; do
		words=$(echo "$verb" | tr + ' ')
		# shellcheck disable=SC2086
		run "$shell offers every option of numafit $words" 0 missing_in_completion $shell numafit $words
		see "all of them" is out ""
	done
done

# A journal with pods to name
"$bin/numafitd" --set machine=kep3545-8 --set nri.socketPath="$dir/nri.sock" --set runDirectory="$dir/run" \
	--set metrics.address= --set topologyManagerPolicy=restricted --set reservedSystemCPUs=0,64 >"$dir/log" 2>&1 &
daemon=$!
run "the demo's containers are placed" 0 "$bin/numafit-sim" --socket "$dir/nri.sock" \
	--machine kep3545-8 --reserved 0,64 --trace test/traces/demo.yaml
stop_daemon
rm "$dir/log"
offers() { # SHELL COMPLETION WORD...: it is among what is offered for the last word
	offered_by=$1 this=$2
	shift 2
	"offers_$offered_by" "$@" >"$dir/offered"
	cat "$dir/offered"
	grep -qxE -e "$this" "$dir/offered"
}
for shell in bash zsh fish; do
	run "$shell completes a verb" 0 offers $shell status numafit st
	run "$shell completes a verb of a verb" 0 offers $shell encode numafit hint e
	run "$shell completes one of a few words" 0 offers $shell wide numafit status -o w
	run "$shell completes a setting" 0 offers $shell 'logLevel=?' numafit whatif --set logL
	run "$shell completes a setting of the daemon" 0 offers $shell 'logLevel=?' numafitd --set logL
	run "$shell completes a container's name" 0 offers $shell shop/db/postgres \
		numafit explain --run-directory "$dir/run" shop/db/p
	run "$shell completes a pod's name without its namespace" 0 offers $shell trainer-3 \
		numafit explain --run-directory "$dir/run" tr
	run "$shell completes a namespace" 0 offers $shell shop \
		numafit refusals --run-directory "$dir/run" -n sh
	run "$shell completes a file" 0 offers $shell '(.*/)?test_man_pages.sh' numafit replay test/unit/test_man_p
	run "$shell offers no verb behind a verb" 1 offers $shell status numafit status st
done
# Names that somebody else made: a shell is to take them as data
mkdir "$dir/fake" "$dir/empty"
cat >"$dir/names" <<'X'
n/a$(touch made)/c
n/b`touch made`/c
n/d"e'f/c
n/g h/c
n/i;touch made;/c
n/j*\/c
$(touch made)/k/c
-rf/--all/c
n/-x/--apply
X
printf '#!/bin/sh\ncat "%s/names"\n' "$dir" >"$dir/fake/numafit"
chmod +x "$dir/fake/numafit"
hostile() { # SHELL WORD...
	(
		PATH=$dir/fake:$PATH
		here=$PWD
		cd "$dir/empty" || exit 1
		case $1 in
		bash) shift && bash "$dir/complete.bash" "$dir/numafit.bash" "$@" ;;
		zsh) shift && timeout 60 zsh -f "$here/test/unit/zsh_complete.zsh" "$dir/numafit.zsh" "$dir" "$*" ;;
		fish) shift && line=$* && fish --no-config -c "source $dir/numafit.fish; complete -C '$line'" | cut -f1 ;;
		esac
	) >"$dir/offered" 2>"$dir/err"
	cat "$dir/offered"
}
for shell in bash zsh fish; do
	for word in '' n/ 'n/a$' 'n/b`' 'n/d' 'n/g' -; do
		run "$shell completes \"$word\" of hostile names" 0 hostile $shell numafit explain "$word"
		see "without running them" [ ! -e "$dir/empty/made" ]
		case $word in '' | n/) see "and offers those" grep -q 'touch' "$dir/offered" ;; esac
		see "and no name as an option" sh -c "! grep -qxE -e '-rf.*|-x' '$dir/offered'"
	done
	run "$shell completes a hostile namespace" 0 hostile $shell numafit refusals -n ''
	see "without running it" [ ! -e "$dir/empty/made" ]
done
hostile bash numafit explain 'n/' >/dev/null
cat >"$dir/read.bash" <<'X'
while read -r word; do eval "set -- $word"; printf '%s\n' "$#:$*"; done
X
(cd "$dir/empty" && bash "$dir/read.bash" <"$dir/offered") >"$dir/read"
run "what bash inserts is one word each" 1 grep -v '^1:' "$dir/read"
see "which is the name" grep -qxF '1:n/a$(touch made)/c' "$dir/read"
see "and runs nothing" [ ! -e "$dir/empty/made" ]
finish
