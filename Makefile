# SPDX-License-Identifier: MIT
#
# make            build/: the command, the libraries, the Lua module
# make check      every test (scripts/test installs what is missing first); make lint, make format: the style
# make docs       the options of families in lua/moongrid/meta.lua, after a change of options
# make install    PREFIX=/usr/local DESTDIR=; make uninstall takes the same; packages, manual: scripts/make/install.mk
# make site       build/site/site: the documents as a site (scripts/setup --site installs what makes it)
# make fuzz       the fuzz targets, build/fuzz/tests/fuzz/* (clang; scripts/fuzz runs them)
# LUAV=5.5        build into build/lua5.5 for Lua 5.5, of pkg-config lua5.5: the module for its interpreter, and all the rest
# SAN=1           build into build/san with AddressSanitizer and UBSan; TSAN=1, COV=1: into build/tsan, build/cov
# CORE=1          build into build/core without the modules: only the core, from a recipe to communicators
# STD=c17         as another C; CC=clang; V=1 shows the commands

# The version is said in src/moongrid.h, and nowhere else.
VERSION := $(shell sed -n 's/^\#define MGRID_VERSION  *"\(.*\)"/\1/p' src/moongrid.h)
SOVER   := $(firstword $(subst ., ,$(VERSION)))
LUAV    ?= 5.4
B       := build$(if $(filter-out 5.4,$(LUAV)),/lua$(LUAV))

CC         ?= cc
AR         ?= ar
LD         ?= ld
OBJCOPY    ?= objcopy
LUA        ?= lua$(LUAV)
PKG_CONFIG ?= pkg-config
OPT        ?= -O2 -g
STD        ?= c11
RUNPATH    ?= yes# empty: the loader finds libraries where it looks by default, as in packages of distributions
, := ,

# Warnings are errors in a clone, not in a release. Seconds and pixels are enums beside doubles: clang 19 warns.
WERROR ?= $(if $(wildcard .git),-Werror)
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-enum-float-conversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wwrite-strings $(WERROR)
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
OPT_SAN  := -Og -g1 $(SANITIZE)
OPT_TSAN := -O0 -g -fsanitize=thread -fno-omit-frame-pointer
OPT_COV  := -O0 -g --coverage -fprofile-update=atomic
OPT_FUZZ := -O1 -g -fsanitize=fuzzer-no-link $(SANITIZE)
VARIANT  := $(if $(SAN),SAN,$(if $(TSAN),TSAN,$(if $(COV),COV,$(if $(FUZZ),FUZZ))))
ifneq ($(VARIANT),)
B   := build/$(shell echo $(VARIANT) | tr A-Z a-z)
OPT := $(OPT_$(VARIANT))
endif

# ---------------------------------------------------------------- what is built here
# The modules (src/README.md), each a folder of src of this name: capabilities beside the core. A new one is named here,
# with the bundled recipes and the subcommands of lua/command that need it.
MODULES := tensors machine checkpoints step survive
# Of these the Lua module's and the command's: no host in C needs them.
OF_LUA := checkpoints
RECIPES_tensors      := llama
COMMANDS_tensors     := move
COMMANDS_checkpoints := reshard
COMMANDS_machine     := machine place
COMMANDS_step        := step calibrate
COMMANDS_survive     := lose
ifdef CORE
B      := $(B)/core
ABSENT := $(MODULES)
MODULES :=
endif

# The backends and carriers, each a library of its own, of SRC_NAME. HAVE_NAME: can it be
# built here? FLAGS_ and LIBS_: to compile and to link it. PC_: the last argument of scripts/make/pkgconfig.
ALL_BACKENDS := mpi nccl rccl pmix
of_pkg = $(shell $(PKG_CONFIG) $(1) 2> /dev/null)
system = $(patsubst -I%,-isystem %,$(call of_pkg,--cflags $(1)))

