# make help lists the targets. Everything built goes under build/$(VARIANT)/.
VARIANT ?= debug
B       := build/$(ARCH:%=%/)$(VARIANT)
PREFIX  ?= /usr/local
ETC     ?= $(patsubst /usr/etc,/etc,$(PREFIX)/etc)
MAN     ?= $(PREFIX)/share/man
BASH_COMPLETION ?= $(PREFIX)/share/bash-completion/completions
ZSH_COMPLETION  ?= $(PREFIX)/share/zsh/site-functions
FISH_COMPLETION ?= $(PREFIX)/share/fish/vendor_completions.d
FUZZ_SECONDS ?= 60

LIBDIRS  := $(patsubst src/%/,%,$(wildcard src/*/))
LIBS     := $(LIBDIRS:%=$(B)/lib%.a)
PROGRAMS := $(patsubst src/%/main.c,%,$(wildcard src/*/main.c))
BINS     := $(PROGRAMS:%=$(B)/%)
BINS     := $(BINS:%-cli=%)
HEADERS  := $(wildcard include/*/*.h src/*/*.h)
PB_INCLUDE ?= /usr/include
PB_H     := $(patsubst proto/%.proto,$(B)/gen/%.pb-c.h,$(wildcard proto/*.proto))
TESTS    := $(patsubst test/unit/%.c,$(B)/test/%,$(wildcard test/unit/test_$(or $(T),*).c))
SCRIPTS  := $(wildcard test/unit/test_$(or $(T),*).sh)
PEERS    := $(wildcard test/interop/*/*_peer.c)
FUZZED   := $(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_$(or $(T),*).c))
BENCHES  := $(patsubst test/bench/%.c,$(B)/bench/%,$(wildcard test/bench/bench_$(or $(T),*).c))

# ARCH=arm64 or amd64: for that processor, with Debian's cross compiler (tools/setup image) and what
# tools/sysroot has made; what it builds runs here by QEMU.
MACHINE_amd64 := x86_64
MACHINE_arm64 := aarch64
ifneq ($(ARCH),)
MACHINE := $(or $(MACHINE_$(ARCH)),$(error ARCH=$(ARCH) is neither amd64 nor arm64))
SYSROOT := $(shell tools/sysroot --path $(ARCH))
CC      := $(MACHINE)-linux-gnu-gcc --sysroot=$(SYSROOT)
RUN     := qemu-$(MACHINE)-static -L $(SYSROOT)
else # gcc's TSan before 14 does not bear as much address randomization as kernels since 6.6 do
RUN     := $(if $(filter tsan,$(VARIANT)),setarch -R)
endif

WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef \
        -Wswitch-enum -Wnull-dereference -Wdouble-promotion $(WERROR)
HARD := -fstack-protector-strong -fstack-clash-protection -fno-common -fvisibility=hidden -fPIE
# a section for each function and table: what nobody calls is in no program (make kept lists it)
HARD += -ffunction-sections -fdata-sections
LINK := -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed,--gc-sections
# by itself Ubuntu's gcc does so with every -O, and warns then of results that nobody looks at
FORTIFY   := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
V_debug   := -O1 -g3 $(FORTIFY)
V_release := -O2 -g $(FORTIFY)
# the same programs wherever the tree lies
V_release += $(patsubst %,-ffile-prefix-map=%=.,$(CURDIR) $(SYSROOT))
V_asan    := -O1 -g3 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
V_tsan    := -O1 -g3 -fsanitize=thread
V_cov     := -O0 -g3 --coverage
V_fuzz    := -O1 -g3 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
$(if $(V_$(VARIANT)),,$(error VARIANT=$(VARIANT) is none of $(sort $(patsubst V_%,%,$(filter V_%,$(.VARIABLES))))))
ifeq ($(VARIANT),fuzz)
CC := clang
endif
# a score is the same to the last bit on every processor: no fused multiply-add
CFLAGS   += -std=gnu11 -ffp-contract=off $(WARN) $(HARD) $(V_$(VARIANT))
# where tests break things (src/io/fault.h): in nothing that is installed
CPPFLAGS += $(if $(filter release,$(VARIANT)),,-DNUMAFIT_FAULTS)
CPPFLAGS += -D_GNU_SOURCE -Ulinux -Iinclude -Isrc -I$(B)/gen -MMD -MP
LDFLAGS  += $(LINK) $(V_$(VARIANT))
# What is released has gRPC in it: as 40 shared libraries it costs twice the memory. Where its
# archives, or libstdc++'s, are not there, these stay outside, as they do under sanitizers.
archive   = $(wildcard $(shell $(CC) -print-file-name=lib$(1).a 2>/dev/null))
GRPC_DIR := $(if $(filter release,$(VARIANT)),$(dir $(call archive,grpc_unsecure)))
GRPC_A   := $(if $(GRPC_DIR),$(wildcard $(addprefix $(GRPC_DIR)lib, \
              grpc_unsecure.a gpr.a upb.a address_sorting.a cares*.a z.a absl_*.a)))
