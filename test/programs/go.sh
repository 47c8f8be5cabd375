# Finds Go, builds with it and runs what was built: for the scripts that read this file.
# All that they build is built alike, with one set of flags: what several programs are made of, such as
# most of Kubernetes, is compiled once then. It is kept in $cache under a hash of what it is made
# from, and is built anew only when that changes.
# shellcheck shell=sh disable=SC2034
cache=${XDG_CACHE_HOME:-$HOME/.cache}/numafit/programs
tags=grpcnotrace,nri_no_wasm # as Kubernetes is released; and no interpreter in NRI for tests of ours
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -tags=$tags"
go=$(for go in $(command -v go || true) /usr/local/go/bin/go; do # the newest, as in tools/setup
	[ ! -x "$go" ] || echo "$("$go" version) $go"
done | sort -k3,3V | awk 'END { print $NF }')

key() { # files: a hash of what is built from them
	{ echo "$GOFLAGS"; cat "$@"; } | sha256sum | cut -c 1-16
}

built() { # name, "build" or "test -c", folder or - for a copy of the files, files. Prints the program's path
	name=$1 how=$2 in=$3
	shift 3
	[ -z "${CHECK_ONLY:-}" ] || { checked "$@"; return; }
	program=$cache/$name-$(key "$@")
	if [ ! -x "$program" ]; then
		[ -n "$go" ] || { echo "Go is not there" >&2; return 1; }
		echo "building $program" >&2
		mkdir -p "$cache" && work=$(mktemp -d "$cache/making.XXXXXX") || return 1
		[ "$in" != - ] || { cp "$@" "$work" && in=$work; }
		# shellcheck disable=SC2086
		(cd "$in" && "$go" $how -ldflags '-s -w' -o "$work/program" .) >&2 &&
			mv "$work/program" "$program" || { rm -rf "$work"; return 1; } # nobody starts a half of it
		rm -rf "$work"
	fi
	echo "$program"
}

# With CHECK_ONLY=FOLDER a script only has FOLDER/typecheck check the programs that the script would build, and
# ends before the script runs a program: `make built`. FOLDER/checked gets a line for each file of a program, with
# the program's name and 0 or 1; FOLDER/NAME gets the errors. A program that is built of the same files is right.
checked() { # files of $name, which lie in $in
	status=0 work=
	realpath -e "$@" >"$CHECK_ONLY/$name" 2>&1 || status=1
	sed "s|^|$name $status |" "$CHECK_ONLY/$name" >>"$CHECK_ONLY/checked"
	right=$cache/$name-$(key "$@")
	[ $status = 0 ] && [ ! -x "$right" ] && [ ! -e "$right.checked" ] || return $status
	[ "$in" != - ] || { work=$(mktemp -d) && cp "$@" "$work" && in=$work; } || return
	(cd "$in" && PATH="${go%/*}:$PATH" "$CHECK_ONLY/typecheck") >"$CHECK_ONLY/$name" 2>&1 ||
		{ status=1 && echo "$name 1 $in" >>"$CHECK_ONLY/checked"; }
	[ -z "$work" ] || rm -rf "$work"
	[ $status != 0 ] || { mkdir -p "$cache" && touch "$right.checked"; }
	return $status
}

version() { # folder, module: its version in the folder's go.mod
	awk -v m="$2" '$1 == m || $2 == m { print $NF; exit }' "$1/go.mod"
}

newest() { # folder: the newest version that has a folder in it
	(cd "$1" && printf '%s\n' v*/) | tr -d / | sort -V | tail -n 1
}

left_out() { # of what, all, those that ran: .ci/steps repeats it, so that nobody takes the rest for passed
	rest=
	for one in $2; do
		case " $(echo "$3" | tr '\n' ' ') " in *" $one "*) ;; *) rest="$rest $one" ;; esac
	done
	[ -z "$rest" ] || echo "left out: $1$rest (ALL=1 runs all)"
}

took() { # name, command...: runs it and prints how long it took, and how much processor time
	took=$1 began=$(date +%s)
	shift
	used=$(mktemp)
	times >"$used"
	"$@"
	took_status=$?
	times >>"$used"
	echo "-- $took: $(($(date +%s) - began)) s, processors $(awk -F '[ms ]+' '
		NR == 2 { before = $1 * 60 + $2 + $3 * 60 + $4 }
		NR == 4 { printf "%d", $1 * 60 + $2 + $3 * 60 + $4 - before }' "$used") s"
	rm "$used"
	return $took_status
}

total() { # reads "totals passed failed skipped status ended" among lines that it prints; adds them up
	awk '
		$1 != "totals" { print; fflush(); next }
		{ pass += $2; fail += $3; skip += $4; if (!$6 || ($5 && !$3)) fail++ } # it died or was ended
		END { print pass + 0 " passed, " fail + 0 " failed, " skip + 0 " skipped"; exit fail || skip || !pass }'
}

told() { # output of a test, its status: the cases, all of it when one failed, and a line for total
	grep -aE '^ *--- |figure: ' "$1" || true
	{ [ "$2" = 0 ] && grep -qax PASS "$1"; } || grep -avE '^ *(=== |--- )|figure: ' "$1" || true
	echo "totals $(grep -acE '^ *--- PASS' "$1") $(grep -acE '^ *--- FAIL' "$1") \
		$(grep -acE '^ *--- SKIP' "$1") $2 $(grep -acE '^(PASS|FAIL)$' "$1")"
}

tested() ( # program: runs its tests, those of $T when that is set
	[ -z "${CHECK_ONLY:-}" ] || exit 0
	out=$(mktemp -d)
	trap 'rm -rf "$out"' EXIT
	status=0
	timeout -k 5 900 "$1" -test.timeout 0 -test.v -test.run "${T:-.}" >"$out/all" 2>&1 </dev/null || status=$?
	told "$out/all" "$status" | total
)
