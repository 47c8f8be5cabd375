# make help lists the targets. Everything built goes under build/$(VARIANT)/.
VARIANT ?= debug
B       := build/$(VARIANT)
CC      ?= cc
PREFIX  ?= /usr/local
SHELL   := /bin/sh

PROGRAMS := numafitd numafit numafit-sim numafit-extender
LIBDIRS  := $(filter-out $(PROGRAMS),$(patsubst src/%/,%,$(wildcard src/*/)))
LIBS     := $(LIBDIRS:%=$(B)/lib%.a)
BINS     := $(foreach p,$(PROGRAMS),$(if $(wildcard src/$p/*.c),$(B)/$p))
TESTS    := $(patsubst test/unit/%.c,$(B)/test/%,$(wildcard test/unit/test_$(or $(T),*).c))
FUZZERS  := $(patsubst test/fuzz/%.c,$(B)/fuzz/%,$(wildcard test/fuzz/fuzz_$(or $(T),*).c))
BENCHES  := $(patsubst test/bench/%.c,$(B)/bench/%,$(wildcard test/bench/bench_*.c))
HEADERS  := $(wildcard include/*/*.h src/*/*.h)
PROTOS   := $(patsubst proto/%.proto,$(B)/gen/%.pb-c.o,$(wildcard proto/*.proto))

WERROR ?= -Werror
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef \
        -Wswitch-enum -Wnull-dereference -Wdouble-promotion $(WERROR)
HARD := -fstack-protector-strong -fstack-clash-protection -fno-common -fvisibility=hidden -fPIE
LINK := -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed
V_debug   := -O1 -g3
V_release := -O2 -g -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
V_asan    := -O1 -g3 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
V_tsan    := -O1 -g3 -fsanitize=thread
V_cov     := -O0 -g3 --coverage
V_fuzz    := -O1 -g3 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
$(if $(V_$(VARIANT)),,$(error unknown VARIANT '$(VARIANT)'))
ifeq ($(VARIANT),fuzz)
CC := clang
endif
CFLAGS   += -std=gnu11 $(WARN) $(HARD) $(V_$(VARIANT))
CPPFLAGS += -D_GNU_SOURCE -Iinclude -Isrc -I$(B)/gen -MMD -MP
LDFLAGS  += $(LINK) $(V_$(VARIANT))
LDLIBS   += -lprotobuf-c -luv -ljansson -lyaml -lhwloc -lnuma -lm

.PHONY: all deps demo test layers headers fuzz run-fuzz fuzz-corpus bench interop coverage format lint install clean help
.SECONDARY:
.DELETE_ON_ERROR:
all: $(BINS) ## build every program

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "  VARIANT=debug|release|asan|tsan|cov|fuzz selects the flags and build/VARIANT/"

deps: ## say what is missing to build and test, and install it (apt-get)
	@tools/setup build

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(@D)
	protoc-c --proto_path=proto --c_out=$(B)/gen $<
$(B)/gen/%.pb-c.o: $(B)/gen/%.pb-c.c # generated: our flags, but none of our warnings
	$(CC) $(CPPFLAGS) $(filter-out $(WARN),$(CFLAGS)) -c -o $@ $<
$(patsubst %.c,$(B)/%.o,$(wildcard src/*/*_pb.c test/*/*_pb.c)): | $(PROTOS)

define library
$(B)/lib$(1).a: $(patsubst %.c,$(B)/%.o,$(wildcard src/$(1)/*.c)) $(if $(wildcard src/$(1)/*_pb.c),$(PROTOS))
	@rm -f $$@
	$(AR) crs $$@ $$^
endef
$(foreach d,$(LIBDIRS),$(eval $(call library,$(d))))
define program
$(B)/$(1): $(patsubst %.c,$(B)/%.o,$(wildcard src/$(1)/*.c)) $(LIBS)
	$(CC) $(LDFLAGS) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
endef
$(foreach p,$(PROGRAMS),$(eval $(call program,$(p))))
$(B)/test/%: $(B)/test/unit/%.o $(LIBS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group -lcmocka $(LDLIBS)
$(B)/fuzz/%: $(B)/test/fuzz/%.o $(LIBS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)
$(B)/bench/%: $(B)/test/bench/%.o $(LIBS)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS) -Wl,--end-group $(LDLIBS)

layers: $(LIBS) ## fail if a dependency points up or sideways, or the core is impure
	@tools/layers $(B)
headers: $(HEADERS:%=$(B)/%.ok) ## fail if a header does not compile on its own
$(B)/%.h.ok: %.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -Wno-unused-function -fsyntax-only -x c $< -MF $@.d -MT $@ && touch $@
clean: ## remove build/
	rm -rf build
-include $(shell find $(B) -name '*.d' 2>/dev/null)
