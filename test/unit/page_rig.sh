# What the tests of pages share, besides script_rig.sh: requests to 127.0.0.1:$port, and what is seen of the
# answer, which is in $dir/out with its head.
await() { # COMMAND...: until it succeeds
	for _ in $(seq 300); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	return 1
}
ask() { # METHOD PATH [HOST [HEADER]]: the answer with its head into out
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	printf '%s %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n' "$1" "$2" "${3-localhost:$port}" "${4:+$4$'\r\n'}" >&3
	tr -d '\r' <&3 >"$dir/out"
	exec 3<&-
}
body() { sed '1,/^$/d' "$dir/out"; }
gets() { # STATUS METHOD PATH [HOST [HEADER]]
	status=$1
	shift
	ask "$@" && grep -q "^HTTP/1.1 $status " "$dir/out"
}
has() { body | grep -qF -e "$1"; }
header() { grep -qiF -e "$1" "$dir/out"; }
