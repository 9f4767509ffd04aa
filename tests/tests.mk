# SPDX-License-Identifier: MIT
#
# The test programs: every tests/c/test_*.c is one with cmocka that sees the library's insides;
# every tests/mpi/*.c is one that mpirun starts. Each is compiled into an object and then linked,
# so a change in the library or in one test compiles that file and links again.

# A test of a module includes a header of it, src/NAME/*.h or moongrid_NAME.h: a build without that module leaves it out.
space     := $(subst x,,x x)
of_absent  = $(if $(ABSENT),$(shell grep -lE '^.include "([a-z./]*/)?(moongrid_)?($(subst $(space),|,$(ABSENT) $(ABSENT:s=)))[./]' $(1)))
without    = $(filter-out $(call of_absent,$(1)),$(1))
TEST_SRC := $(call without,$(sort $(wildcard tests/c/test_*.c)))
TEST_BIN := $(TEST_SRC:tests/c/%.c=$(B)/tests/%)
MPI_SRC  := $(if $(HAVE_mpi),$(sort $(wildcard tests/mpi/*.c)))
MPI_BIN  := $(MPI_SRC:tests/mpi/%.c=$(B)/tests/mpi/%)
PORT_BIN := $(if $(HAVE_mpi),$(patsubst examples/%.c,$(B)/tests/%,$(sort $(wildcard examples/ports/*.c))))
TRAINERS := $(if $(HAVE_mpi),$(addprefix $(B)/tests/,multi_gpu rl_sync joining lua_host))
NCCL_BIN := $(patsubst tests/nccl/%.c,$(B)/tests/nccl/%,$(wildcard tests/nccl/*.c))

# What a trainer links: the shared libraries, which lie one folder up or two.
AS_TRAINER = $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/../..' -L$(B) -lmoongrid_mpi -lmoongrid $(LIBS_mpi)

tests: all $(TEST_BIN) $(MPI_BIN)

# They only ask the library: to optimize them takes longer than they run.
$(TEST_BIN:$(B)/tests/%=$(B)/tests/c/%.o) $(MPI_BIN:=.o) $(NCCL_BIN:=.o): OPT = -O0 -g $(filter-out -O% -g,$(OPT_$(VARIANT)))

# What `scripts/test core` runs, of CORE=1.
core: all $(TEST_BIN) $(filter %/materialize,$(MPI_BIN))

# Some define functions of MPI, which the libraries then call. MPICH's headers do not mark them as visible.
$(B)/tests/mpi/%.o: OWN_FLAGS = $(FLAGS_mpi) -fvisibility=default
$(B)/tests/nccl/%.o: OWN_FLAGS = $(FLAGS_mpi) $(FLAGS_nccl) -Itests/mpi
$(B)/tests/%.o: tests/%.c Makefile tests/tests.mk
	$(compile)

# The examples of trainers and the ports of other systems, as their authors would build them.
$(B)/tests/%.o: examples/%.c Makefile tests/tests.mk
	$(compile)

$(MPI_BIN:=.o) $(NCCL_BIN:=.o) $(TRAINERS:=.o) $(PORT_BIN:=.o): $(MPI_FLAGS)

$(TEST_BIN): $(B)/tests/%: $(B)/tests/c/%.o $(LUA_OBJ) $(B)/libmoongrid.a
	$(CC) $< -o $@ $(WITH_LUA) $(shell $(PKG_CONFIG) --libs cmocka) $(ALL_LDFLAGS)

# Calls of every public function, from the headers.
$(B)/gen/nulls.h: tests/c/nulls.lua $(CORE_HEADERS)
	@mkdir -p $(@D)
	$(LUA) $^ > $@

$(B)/tests/c/test_nulls.o: OWN_FLAGS = -I$(B)
$(B)/tests/c/test_nulls.o: $(B)/gen/nulls.h

# Structs that are all zero but for their size.
$(B)/gen/zeroed.h: tests/c/zeroed.lua $(CORE_HEADERS)
	@mkdir -p $(@D)
	$(LUA) $^ > $@

$(B)/tests/c/test_structs.o: OWN_FLAGS = -I$(B)
$(B)/tests/c/test_structs.o: $(B)/gen/zeroed.h

# What scripts/lab/systems compares between systems, and what tests/lua/worst_spec.lua runs.
tests: $(B)/tests/digests $(B)/tests/worst

$(B)/tests/digests $(B)/tests/worst: $(B)/tests/%: $(B)/tests/c/%.o $(LUA_OBJ) $(B)/libmoongrid.a
	$(CC) $< -o $@ $(WITH_LUA) $(shell $(PKG_CONFIG) --libs cmocka) $(ALL_LDFLAGS)

# Every allocation of the library goes through the test, which lets a chosen one fail. The functions are visible: musl has
# no versions of symbols, so the linker also gives them to other libraries.
STARVED := test_memory test_starved test_reshard test_base
$(STARVED:%=$(B)/tests/c/%.o): OWN_FLAGS = -fvisibility=default
$(STARVED:%=$(B)/tests/%): LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# These use internal functions, too.
INSIDE := %/step_ends %/join_other %/closing %/struck %/calls
$(filter $(INSIDE),$(MPI_BIN)): %: %.o $(B)/libmoongrid_mpi.a $(LUA_OBJ) $(B)/libmoongrid.a
	$(CC) $< -o $@ $(ALL_LDFLAGS) $(B)/libmoongrid_mpi.a $(WITH_LUA) $(LIBS_mpi) $(shell $(PKG_CONFIG) --libs cmocka)

$(B)/tests/mpi/join: $(B)/tests/mpi/join_other # which it starts

$(filter-out %/starved $(INSIDE),$(MPI_BIN)): %: %.o $(LIB) $(B)/libmoongrid_mpi.so.$(SOVER)
	$(CC) $< -o $@ $(AS_TRAINER) -ldl

# From the archives, whose allocations the linker can redirect.
$(filter %/starved,$(MPI_BIN)): %: %.o $(B)/libmoongrid_mpi.a $(LUA_OBJ) $(B)/libmoongrid.a
	$(CC) $< -o $@ $(ALL_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc $(B)/libmoongrid_mpi.a $(WITH_LUA) $(LIBS_mpi)

# The nccl backend as a trainer sees it, and the stand-in libraries that it runs on here.
ifeq ($(HAVE_mpi)$(HAVE_nccl),yesyes)
tests: $(NCCL_BIN) build/standin/libnccl.so.2 $(B)/tests/rccl/libmoongrid_rccl.so.$(SOVER)
endif

$(NCCL_BIN): %: %.o $(LIB) $(B)/libmoongrid_mpi.so.$(SOVER)
	$(CC) $< -o $@ $(AS_TRAINER) -ldl

# The rccl backend without a ROCm, compiled for headers that stand for RCCL's and HIP's: it runs on the stand-in alone.
RCCL_STANDIN := $(SRC_rccl:src/%.c=$(B)/tests/rccl/%.o)
$(RCCL_STANDIN): OWN_FLAGS = -DMGRID_RCCL -isystem tests/nccl/standin/rocm $(FLAGS_nccl)
$(B)/tests/rccl/%.o: src/%.c $(wildcard tests/nccl/standin/rocm/*/*.h) Makefile tests/tests.mk
	$(compile)

$(B)/tests/rccl/libmoongrid_rccl.so.$(SOVER): $(RCCL_STANDIN) $(B)/libmoongrid.a $(MAP)
	$(call link_backend,$(RCCL_STANDIN),$(LIBS_rccl))

build/standin/libnccl.so.2: $(wildcard tests/nccl/standin/*.[ch] tests/cuda/*.[ch]) tests/nccl/standin/build.sh
	$(call SAY,CC,tests/nccl/standin)
	SAN= CUDA_INCLUDE=$(NCCL_DIR) tests/nccl/standin/build.sh build/standin

# A CUDA runtime without a GPU, for NCCL's own host code.
ifneq ($(shell grep -sE 'define CUDART_VERSION +13' $(NCCL_DIR)cuda_runtime_api.h),)
tests: build/cuda/selftest
endif

build/cuda/selftest: $(wildcard tests/cuda/*.[ch]) tests/cuda/cudart.map tests/cuda/build.sh
	$(call SAY,CC,tests/cuda)
	SAN= CUDA_INCLUDE=$(NCCL_DIR) tests/cuda/build.sh build/cuda

tests: $(TRAINERS) $(PORT_BIN)
$(TRAINERS:=.o) $(PORT_BIN:=.o): OWN_FLAGS = $(FLAGS_mpi)
$(B)/tests/multi_gpu.o: OWN_FLAGS = $(FLAGS_mpi) $(if $(HAVE_nccl),-DWITH_NCCL $(FLAGS_nccl))

$(filter-out %/lua_host,$(TRAINERS)) $(PORT_BIN): %: %.o $(LIB) $(B)/libmoongrid_mpi.so.$(SOVER)
	$(CC) $< -o $@ $(AS_TRAINER) -lm

$(B)/tests/lua_host: %: %.o $(LIB) $(B)/libmoongrid_mpi.so.$(SOVER) $(B)/libmoongrid_lua.so.$(SOVER)
	$(CC) $< -o $@ -L$(B) -lmoongrid_lua $(AS_TRAINER) $(LUA_LIBS)

# The example of a host without MPI, which links nothing but the library.
tests: $(B)/tests/carrier

$(B)/tests/carrier: $(B)/tests/carrier.o $(LIB)
	$(CC) $< -o $@ $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/../..' -L$(B) -lmoongrid

-include $(RCCL_STANDIN:.o=.d) $(PORT_BIN:=.d) $(TRAINERS:=.d) $(B)/tests/carrier.d $(TEST_SRC:tests/%.c=$(B)/tests/%.d) $(MPI_SRC:tests/%.c=$(B)/tests/%.d) $(NCCL_BIN:=.d)
.PHONY: tests core

# Which lines of Lua are reached: linked with everything.
ifdef COV
LDFLAGS += $(B)/lines.o -Wl,--wrap=luaL_newstate,--wrap=lua_sethook
$(OBJ): | $(B)/lines.o
$(B)/lines.o: tests/lines.c
	$(CC) $(BASE_FLAGS) $(LUA_CFLAGS) -DLINES='"$(abspath $(B))/lua.lines"' -c $< -o $@
endif

# The fuzz targets: each tests/fuzz/NAME.c but fuzz.c and replay.c is one. FUZZ=1 compiles them by clang, and links libFuzzer's
# main; SAN=1 links that of replay.c, which tries the corpus.
CC := $(if $(FUZZ),clang,$(CC))
FUZZ_SRC := $(filter-out tests/fuzz/fuzz.c tests/fuzz/replay.c $(if $(HAVE_pmix),,tests/fuzz/pmix.c),$(sort $(wildcard tests/fuzz/*.c)))
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/tests/fuzz/%)
FUZZ_WITH := $(B)/tests/fuzz/fuzz.o $(if $(FUZZ),,$(B)/tests/fuzz/replay.o)

fuzz:
	+$(MAKE) FUZZ=1 fuzzers

fuzzers: $(FUZZ_BIN)

ifneq ($(FUZZ)$(SAN),)
$(B)/gen/calls.h: tests/fuzz/calls.lua $(CORE_HEADERS)
	@mkdir -p $(@D)
	$(LUA) $^ > $@

$(B)/gen/userdata.h: tests/fuzz/embed.lua tests/fuzz/userdata.lua $(wildcard src/recipe/words/*.c src/tensors/lua/*.c) src/recipe/module.c
	@mkdir -p $(@D)
	$(LUA) $^ > $@

$(B)/gen/names.h: tests/fuzz/embed.lua tests/fuzz/names.lua
	@mkdir -p $(@D)
	$(LUA) $^ > $@

# gcc takes a variable for one that hides a type of its name.
$(B)/tests/fuzz/%.o: OWN_FLAGS = -I$(B) -Wno-shadow
$(B)/tests/fuzz/calls.o: $(B)/gen/calls.h
$(B)/tests/fuzz/userdata.o: $(B)/gen/userdata.h
$(B)/tests/fuzz/names.o: $(B)/gen/names.h
# It is not in the library: the carrier over PMIx, whose functions the target defines.
$(B)/tests/fuzz/pmix: FUZZED := $(B)/comm/carriers/pmix.o $(LIBS_pmix)
$(B)/tests/fuzz/pmix: $(B)/comm/carriers/pmix.o
$(B)/tests/fuzz/pmix.o: OWN_FLAGS = -I$(B) -Wno-shadow -Wno-array-parameter $(FLAGS_pmix)
$(B)/tests/fuzz/moves: FUZZED = $(shell $(PKG_CONFIG) --libs cmocka)
$(FUZZ_BIN): %: %.o $(FUZZ_WITH) $(LUA_OBJ) $(B)/libmoongrid.a
	$(call SAY,LD,$@)
	$(CC) $(ALL_LDFLAGS) $(if $(FUZZ),-fsanitize=fuzzer) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@ $< $(FUZZ_WITH) $(FUZZED) $(WITH_LUA)

-include $(FUZZ_SRC:tests/%.c=$(B)/tests/%.d) $(FUZZ_WITH:.o=.d)
endif
.PHONY: fuzz fuzzers
.SECONDARY: $(FUZZ_BIN:=.o)