# arm64's linker has no short relocations
INSIDE   := -static-libgcc $(if $(filter aarch64,$(MACHINE)),,-Wl,-z,pack-relative-relocs) -Wl,--start-group $(GRPC_A) \
            -Wl,--end-group $(or $(call archive,stdc++),-l:libstdc++.so.6)
LDLIBS   += $(if $(GRPC_A),$(INSIDE),-lgrpc_unsecure -lgpr)
LDLIBS   += -lprotobuf-c -luv -lmicrohttpd -lgnutls -ljansson -lyaml -lhwloc -lnuma -lm
ARCHIVES  = -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

ifeq ($(MAKELEVEL),0) # as many jobs as processors, unless the user says otherwise
MAKEFLAGS += -j$(shell nproc) --no-print-directory
endif
.PHONY: all help demo test checks emulated built fuzzers interop e2e ui-test soak fuzz run-fuzz corpus bench run-bench gain run-gain layers headers kept reach lint format \
        coverage list-coverage install deb archives image write-image chart clean
.SECONDARY:
.DELETE_ON_ERROR:

# What is made of the programs' own tables of options: a program prints it. Programs that a sanitizer
# is in print the same: make PAGES= leaves it out.
PAGES := $(addprefix $(B)/man/,numafit.1 numafit-sim.1 numafitd.yaml.5 numafitd.8 numafit-extender.8) \
         $(foreach s,bash zsh fish,$(BINS:$(B)/%=$(B)/completion/$s/%))
all: $(BINS) $(PAGES) ## build every program, man pages and completion for shells
help: ## list the targets
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  VARIANT=debug|release|asan|tsan|cov|fuzz selects the flags and build/VARIANT/"
	@echo "  T=name takes one test, fuzzer or benchmark; V=1 shows the compiler's command lines"

# Compile: one rule for all; what protoc-c writes gets our flags, but none of our warnings.
Q := $(if $(V),,@)
SAY = @$(if $(V),:,echo "  $(1)	$(or $(2),$@)")
$(B)/%.o: %.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/gen/%.o: $(B)/gen/%.c
	$(call SAY,CC)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out $(WARN),$(CFLAGS)) -c -o $@ $<
