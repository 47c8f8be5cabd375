#!/bin/sh
# tools/layers against a copy of the tree into which one fault at a time is planted. TAP.
# usage, at the repository's root: BUILD=build/debug test/unit/test_layers.sh
set -eu
build=$PWD/${BUILD:-build/debug}
case ${BUILD:-} in /*) build=$BUILD ;; esac
tree=$(mktemp -d) cases=0 failed=0
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/test" "$tree/build"
cp -R include src tools "$tree"
cp -R test/fuzz "$tree/test"
cp "$build/libbase.a" "$build/libcore.a" "$build/libnode.a" "$build/libsched.a" "$tree/build"
cd "$tree"

result() { # 0 or 1, name
	cases=$((cases + 1))
	[ "$1" = 0 ] && echo "ok $cases - $2" || { echo "not ok $cases - $2"; failed=1; sed 's/^/# /' said; }
}
layers() { tools/layers build >said 2>&1; }
reports() { # text name: the fault that is planted now is reported with these words
	if layers; then echo "# nothing reported" >said; result 1 "$2"; return; fi
	grep -qF "$1" said && result 0 "$2" || result 1 "$2"
}
plant() { # file text words name: put text at the file's end, look, and take it out again
	had=
	[ ! -e "$1" ] || { had=1; cp "$1" before; }
	mkdir -p "$(dirname "$1")"
	printf '%s\n' "$2" >>"$1"
	reports "$3" "$4"
	if [ "$had" ]; then mv before "$1"; else rm "$1"; fi
}
calls() { # code flags words name: the same with a function in libcore.a
	cp build/libcore.a before
	echo "$1" | ${CC:-cc} $2 -x c -c -o planted.o -
	ar r build/libcore.a planted.o 2>/dev/null
	reports "$3" "$4"
	mv before build/libcore.a
}

layers && result 0 "the tree as it is passes" || result 1 "the tree as it is passes"

while read -r file header words; do
	plant "$file" "#include <$header>" "$file $words" "$file that includes $header is reported"
done <<X
src/base/text.c numafit/topo.h may not include
src/core/hint.c io/log.h may not include
src/node/admit.c io/log.h may not include
src/node/admit.c time.h includes time.h
src/core/hint.c numafit/ledger.h may not include
src/core/hint.c numafit/sched.h may not include
src/sched/fit.c numafit/ledger.h may not include
src/node/report.c numafit/sched.h may not include
src/codec/words.c questions/diff_json.h may not include
src/numafitd/planted.c numafit-cli/table.h may not include
src/codec/words.c io/log.h may not include
src/io/planted.c codec/placement_json.h may not include
src/nri/session.c kubelet/grpc_call.h may not include
src/nri/session.c numafit/ledger.h may not include
src/kubelet/planted.c nri/session.h may not include
src/numafitd/planted.c numafit-sim/picture.h may not include
src/numafit-cli/planted.c dra-driver/driver.h may not include
src/kubelet/planted.c dra-driver/driver.h may not include
src/dra-driver/planted.c numafitd/daemon.h may not include
src/dra-driver/planted.c nri/session.h may not include
src/codec/words.c hwloc.h includes hwloc.h
src/codec/words.c yaml.h includes yaml.h
src/nri/session.c nri.pb-c.h includes nri.pb-c.h
src/numafitd/planted.c uv.h includes uv.h
include/numafit/topo.h hwloc/linux.h includes hwloc/linux.h
include/numafit/err.h numafit/topo.h may not include
X
plant src/io/planted.c '#include "../core/../host/discover.h"' 'by path' "an include by path is reported"
plant include/numafit/planted.h '/* a header */' 'include/numafit/planted.h' "a header of no module is reported"
plant src/codec/planted_yaml.c '/* a codec */' 'without test/fuzz/fuzz_planted_yaml.c' "a codec without a fuzzer is reported"

calls '#include <time.h>
long planted(void) { return time(0); }' '-O1' 'src/core/planted.c calls time()' "core that asks the time is reported"
calls '#include <stdio.h>
int planted(int i) { return printf("%d", i); }' '-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2' \
	'src/core/planted.c calls printf()' "core that prints, fortified, is reported"
calls '#include <stdio.h>
int planted(char *p, const char *f, int i) { char b[9]; int n = snprintf(b, sizeof b, f, i); *p = b[i]; return n; }
#include <time.h>
long planted2(void) { return time(0); }' '-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2' \
	'src/core/planted.c calls time()' "what is reported beside a fortified snprintf is the clock"
grep -q snprintf said && result 1 "a fortified snprintf is fine" || result 0 "a fortified snprintf is fine"

echo "1..$cases"
exit $failed