MPI        := $(shell scripts/mpi --module || echo mpi-c)
SRC_mpi    := $(wildcard src/comm/mpi/*.c)
HAVE_mpi   := $(call of_pkg,--exists $(MPI) && echo yes)
FLAGS_mpi  := $(call system,$(MPI))
LIBS_mpi   := $(call of_pkg,--libs $(MPI)) $(call of_pkg,--libs libxxhash) -pthread
PC_mpi     := $(MPI)

CUDA_HOME  ?= $(firstword $(wildcard /usr/local/cuda /usr/local/cuda-*[0-9]) /usr)
NCCL_DIR   := $(firstword $(dir $(wildcard $(CUDA_HOME)/include/nccl.h /usr/include/nccl.h /usr/local/include/nccl.h)))
SRC_nccl   := $(wildcard src/comm/nccl/*.c)
HAVE_nccl  := $(shell grep -qs ncclCommRevoke $(NCCL_DIR)nccl.h && test -e $(NCCL_DIR)cuda_runtime_api.h && echo yes)
FLAGS_nccl := $(if $(HAVE_nccl),-isystem $(NCCL_DIR))
LIBS_nccl  := $(call of_pkg,--libs libxxhash) -ldl -lm -pthread
PC_nccl    := $(NCCL_DIR:/=)

# RCCL is opened like NCCL, by the same files, whose objects lie in another folder; its headers and HIP's are a ROCm's.
ROCM_PATH  ?= $(firstword $(wildcard /opt/rocm /opt/rocm-*) /usr)
SRC_rccl   := $(SRC_nccl)
HAVE_rccl  := $(shell cd $(ROCM_PATH)/include 2> /dev/null && test -e rccl/rccl.h && test -e hip/hip_runtime_api.h && echo yes)
FLAGS_rccl := -DMGRID_RCCL -D__HIP_PLATFORM_AMD__ -isystem $(ROCM_PATH)/include
LIBS_rccl  := $(LIBS_nccl)
PC_rccl    := $(ROCM_PATH)/include -D__HIP_PLATFORM_AMD__
APART_rccl := rccl/

SRC_pmix   := src/comm/carriers/pmix.c
HAVE_pmix  := $(call of_pkg,--exists pmix && echo yes)
FLAGS_pmix := $(call system,pmix)
LIBS_pmix  := $(call of_pkg,--libs pmix) $(call of_pkg,--libs libxxhash)
PC_pmix    := pmix

BACKENDS := $(foreach b,$(ALL_BACKENDS),$(if $(HAVE_$(b)),$(b)))

# The folders (src/README.md): the core, from a recipe to a trainer's questions, and the modules beside it. What uses Lua
# (recipe/, MODULE/lua/) goes into libmoongrid_lua.
objects = $(patsubst src/%.c,$(B)/%.o,$(foreach f,$(1),$(sort $(wildcard src/$(f)/*.c))))
OBJ     := $(filter-out %/pmix.o,$(call objects,base families plan comm comm/carriers $(filter-out $(OF_LUA),$(MODULES)))) $(B)/gen/modules_items.o
LUA_OBJ := $(filter-out %/luaopen.o,$(call objects,recipe recipe/words $(filter $(OF_LUA),$(MODULES)) $(MODULES:%=%/lua))) \
           $(B)/gen/bundle.o $(B)/gen/modules_lua.o
COMMAND := $(call objects,command) $(B)/gen/command.o

# libmoongrid, the libraries that it loads when something needs them, and the Python package (in a clone
# PYTHONPATH=build/python).
LOADED  := lua $(BACKENDS)
LIB     := $(B)/libmoongrid.so.$(SOVER)
LIBS_OF_BACKENDS := $(BACKENDS:%=$(B)/libmoongrid_%.so.$(SOVER))
# Lua as an archive, which goes into ours; nothing where there is none.
LUA_ARCHIVE ?= $(wildcard $(call of_pkg,--variable=libdir lua$(LUAV))/lib$(patsubst -l%,%,$(filter -llua%,$(call of_pkg,--libs-only-l lua$(LUAV)))).a)
ARCHIVES := $(B)/libmoongrid.a $(if $(LUA_ARCHIVE),$(B)/libmoongrid_lua.a) $(BACKENDS:%=$(B)/libmoongrid_%.a)
PYTHON_FILES := $(patsubst src/python/%,$(B)/python/%,$(wildcard src/python/moongrid/*)) $(B)/python/moongrid/_abi.py
OUT     := $(LIB) $(LOADED:%=$(B)/libmoongrid_%.so.$(SOVER)) $(ARCHIVES) $(B)/moongrid.so $(B)/moongrid $(PYTHON_FILES)
all: $(OUT)

# The public header of libmoongrid and its parts, which it includes.
CORE_HEADERS := src/moongrid.h $(patsubst %,src/moongrid%.h,_families _plan _backend _carrier _state _recipe) \
                $(wildcard $(patsubst %,src/moongrid_%.h,$(MODULES:s=)))
META := $(wildcard lua/moongrid/meta*.lua)

# ---------------------------------------------------------------- compile
DEPS      := jansson libxxhash
TEXT_DEPS := yaml-0.1 expat
# LuaRocks says where the headers of its Lua are; the module needs no library of Lua.
LUA_CFLAGS ?= $(call of_pkg,--cflags lua$(LUAV))
BASE_FLAGS := -std=$(STD) -D_GNU_SOURCE -DMGRID_SOVER='"$(SOVER)"' -Isrc $(WARN) $(if $(filter emcc,$(CC)),,-fPIC) -fvisibility=hidden -MMD -MP
ALL_CFLAGS  = $(BASE_FLAGS) $(OPT) $(call of_pkg,--cflags $(DEPS) $(TEXT_DEPS)) $(LUA_CFLAGS) $(CFLAGS)

# Without these two lines writing out the members of groups takes twice the time (-O2 does not vectorize its loops), and the
# libraries are a sixth larger: what waits for Lua, other ranks or a reader is as fast when it is built for size.
ifeq ($(VARIANT),)
$(patsubst %,$(B)/%.o,families/form_strided families/form_view families/family tensors/chunks): OPT += -O3
$(filter $(addprefix $(B)/,comm/% machine/% survive/%),$(OBJ)) $(LUA_OBJ) $(COMMAND): OPT += -Os
endif

ifndef V
.SILENT:
SAY = @echo "  $(1)  $(2)"
endif

define compile
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) $(OWN_FLAGS) -c $< -o $@
endef
$(B)/%.o: src/%.c Makefile
	$(compile)
$(B)/$(APART_rccl)%.o: src/%.c Makefile
	$(compile)
$(B)/gen/%.o: $(B)/gen/%.c
	$(compile)

# $(call note,FILE,TEXT): write it when it has changed, so that what was made for another MPI, or other modules, is made again
$(shell mkdir -p $(B)/gen $(B)/python/moongrid)
note = $(shell echo '$(2)' | cmp -s - $(1) || echo '$(2)' > $(1))
MPI_FLAGS := $(B)/gen/mpi.flags
$(call note,$(MPI_FLAGS),$(FLAGS_mpi) $(LIBS_mpi))
$(call note,$(B)/gen/modules,$(MODULES))

# ---------------------------------------------------------------- what is generated
# The Lua inside the library and inside the command: folders, so that a file that goes is noticed, and their files.
EMBED = COV=$(COV) $(LUA) scripts/make/embed.lua
within = $(1) $(wildcard $(addsuffix /*.lua,$(1))) $(wildcard lua/pictures/*.html lua/pictures/*.js lua/pictures/*.css) scripts/make/pages.lua
folders = $(patsubst %/,%,$(wildcard $(addsuffix /,$(1)) $(addsuffix /*/,$(1))))
$(B)/gen/bundle.c: scripts/make/embed.lua $(call within,$(call folders,lua/prelude lua/machine lua/pictures lua/moongrid/recipes)) Makefile
	$(EMBED) $(OF_PAGE) $@ $(foreach s,$(ABSENT),$(RECIPES_$(s)))