$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	$(call SAY,PROTOC,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --proto_path=proto --proto_path=$(PB_INCLUDE) --c_out=$(B)/gen $<
# The files of the pages are in this one (.incbin).
$(B)/src/ui/assets.o: $(wildcard src/ui/*.html src/ui/*.css src/ui/*.js src/ui/*.svg)
PB_USERS := $(patsubst %.c,$(B)/%.o,$(wildcard src/*/*_pb.c test/*/*_pb.c))
$(PB_USERS): | $(PB_H)

# Link: a library for each folder of src/, main.c apart; a program is a main.c, and like the tests
# it takes what it needs from all of them.
define library
$(B)/lib$(1).a: $(patsubst %.c,$(B)/%.o,$(filter-out %/main.c,$(wildcard src/$(1)/*.c))) \
		$(if $(wildcard src/$(1)/*_pb.c),$(PB_H:.h=.o))
	@mkdir -p $$(@D)
	@rm -f $$@
	$(Q)$(AR) crs $$@ $$^
endef
$(foreach d,$(LIBDIRS),$(eval $(call library,$(d))))
define link
	$(call SAY,LD)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(1) $(ARCHIVES)
endef
define program # of its folder's name, less -cli
$(B)/$(1:%-cli=%): $(B)/src/$(1)/main.o $(LIBS)
	$$(call link)
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))
$(B)/test/%: $(B)/test/unit/%.o $(LIBS)
	$(call link,-lcmocka)
$(B)/replay/%: $(B)/test/fuzz/fuzz_%.o $(B)/test/fuzz/replay.o $(LIBS)
	$(call link)
# A corpus is one text in git, and a folder with a file for each input where it is used.
$(B)/corpus_pack: test/fuzz/corpus_pack.c
	$(call SAY,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O1 -o $@ $<
$(B)/corpus/%: test/fuzz/corpus/%.txt $(B)/corpus_pack
	@mkdir -p $(@D)
	$(Q)$(RUN) $(B)/corpus_pack unpack $< $@ && touch $@
$(B)/fuzz/%: $(B)/test/fuzz/%.o $(LIBS)
	$(call link,-fsanitize=fuzzer)
$(B)/bench/%: $(B)/test/bench/%.o $(LIBS)
	$(call link)
define peer
$(B)/interop/$(basename $(notdir $(1))): $(B)/$(1:.c=.o) $(LIBS)
	$$(call link,$$(if $$(findstring upgrade,$(1)),-lcmocka))
endef
$(foreach p,$(PEERS),$(eval $(call peer,$p)))
$(B)/ui_cluster: $(B)/test/ui/cluster.o $(LIBS)
	$(call link,-lcmocka)
# what the unit tests have of it, too
GAIN_PARTS := $(patsubst %.c,$(B)/%.o,$(addprefix test/gain/,stats.c table.c svg.c report_json.c arms_json.c))
$(B)/gain/gain: $(patsubst %.c,$(B)/%.o,$(wildcard test/gain/*.c)) $(LIBS)
	$(call link)
$(B)/test/test_gain_words: $(GAIN_PARTS)
$(B)/mover: $(B)/test/programs/mover.o $(LIBS)
	$(call link)
$(B)/ui_runtime: $(B)/test/ui/runtime.o $(LIBS)
	$(call link,-lcmocka)

define page
	$(call SAY,DOC)
	@mkdir -p $(@D)
	$(Q)$(RUN) $1 >$@
endef
$(B)/man/numafitd.yaml.5: $(B)/numafit
	$(call page,$< config --manual)
$(B)/man/%.1 $(B)/man/%.8: $(B)/%
	$(call page,$< --man)
define completion
$(B)/completion/$(1)/%: $(B)/%
	$$(call page,$$< --completion $(1))
endef
$(foreach s,bash zsh fish,$(eval $(call completion,$(s))))

demo: ## place demo containers on an 8-node machine and show where they went
	@tools/setup build
	@$(MAKE) -s VARIANT=release
	@tools/demo
test: ## build and run all tests (VARIANT=asan or tsan: under that sanitizer; ARCH=arm64: for that processor, emulated)
	@tools/setup build test $(filter asan tsan,$(VARIANT)) $(if $(ARCH),image)
	@$(if $(ARCH),tools/sysroot $(ARCH) >/dev/null)
	@$(MAKE) -s $(if $(ARCH),emulated,checks)
# libraries of folders that are no more
$(shell rm -f $(filter-out $(LIBS),$(wildcard $(B)/lib*.a)))
checks: $(BINS) $(if $(T),,$(PAGES)) $(if $(filter %/test_gain.sh,$(SCRIPTS)),$(B)/gain/gain) $(TESTS) $(FUZZED:%=$(B)/replay/%) $(FUZZED:%=$(B)/corpus/%) $(LIBS) $(if $(T),,headers)
	@BUILD=$(B) CC='$(CC)' $(RUN) tools/run-tests $(TESTS) $(SCRIPTS) \
		$(foreach f,$(FUZZED),"$(B)/replay/$f $(B)/corpus/$f") $(if $(T),,"tools/layers $(B)" "tools/kept $(B)")
# Tests that are programs; test/unit/not-emulated says which cannot run so, and why.
EMULATED = $(filter-out $(patsubst %,$(B)/test/%,$(shell sed -n 's/^\(test_[a-z_0-9]*\) .*/\1/p' test/unit/not-emulated)),$(TESTS))
emulated: $(EMULATED) $(FUZZED:%=$(B)/replay/%) $(FUZZED:%=$(B)/corpus/%)
	@TEST_TIMEOUT=$(or $(TEST_TIMEOUT),900) tools/run-tests $(foreach t,$(EMULATED),"$(RUN) $t") \
		$(foreach f,$(FUZZED),"$(RUN) $(B)/replay/$f $(B)/corpus/$f")
layers: $(LIBS) ## fail if a dependency points up or sideways, or base or core is impure
	@tools/layers $(B)
kept: $(BINS) $(TESTS) $(FUZZED:%=$(B)/replay/%) $(LIBS) ## fail if there is a public function that no program and no test keeps
	@tools/kept $(B)
reach: ## count the functions, files and climbs of one CreateContainer, from the socket to the answer
	@tools/setup build
	@tools/reach
headers: $(HEADERS:%=$(B)/%.ok) ## fail if a header does not compile on its own
$(B)/%.h.ok: %.h | $(PB_H)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out --coverage,$(CFLAGS)) -Wno-unused-function -fsyntax-only -x c $< -MF $@.d -MT $@ && touch $@
PEERS_BUILT := $(patsubst %.c,$(B)/interop/%,$(notdir $(PEERS)))
interop: ## run against the other sides' own code: containerd's NRI package, grpc-go, the kubelet's managers and APIs, schedulers' plugins, Prometheus (needs Go); PART="nri kubelet" takes some, ALL=1 all versions
	@tools/setup build interop
	@$(MAKE) -s $(B)/numafitd $(B)/numafit $(B)/numafit-extender $(B)/numafit-sim $(PEERS_BUILT)
	@test/interop/run $(B) $(PART)
e2e: ## run with real containerd, runc and kernel (root, Go); PART="containerd-2.4.2 vm" takes some, ALL=1 all
	@tools/setup build e2e
	@$(MAKE) -s $(B)/numafitd $(B)/numafit $(B)/numafit-extender $(B)/gain/gain $(B)/mover
	@test/e2e/run $(B)/numafitd $(B)/numafit $(PART)
ui-test: ## look at the pages of a node and of a cluster with a headless Chromium: structure, hostile names, width, colours (Debian alone)
	@tools/setup build ui
	@$(MAKE) -s $(B)/numafitd $(B)/numafit-extender $(B)/ui_runtime $(B)/ui_cluster
	@test/ui/run $(B)
	@test/ui/run-cluster $(B)
soak: ## churn, kills, full disks, hotplug and more for MINUTES (10), at random from SEED (needs Go)
	@tools/setup build interop
	@$(MAKE) -s $(B)/numafitd $(B)/numafit
	@test/soak/run $(B)/numafitd $(B)/numafit

built: ## build, and do not run, all that targets, scripts and pages name: benchmarks, peers, fuzzers, Go tests of all versions, the steps of .ci
	@tools/setup build test interop fuzz
	@$(MAKE) -s all $(TESTS) $(BENCHES) $(PEERS_BUILT) $(addprefix $(B)/,bench/constant gain/gain mover ui_runtime ui_cluster)
	@$(MAKE) -s B=build/clang CC=clang fuzzers
	@tools/run-tests "test/built/run $(B)" test/built/planted
fuzzers: $(FUZZED:%=$(B)/fuzz/fuzz_%)

fuzz: ## fuzz every parser for FUZZ_SECONDS (60) each
	@tools/setup build fuzz
	@$(MAKE) -s VARIANT=fuzz run-fuzz
run-fuzz: $(FUZZED:%=run-fuzz-%)
run-fuzz-%: $(B)/fuzz/fuzz_% $(B)/corpus/%
	@mkdir -p $(B)/found/$*
	@$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -verbosity=0 -artifact_prefix=$(B)/found/crash-$*- \
		$(B)/found/$* $(B)/corpus/$*
	@echo "  fuzz	$*: nothing found in $(FUZZ_SECONDS) s"
corpus: $(B)/corpus_pack ## write build/VARIANT/corpus/T back into test/fuzz/corpus/T.txt: T=name
	@$< pack $(B)/corpus/$(T) test/fuzz/corpus/$(T).txt
bench: ## measure (release build), beside the kubelet's own code, behind NRI's and as a device plugin where there is Go; T=vm: in a virtual machine (root)
	@tools/setup build $(if $(BENCH_VM),e2e)
	@$(MAKE) -s VARIANT=release run-bench
BENCH_NRI := $(if $(filter nri,$(or $(T),nri)),$(B)/numafitd $(B)/bench/constant)
BENCH_KUBELET := $(if $(filter kubelet,$(or $(T),kubelet)),$(B)/numafitd)
BENCH_EXTENDER := $(if $(filter extender,$(or $(T),extender)),$(B)/numafit-extender)
BENCH_VM := $(if $(filter vm,$(T)),$(B)/numafitd $(B)/numafit)
run-bench: $(BENCHES) $(BENCH_NRI) $(BENCH_KUBELET) $(BENCH_EXTENDER) $(BENCH_VM)
	@$(if $(BENCHES),test/bench/run $(BENCHES))
	@$(if $(BENCH_NRI),test/bench/nri/run $(BENCH_NRI))
	@$(if $(BENCH_KUBELET),test/bench/kubelet/run $(BENCH_KUBELET))
	@$(if $(BENCH_EXTENDER),test/bench/extender/run $(BENCH_EXTENDER))
	@$(if $(BENCH_VM),CASES="$(or $(CASES),figures)" test/e2e/run $(BENCH_VM) $(or $(PART),node-vm))
gain: ## measure what NUMA placement gains on this machine: SECONDS=2 RUNS=5 MEMORY=1Gi CPUS=N T=triad,chase,loop,redis PLAN=1; bars in build/gain.svg, values in build/gain.json
	@tools/setup build
	@$(if $(PLAN),,tools/setup gain || echo "make gain: without the package above redis is left out" >&2)
	@$(MAKE) -s VARIANT=release run-gain
run-gain: $(B)/gain/gain
	@$< --svg $(or $(SVG),build/gain.svg) --json $(or $(JSON),build/gain.json) $(SECONDS:%=--seconds %) $(RUNS:%=--runs %) \
		$(MEMORY:%=--memory %) $(CPUS:%=--cpus %) $(HELD:%=--held %) $(if $(ALONE),--alone) $(T:%=--only %) \
		$(if $(KUBELET_LIFTS),--kubelet-lifts) $(if $(PLAN),--plan)
coverage: ## run the tests, then list the lines covered in each source file
	@$(MAKE) -s VARIANT=cov WERROR= test # without optimization gcc warns of what is not so
	@$(MAKE) -s VARIANT=cov list-coverage
list-coverage:
	@gcov -n $$(find $(B)/src -name '*.gcda') | awk -F"[':%]" '/^File /{f=$$2} \
		/^Lines/ && f~/^src/{printf "%6.1f %%%s  %s\n", $$2, $$3, f; f=""}' | sort -k5
lint: ## spelling and words; static analysis: cppcheck, and gcc's analyzer over all that is compiled
	@tools/setup build lint
	@tools/check-words
	@cppcheck -q -j$$(nproc) --std=c11 --enable=warning,portability --error-exitcode=1 --inline-suppr \
		$(LINT_BLIND:%=--suppress=%) '-Djson_object_foreach(o,k,v)=for(;;)' -Iinclude -Isrc src
	@CFLAGS=-fanalyzer $(MAKE) -s B=build/lint CC=gcc
# cppcheck does not see through our for-each macros, arrays that a call fills, types of other headers; gcc and ASan do
LINT_BLIND := internalAstError uninitvar legacyUninitvar uninitStructMember \
              preprocessorErrorDirective:include/numafit/vec.h \
              preprocessorErrorDirective:src/io/http_client_curl.h
format: ## rewrite the sources with clang-format
	@tools/setup format
	@clang-format -i $(wildcard src/*/*.c test/*/*.c) $(HEADERS)
install: ## install a release build under $(DESTDIR)$(PREFIX)
	@$(MAKE) -s VARIANT=release
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/numafit $(DESTDIR)$(ETC)/numafit
	install -m755 $(addprefix build/release/,$(notdir $(BINS))) deploy/kubectl-numafit $(DESTDIR)$(PREFIX)/bin
	cp -R test/machines $(DESTDIR)$(PREFIX)/share/numafit
	rm -r $(DESTDIR)$(PREFIX)/share/numafit/machines/recorded
	install -m644 deploy/numafitd.yaml $(DESTDIR)$(ETC)/numafit/numafitd.yaml.example
	for page in build/release/man/*; do install -D -m644 $$page $(DESTDIR)$(MAN)/man$${page##*.}/$${page##*/} || exit; done
	for p in $(notdir $(BINS)); do \
		install -D -m644 build/release/completion/bash/$$p $(DESTDIR)$(BASH_COMPLETION)/$$p && \
		install -D -m644 build/release/completion/zsh/$$p $(DESTDIR)$(ZSH_COMPLETION)/_$$p && \
		install -D -m644 build/release/completion/fish/$$p $(DESTDIR)$(FISH_COMPLETION)/$$p.fish || exit; \
	done
