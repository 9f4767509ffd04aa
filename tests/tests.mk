# SPDX-License-Identifier: MIT
#
# The C tests: every tests/c/test_*.c is a program with cmocka that sees the library's
# insides; every tests/mpi/*.c is one that mpirun starts.

TEST_SRC  := $(sort $(wildcard tests/c/test_*.c))
TEST_BIN  := $(TEST_SRC:tests/c/%.c=$(B)/tests/%)
MPI_SRC   := $(sort $(wildcard tests/mpi/*.c))
MPI_BIN   := $(MPI_SRC:tests/mpi/%.c=$(B)/tests/mpi/%)
TEST_LIBS  = $(shell $(PKG_CONFIG) --libs cmocka)

tests: all $(TEST_BIN) $(if $(HAVE_MPI),$(MPI_BIN))

$(B)/tests/test_%: tests/c/test_%.c $(wildcard tests/c/*.h) $(B)/libmoongrid.a
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) -Itests/c $< -o $@ $(B)/libmoongrid.a $(LIBS) $(TEST_LIBS) $(ALL_LDFLAGS)

# Every allocation of the library goes through the test, which lets a chosen one fail.
$(B)/tests/test_memory: LDFLAGS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc

# As a trainer links: against the shared libraries and the public headers alone.
$(B)/tests/mpi/%: tests/mpi/%.c tests/mpi/tap.h $(LIB) $(LIB_MPI)
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) $(MPI_FLAGS) $< -o $@ $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../..' -L$(B) -lmoongrid_mpi -lmoongrid $(MPI_LIBS)

# The nccl backend as a trainer sees it, and the stand-in libraries that it runs on here.
ifeq ($(HAVE_MPI)$(HAVE_NCCL),yesyes)
tests: $(B)/tests/nccl/trainer build/standin/libnccl.so.2
endif

$(B)/tests/nccl/trainer: tests/nccl/trainer.c tests/mpi/tap.h $(LIB) $(LIB_MPI)
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) -Itests/mpi $(MPI_FLAGS) $(NCCL_FLAGS) $< -o $@ $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN/../..' -L$(B) -lmoongrid_mpi -lmoongrid $(MPI_LIBS) -ldl

build/standin/libnccl.so.2: $(wildcard tests/nccl/standin/*.[ch]) tests/nccl/standin/build.sh
	$(call SAY,CC,tests/nccl/standin)
	CUDA_INCLUDE=$(NCCL_DIR) tests/nccl/standin/build.sh build/standin

# The example of a trainer that exists, as its author would build it: C, and C++ for the headers.
ifeq ($(HAVE_MPI),yes)
tests: $(B)/tests/multi_gpu
endif

$(B)/tests/multi_gpu: examples/multi_gpu.c $(LIB) $(LIB_MPI)
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) $(MPI_FLAGS) $(if $(HAVE_NCCL),-DWITH_NCCL $(NCCL_FLAGS)) $< -o $@ $(ALL_LDFLAGS) \
	  -Wl,-rpath,'$$ORIGIN/..' -L$(B) -lmoongrid_mpi -lmoongrid $(MPI_LIBS)

.PHONY: tests