$(B)/gen/command.c: scripts/make/embed.lua $(call within,$(call folders,lua/command lua/pictures)) $(META) examples/layout.lua $(wildcard examples/init/*) Makefile
	$(EMBED) --command $@ $(foreach s,$(ABSENT),$(COMMANDS_$(s)))

# The tables of the modules, through which alone the core calls them: the rows mgrid_lua_module_NAME of
# src/NAME/lua/NAME_module.c, mgrid_item_reader_NAME of src/NAME/NAME_item.c.
# $(call table,FOLDER,SUFFIX,HEADER,ROW): the rows of those modules that have such a file
rows  = $(foreach s,$(MODULES),$(if $(wildcard src/$(s)/$(1)$(s)$(2)),$(s)))
table = { echo '\#include "$(3)"'; $(foreach s,$(call rows,$(1),$(2)),echo 'extern const $(4) $(4)_$(s);';) \
          echo 'const $(4) *const $(4)s[] = { $(foreach s,$(call rows,$(1),$(2)),&$(4)_$(s),) 0 };'; }
$(B)/gen/modules_lua.c: Makefile $(B)/gen/modules $(wildcard src/*/lua/*_module.c)
	$(call table,lua/,_module.c,recipe/module_row.h,mgrid_lua_module) > $@
$(B)/gen/modules_items.c: Makefile $(B)/gen/modules $(wildcard src/*/*_item.c)
	$(call table,,_item.c,plan/item.h,mgrid_item_reader) > $@

