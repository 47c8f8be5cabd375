#!/bin/sh
# tools/reach against a small tree of which every figure is known. TAP.
# usage, at the repository's root: test/unit/test_reach.sh
set -eu
reach=$PWD/tools/reach tree=$(mktemp -d) cases=0 failed=0
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/include/numafit" "$tree/src/base" "$tree/src/core" "$tree/src/io" "$tree/src/codec" "$tree/src/daemon" "$tree/src/other" "$tree/tools"
cd "$tree"

cat >include/numafit/small.h <<'X'
/* base: */
int text_len(const char *s);
int decide(int n, int (*ask)(int));
int send_all(int n);
int print(int n);
extern int (*const table[2])(int);
static inline int twice(int n) { return 2 * n; }
X
cat >src/base/text.c <<'X'
#include <numafit/small.h>
static int step(const char *s)
{
	return *s ? 1 + text_len(s + 1) : 0;
}
int text_len(const char *s)
{
	return step(s);
}
X
cat >src/core/decide.c <<'X'
#include <numafit/small.h>
#include <stdlib.h>
static int step(int n)
{
	return n ? decide(n - 1, 0) : twice(n);
}
static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
int decide(int n, int (*ask)(int))
{
	int list[2] = {n, n};

	qsort(list, 2, sizeof *list, by_value);
	return text_len("two words") + ask(step(n) + table[n](n));
}
int never(int n)
{
	return n;
}
X
echo 'static inline int library(int n) { return n + rand(); }' >library.h
{ echo "#include <stdlib.h>"; echo "#include \"$tree/library.h\""; } >src/io/send.c
cat >>src/io/send.c <<'X'
#include <numafit/small.h>
static int first(int n)
{
	return twice(n);
}
static int second(int n)
{
	return n;
}
int (*const table[2])(int) = {first, second};
int send_all(int n)
{
	return text_len("") + print(library(n));
}
X
cat >src/codec/print.c <<'X' # on the floor of io
#include <numafit/small.h>
int print(int n)
{
	return n;
}
X
cat >src/daemon/main.c <<'X'
#include <numafit/small.h>
static int answer(int n)
{
	return n + 1;
}
static int done(int n)
{
	return n;
}
static int on_data(int n)
{
	return decide(n, answer) + send_all(n) + done(n);
}
int main(void)
{
	return on_data(1);
}
X
echo 'int main(void) { return 0; }' >src/other/main.c
cat >tools/reach-handlers <<'X'
decide:ask    daemon/main.c:answer
decide:table  first second          # both rows
decide:qsort  by_value
X

result() { # 0 or 1, name
	cases=$((cases + 1))
	[ "$1" = 0 ] && echo "ok $cases - $2" || { echo "not ok $cases - $2"; failed=1; sed 's/^/# /' said; }
}
look() { rc=0; "$reach" --tree-of "$tree" --program daemon "$@" >said 2>&1 || rc=$?; }
says() { # status text name: it ended so, and said just that
	[ $rc = "$1" ] && [ "$(cat said)" = "$2" ] && result 0 "$3" || result 1 "$3"
}

look --from daemon/main.c:on_data --tree
says 0 "on_data  src/daemon/main.c:10
  decide  src/core/decide.c:11
    *by_value  src/core/decide.c:7
    text_len  src/base/text.c:6
      step  src/base/text.c:2
    *answer  src/daemon/main.c:2
    *first  src/io/send.c:4
      twice  include/numafit/small.h:7
    *second  src/io/send.c:8
    step  src/core/decide.c:3
  send_all  src/io/send.c:13
    print  src/codec/print.c:2
  done  src/daemon/main.c:6" "calls are walked in the order of the source, each function once, recursion too"

look --from daemon/main.c:on_data
says 0 "functions 13
lines 52
files 6
stops 11
returns 5
climbs 4
handed-up 3" "functions, lines, files, stops, returns and climbs are counted"

look --from daemon/main.c:on_data --list
says 0 "include/numafit/small.h:7 twice 1
src/base/text.c:2 step 4
src/base/text.c:6 text_len 4
src/codec/print.c:2 print 4
src/core/decide.c:3 step 4
src/core/decide.c:7 by_value 4
src/core/decide.c:11 decide 7
src/daemon/main.c:2 answer 4
src/daemon/main.c:6 done 4
src/daemon/main.c:10 on_data 4
src/io/send.c:4 first 4
src/io/send.c:8 second 4
src/io/send.c:13 send_all 4" "the list is in the order of files, and two functions of one name are two"

printf 'decide:ask -\ndecide:table first\ndecide:qsort -\n' >rows
look --from daemon/main.c:on_data --tree rows
grep -q '\*first' said && ! grep -qE 'answer|second|by_value' said && result "$rc" "rows decide what a pointer leads to" ||
	result 1 "rows decide what a pointer leads to"

echo 'decide:ask daemon/main.c:answer' >rows
look --from daemon/main.c:on_data rows
[ $rc = 1 ] && grep -q 'src/core/decide.c:16:.*no row for the pointer that decide calls' said &&
	grep -q 'no row for decide:qsort' said && result 0 "a pointer, or a sort, without a row is reported" ||
	result 1 "a pointer, or a sort, without a row is reported"

printf 'decide:ask gone\ndecide:table step\n' >rows
look --from daemon/main.c:on_data rows
[ $rc = 1 ] && grep -q 'there is no function gone' said && grep -q 'several files have a function step' said &&
	result 0 "a row for a function that is not there, or in several files, is reported" ||
	result 1 "a row for a function that is not there, or in several files, is reported"

sed -i 's/ + done(n)//' src/daemon/main.c
look --from daemon/main.c:on_data --tree
! grep -q done said && result "$rc" "a source that has changed is read anew" || result 1 "a source that has changed is read anew"

look --from daemon/main.c:gone
says 2 "tools/reach: there is no function daemon/main.c:gone" "a beginning that is not there is an error"

echo "1..$cases"
exit $failed