NATIVE = $(shell dpkg --print-architecture 2>/dev/null)
deb: ## write Debian packages into build/deb (ARCHES="amd64 arm64")
	@tools/setup build deb $(if $(FOREIGN),image)
	@tools/deb $(ARCHES)
# what becomes part of the programs: for licences
LINKED = $(sort $(GRPC_A) $(call archive,stdc++) $(call archive,gcc) $(wildcard $(SYSROOT)/usr/include/uthash.h))
archives:
	@echo $(LINKED)
# Both processors where the other one's compiler is there; ARCHES with it installs that.
OTHER   = $(firstword $(filter-out $(NATIVE),amd64 arm64))
ARCHES ?= $(NATIVE) $(if $(shell command -v $(MACHINE_$(OTHER))-linux-gnu-g++ && command -v qemu-$(MACHINE_$(OTHER))-static),$(OTHER))
FOREIGN = $(filter-out $(NATIVE),$(ARCHES))
image: ## write container images, build/numafit-VERSION-ARCH.tar, and one of both; no container tool is needed (IMAGE=name, ARCHES="amd64 arm64")
	@tools/setup build $(if $(FOREIGN),image)
	@$(if $(filter $(NATIVE),$(ARCHES)),$(MAKE) -s VARIANT=release write-image)
	@$(foreach a,$(FOREIGN),tools/sysroot $a >/dev/null &&) :
	@$(foreach a,$(FOREIGN),$(MAKE) -s ARCH=$a VARIANT=release PAGES= write-image &&) :
	@$(if $(word 2,$(ARCHES)),tools/image-index build $(foreach a,$(sort $(ARCHES)),build/numafit-$(NUMBER)-$a.tar),\
		echo "left out: $(filter-out $(ARCHES),amd64 arm64): make image ARCHES=\"amd64 arm64\" installs what it needs")
NUMBER  = $(shell sed -n 's/.*NUMAFIT_VERSION "\(.*\)".*/\1/p' include/numafit/version.h)
write-image: $(BINS)
	@ARCH=$(ARCH) SYSROOT=$(SYSROOT) tools/image $(B) build $(LINKED)
chart: ## write the Helm chart, build/chart/numafit-VERSION.tgz, and as an OCI layout, build/chart/oci; helm is not needed
	@tools/chart build/chart
clean: ## remove build/
	rm -rf build
-include $(shell find $(B) -name '*.d' 2>/dev/null)