# The symbols that the libraries export, with the version of the interface. libmoongrid also exports what
# libmoongrid_lua and moongrid.so use of its inside: not hidden when it is compiled, and under the version of
# this very release, so that the loader refuses to bring together two releases.
MAP       := $(B)/gen/exports.map
LIB_MAP   := $(B)/gen/libmoongrid.map
$(OBJ): OWN_FLAGS := -fvisibility=default -fno-semantic-interposition
$(MAP): Makefile
	echo 'mgrid_$(SOVER) { global: mgrid_*; local: *; };' > $@
$(LIB_MAP): scripts/make/exports $(CORE_HEADERS) $(OBJ) $(LUA_OBJ) src/python/moongrid/_library.py
	scripts/make/exports $(VERSION) $(CORE_HEADERS) -- $(OBJ) -- $(LUA_OBJ) src/python/moongrid/_library.py > $@

# The Python package: its files, and the headers for ctypes.
$(B)/python/moongrid/_abi.py: scripts/make/python.lua scripts/make/headers.lua $(CORE_HEADERS)
	$(LUA) scripts/make/python.lua $(VERSION) $(CORE_HEADERS) > $@
$(B)/python/moongrid/%: src/python/moongrid/%
	cp $< $@

# ---------------------------------------------------------------- link
ALL_LDFLAGS = $(OPT) $(LDFLAGS)
LIBS     := $(call of_pkg,--libs $(DEPS)) -ldl -lm
LUA_LIBS := $(call of_pkg,--libs lua$(LUAV) $(TEXT_DEPS)) $(LIBS)
# What our own programs link: they use internal functions, and bring no other Lua.
WITH_LUA := $(LUA_OBJ) $(B)/libmoongrid.a $(LUA_LIBS)
# Tables of names need a relocation per name; packing them saves 12 KiB of a library, 57 of the command. Loaders before glibc
# 2.36, and that of musl 1.2.3, do not know packed ones.
PACKED := $(shell $(CC) -dM -E -include features.h -xc /dev/null 2> /dev/null | awk '$$2 == "__GLIBC__" { n += 1000 * $$3 } \
            $$2 == "__GLIBC_MINOR__" { n += $$3 } END { if (n >= 2036) print "-Wl,-z,pack-relative-relocs" }')
DEFS    := $(if $(filter SAN TSAN FUZZ,$(VARIANT)),,-Wl,-z,defs)
beside   = $(if $(RUNPATH),-Wl$(,)-rpath$(,)'$(1)')
SHARED   = $(CC) -shared $(ALL_LDFLAGS) $(PACKED) -Wl,-Bsymbolic -Wl,-soname,$(@F)
archive  = rm -f $@ && $(AR) rcs $@ $^

$(LIB): $(OBJ) $(LIB_MAP)
	$(call SAY,LD,$@)
	$(SHARED) $(DEFS) -Wl,--version-script=$(LIB_MAP) -o $@ $(OBJ) $(LIBS)
	ln -sf $(@F) $(B)/libmoongrid.so
$(B)/libmoongrid.a: $(OBJ)
	$(archive)

# What uses Lua. It links to libmoongrid, so that one copy of the code makes and frees plans and states.
$(B)/libmoongrid_lua.so.$(SOVER): $(LUA_OBJ) $(LIB) $(MAP)
	$(call SAY,LD,$@)
	$(SHARED) $(DEFS) -Wl,--version-script=$(MAP) $(call beside,$$ORIGIN) -o $@ $(LUA_OBJ) $(LIB) $(LUA_LIBS)
	ln -sf $(@F) $(B)/libmoongrid_lua.so

# `require "moongrid"`: the same objects; Lua is that of the interpreter which loads it. Were its functions not weak, an
# interpreter of another version, which lacks some of them, would end with a message of the loader instead of an error.
$(B)/gen/module.o: $(B)/recipe/luaopen.o $(LUA_OBJ)
	$(LD) -r -o $@ $^
	$(OBJCOPY) --wildcard --weaken-symbol 'lua_*' --weaken-symbol 'luaL_*' $@
