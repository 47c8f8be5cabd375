# Bugs that are planted in a copy of the sources, one at a time. Each has to be found by the tests that its row
# names, which the sources as they are pass. Read by test/*/mutants and test/interop/*/mutants: such a script calls
# copy_sources, builds and tries the sources as they are, calls mutant for each bug, and then tell_mutants.
# With CHECK_ONLY=1 a script only sees whether the text of each row is in its file, once (`make built`).
# shellcheck shell=sh
found=0 missed=0 left=0 wrong=0 said=

fail() { # why
	echo "mutants: $1" >&2
	[ ! -e "$dir/out" ] || cat "$dir/out" >&2
	exit 1
}

copy_sources() { # build folder, folders of test/ that tests need: $dir gets both, so that a mutant is one file to compile
	dir=$(mktemp -d "${TMPDIR:-/tmp}/numafit-mutants.XXXXXX")
	trap 'rm -rf "$dir"' EXIT
	if [ "${CHECK_ONLY:-}" ]; then return; fi
	build=$1
	shift
	cp -Rp Makefile include src proto "$dir"
	mkdir "$dir/test" "$dir/build"
	cp -Rp "$build"/src "$build"/gen "$build"/lib*.a "$dir/build"
	for folder; do
		cp -Rp "test/$folder" "$dir/test"
		[ ! -d "$build/test/$folder" ] || { mkdir -p "$dir/build/test" && cp -Rp "$build/test/$folder" "$dir/build/test"; }
	done
}

make_there() { # which sources, targets; a bug may leave a function that nothing calls
	which=$1
	shift
	make -s -C "$dir" B=build WERROR= "$@" >"$dir/out" 2>&1 || fail "it does not compile: $which"
}

unit_test() { # name: runs that test of the copy
	make_there "test_$1" "build/test/test_$1"
	(cd "$dir" && BUILD=build CMOCKA_MESSAGE_OUTPUT=TAP timeout "${TEST_TIMEOUT:-300}" "build/test/test_$1") >"$dir/out" 2>&1
}

plant() { # file, text, replacement: writes $dir/planted; false unless the text is there once
	TEXT=$2 WITH=$3 awk 'BEGIN { text = ENVIRON["TEXT"]; with = ENVIRON["WITH"] }
		{
			for (line = ""; (at = index($0, text)); nr++) {
				line = line substr($0, 1, at - 1) with
				$0 = substr($0, at + length(text))
			}
			print line $0
		}
		END { exit nr != 1 }' "$1" >"$dir/planted"
}

mutant() { # file, a text of one line of it, what is put there, command that is true if it finds the bug
	whole=$1
	[ "${CHECK_ONLY:-}" ] || { whole=$dir/whole && cp "$dir/$1" "$whole"; }
	plant "$whole" "$2" "$3" || { wrong=$((wrong + 1)) && echo "$1 has no single \"$2\""; }
	if [ "${CHECK_ONLY:-}" ]; then return; fi
	[ $wrong = 0 ] || exit 1
	cp "$dir/planted" "$dir/$1"
	file=$1 with=$3
	shift 3
	said=
	if "$@"; then
		found=$((found + 1)) result=found
	else
		missed=$((missed + 1)) result=MISSED
	fi
	echo "$result: $file: $with${said:+: $said}"
	cp "$whole" "$dir/$file"
}

more() { # a mutant that is not of the sample
	if [ "${ALL:-}${only:-}${CHECK_ONLY:-}" ]; then mutant "$@"; else left=$((left + 1)); fi
}

tell_mutants() { # whose
	if [ "${CHECK_ONLY:-}" ]; then exit $((wrong > 0)); fi
	echo "mutants: $found found, $missed missed"
	[ $left = 0 ] || echo "left out: $left mutants of $1 (ALL=1 runs all)"
	[ "$missed" = 0 ]
}
