#!/bin/sh
# tools/kept over a library of three functions, with one program and one test. TAP.
# usage, at the repository's root: test/unit/test_kept.sh
set -u
test=kept
. test/unit/script_rig.sh
mkdir "$dir/test"
cc="${CC:-cc} -ffunction-sections -Wl,--gc-sections -o"

# build MAIN TEST: what the program calls, and what the test
build() {
	printf 'int used(void); int tested(void); int own(void);\nint used(void) { return 1; }
		int tested(void) { return 2; }\nint own(void) { return 3; }\n' >"$dir/some.c"
	${CC:-cc} -ffunction-sections -c -o "$dir/some.o" "$dir/some.c" && ar crs "$dir/libsome.a" "$dir/some.o"
	echo "int used(void), tested(void), own(void); int main(void) { return $1; }" >"$dir/main.c"
	echo "int used(void), tested(void), own(void); int main(void) { return $2; }" >"$dir/t.c"
	$cc "$dir/program" "$dir/main.c" "$dir/libsome.a" && $cc "$dir/test/t" "$dir/t.c" "$dir/libsome.a"
}
kept() { tools/kept "$dir" "$dir/program" "$dir/test/t"; }

build 'used() + own()' 'tested()'
run "a function that only tests call is listed, and is no fault" 0 kept
see "by its file and name" is out "some.c: only tests call tested()"
build 'used()' 'tested() + used()'
run "one that neither a program nor a test calls is a fault" 1 kept
see "by its file and name" says out "some.c: nobody else calls own()"
build 'used()+tested()' 'own()+tested()+used()'
run "what a program calls is not listed" 0 kept
see "and what it does not call is" is out "some.c: only tests call own()"
run "without libraries there is no answer" 2 tools/kept "$dir/test" "$dir/program"
finish