$(B)/moongrid.so: $(B)/gen/module.o $(LIB)
	$(call SAY,LD,$@)
	echo '{ global: luaopen_moongrid; local: *; };' > $(B)/gen/module.map
	$(SHARED) -Wl,--version-script=$(B)/gen/module.map $(call beside,$$ORIGIN:$$ORIGIN/../..) -o $@ $< $(LIB) $(call of_pkg,--libs $(TEXT_DEPS)) $(LIBS)

# The archive for hosts with any Lua: were the Lua of recipes not inside with local symbols, it would clash with the host's.
# module_of_host.o, of moongrid_lua.h, uses the host's. Lua's archive may not be position-independent: were its standard
# streams not renamed, no shared library could link it; no function that is called has to do with them.
STREAMS := stdin stdout stderr
$(B)/gen/recipes.o: $(LUA_OBJ) $(LUA_ARCHIVE)
	$(LD) -r -o $@ $^
	$(OBJCOPY) $(foreach s,$(STREAMS),--redefine-sym $(s)=mgrid_no_$(s)) $@
	echo '$(foreach s,$(STREAMS),void *const mgrid_no_$(s) = 0;)' | $(CC) $(OPT) -fPIC -xc - -c -o $@.streams
	$(LD) -r -o $@.all $@ $@.streams
	$(OBJCOPY) --keep-global-symbol=mgrid_lua_entry $@.all $@
	rm $@.all $@.streams
$(B)/gen/module_of_host.o: $(LUA_OBJ) src/moongrid_lua.h
	$(LD) -r -o $@ $(LUA_OBJ)
	$(OBJCOPY) $(shell grep -oE '\bmgrid_lua_(open|push|to)\b' src/moongrid_lua.h | sed 's/^/--keep-global-symbol=/') $@
$(B)/libmoongrid_lua.a: $(B)/gen/recipes.o $(B)/gen/module_of_host.o
	$(archive)

# A library for each backend. It links its own hidden copy of what it needs from the archive, and no symbol
# may be missing (-z defs), so it works in any process.
define link_backend
	$(call SAY,LD,$@)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,--exclude-libs,ALL -Wl,--version-script=$(MAP) $(DEFS) -Wl,-soname,$(@F) -o $@ $(1) $(B)/libmoongrid.a $(2)
endef
define backend
OBJ_$(1) := $$(SRC_$(1):src/%.c=$$(B)/$$(APART_$(1))%.o)
$$(OBJ_$(1)): OWN_FLAGS := $$(FLAGS_$(1))
$$(B)/libmoongrid_$(1).so.$$(SOVER): $$(OBJ_$(1)) $$(B)/libmoongrid.a $$(MAP)
	$$(call link_backend,$$(OBJ_$(1)),$$(LIBS_$(1)))
	ln -sf $$(@F) $$(B)/libmoongrid_$(1).so
$$(B)/libmoongrid_$(1).a: $$(OBJ_$(1))
	$$(archive)
endef
$(foreach b,$(BACKENDS),$(eval $(call backend,$(b))))
$(OBJ_mpi): $(MPI_FLAGS)

# The command links no library of ours: it is one file to copy, and can use symbols that are not exported.
$(B)/moongrid: $(COMMAND) $(LUA_OBJ) $(B)/libmoongrid.a
	$(call SAY,LD,$@)
	$(CC) $(ALL_LDFLAGS) $(PACKED) -o $@ $(COMMAND) $(WITH_LUA)

# ---------------------------------------------------------------- tests, lint, documents
check: all
	scripts/test --no-setup
lint:
	scripts/lint
format:
	scripts/files '*.c' '*.h' | xargs clang-format -i
docs: $(B)/moongrid.so $(B)/moongrid
	LUA_CPATH_5_4='$(B)/?.so' $(LUA) scripts/make/docs.lua
site: all
	scripts/release/site
clean:
	rm -rf build

include scripts/make/install.mk scripts/make/wasm.mk tests/tests.mk

-include $(OBJ:.o=.d) $(LUA_OBJ:.o=.d) $(COMMAND:.o=.d) $(foreach b,$(BACKENDS),$(OBJ_$(b):.o=.d)) $(B)/recipe/luaopen.d
.PHONY: all check lint format docs site clean
.DELETE_ON_ERROR:
