#!/bin/sh
# tools/setup on a system that has nothing of what it looks for; apt-get, dpkg-query, sudo and id are
# made up. And make before there is a compiler. TAP.
set -u
case $(. /etc/os-release 2>/dev/null && echo "$ID-$VERSION_ID") in
debian-12 | debian-13 | ubuntu-24.04) ;;
*) echo "ok 1 # SKIP tools/setup installs nothing on this system"; exit 0 ;;
esac
dir=$(mktemp -d) cases=0 failed=0
trap 'rm -rf "$dir"' EXIT

program() { # name, body
	printf '#!/bin/sh\n%s\n' "$2" >"$dir/bin/$1"
	chmod +x "$dir/bin/$1"
}
system() { # uid, programs besides: what apt-get has installed, dpkg-query knows
	rm -rf "$dir/bin" "$dir/installed"
	mkdir "$dir/bin"
	for name in sh env awk cat sed sort tr ls; do
		ln -s "$(command -v $name)" "$dir/bin/$name"
	done
	program id "echo $1"
	program apt-get "echo RUN apt-get \$* >&2; case \" \$* \" in *' install '*) >$dir/installed ;; esac"
	program dpkg-query "[ ! -e $dir/installed ] || printf 'installed %s\n' \$*"
	shift
	for name; do
		program "$name" "echo RUN $name \$* >&2; [ \$1 != -n ] || shift; exec \"\$@\""
	done
}
setup() { env -i PATH="$dir/bin" tools/setup "$@" >"$dir/said" 2>&1 </dev/null; }
first() { # the number of the first line that says so, 0: none does
	awk -v says="$1" '!n && index($0, says) {n = NR} END {print n + 0}' "$dir/said"
}
# shellcheck disable=SC2015
result() { # status, name
	cases=$((cases + 1))
	[ "$1" = 0 ] && echo "ok $cases - $2" || { echo "not ok $cases - $2"; failed=1; sed 's/^/# /' "$dir/said"; }
}

system 0
setup test && [ "$(first libcmocka-dev)" = 3 ] && [ "$(first openssl)" = 5 ] && [ "$(first RUN)" -gt 8 ]
result $? "what is missing and what will be installed is said first"
[ "$(first "install -y --no-install-recommends fish libcmocka-dev mandoc openssl tmux zsh")" != 0 ] && [ "$(first sudo)" = 0 ]
result $? "root installs it all with apt-get"
setup test && [ ! -s "$dir/said" ]
result $? "with nothing missing it is silent"

system 1000 sudo
setup test && [ "$(first "RUN sudo -n env")" != 0 ] && [ "$(first "RUN apt-get")" != 0 ]
result $? "anybody else installs through sudo, which does not ask where nobody can answer"

system 1000
! setup test && [ "$(first RUN)" = 0 ] &&
	[ "$(first "apt-get update && apt-get install --no-install-recommends fish libcmocka-dev mandoc openssl tmux zsh")" != 0 ]
result $? "without sudo it says the whole command that root is to run"

env -u MAKEFLAGS -u MFLAGS make -n help CC=no-such-compiler >/dev/null 2>"$dir/said" && [ ! -s "$dir/said" ]
result $? "make is silent about a compiler that is still to be installed"

exit $failed
