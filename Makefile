# SPDX-License-Identifier: MIT
#
# make            build/: the command, the libraries, the Lua module
# make check      every test (scripts/test installs what is missing first)
# make lint       the rule of dependencies, luacheck, shellcheck
# make docs       the tables of options in lua/ and src/command/, after a change of options
# make install    PREFIX=/usr/local DESTDIR=; make uninstall takes the same
# make install-lua  the Lua module alone, for LuaRocks (scripts/*.rockspec)
# make rock       build/dist/moongrid-VERSION-1.src.rock, for luarocks install
# make wheel      build/wheel/*.whl, for pip (scripts/wheel)
# make deb        build/deb/*.deb, packages for Debian (scripts/debian/)
# make dist       build/dist/moongrid-VERSION.tar.gz, which builds without git, and the licences of what is linked
# make site       build/site/site: the documents as a site (scripts/setup --site installs what makes it)
# make fuzz       the fuzz targets, build/fuzz/tests/fuzz/* (clang; scripts/fuzz runs them)
# LUAV=5.5        build into build/lua5.5 for Lua 5.5, of pkg-config lua5.5: the module for its interpreter, and all the rest
# SAN=1           build into build/san with AddressSanitizer and UBSan; TSAN=1, COV=1: into build/tsan, build/cov
# CORE=1          build into build/core without the slices: the way from a recipe to communicators alone
# STD=c17         as another C; CC=clang

# The version is said in src/moongrid.h, and nowhere else.
VERSION := $(shell sed -n 's/^\#define MGRID_VERSION  *"\(.*\)"/\1/p' src/moongrid.h)
SOVER   := $(basename $(VERSION))
PREFIX  ?= /usr/local
LUAV    ?= 5.4
LIBDIR  ?= $(PREFIX)/lib
LUA_CMOD ?= $(LIBDIR)/lua/$(LUAV)
LUA_LMOD ?= $(PREFIX)/share/lua/$(LUAV)
MANDIR  ?= $(PREFIX)/share/man
# RUNPATH=      the loader finds libraries where it looks by default, as in packages of distributions, not beside each other
RUNPATH ?= yes
, := ,

CC         ?= cc
AR         ?= ar
LD         ?= ld
OBJCOPY    ?= objcopy
LUA        ?= lua$(LUAV)
PKG_CONFIG ?= pkg-config
OPT        ?= -O2 -g
STD        ?= c11
B          := build$(if $(filter-out 5.4,$(LUAV)),/lua$(LUAV))

# Seconds and pixels are enums beside doubles: clang 19 warns.
WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-enum-float-conversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wwrite-strings -Werror
ifdef SAN
B   := build/san
OPT := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif
ifdef TSAN
B   := build/tsan
OPT := -O0 -g -fsanitize=thread -fno-omit-frame-pointer
endif
ifdef COV
B   := build/cov
OPT := -O0 -g --coverage -fprofile-update=atomic
LDFLAGS += $(B)/lines.o -Wl,--wrap=luaL_newstate,--wrap=lua_sethook
endif
# libFuzzer is clang's. Only the targets link its main; all other code is compiled with its counters and sanitizers.
ifdef FUZZ
B   := build/fuzz
CC  := clang
OPT := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

# The slices (src/README.md), each a folder of src of this name: capabilities beside the way. A new one is named here.
SLICES := tensors machine checkpoints ras step survive
# Of these the Lua module's and the command's: no host in C needs them.
OF_LUA := checkpoints ras
# The bundled recipes that need a slice; the core is built without them.
RECIPES_tensors := llama
# And the subcommands of lua/command.
COMMANDS_tensors := move
COMMANDS_checkpoints := reshard
COMMANDS_machine := machine place
COMMANDS_step := step
COMMANDS_survive := lose
ifdef CORE
B      := $(B)/core
ABSENT := $(SLICES)
SLICES :=
LACKING := $(foreach s,$(ABSENT),$(RECIPES_$(s)))
LACKING_COMMANDS := $(foreach s,$(ABSENT),$(COMMANDS_$(s)))
endif

DEPS      := jansson libxxhash
TEXT_DEPS := yaml-0.1 expat
LUA_DEPS  := lua$(LUAV) $(TEXT_DEPS)
# Lua as an archive, which goes into ours; nothing where there is none.
LUA_ARCHIVE ?= $(wildcard $(shell $(PKG_CONFIG) --variable=libdir lua$(LUAV))/lib$(patsubst -l%,%,$(filter -llua%,$(shell $(PKG_CONFIG) --libs-only-l lua$(LUAV)))).a)
# LuaRocks says where the headers of its Lua are; the module needs no library of Lua.
LUA_CFLAGS ?= $(shell $(PKG_CONFIG) --cflags lua$(LUAV))

BASE_FLAGS := -std=$(STD) -D_GNU_SOURCE -DMGRID_SOVER='"$(SOVER)"' -Isrc $(WARN) -fPIC -fvisibility=hidden -MMD -MP
ALL_CFLAGS  = $(BASE_FLAGS) $(OPT) $(shell $(PKG_CONFIG) --cflags $(DEPS) $(TEXT_DEPS)) $(LUA_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(OPT) $(LDFLAGS)
LIBS       := $(shell $(PKG_CONFIG) --libs $(DEPS)) -ldl -lm
LUA_LIBS   := $(shell $(PKG_CONFIG) --libs $(LUA_DEPS)) $(LIBS)

# The backends and carriers, each a library of its own, of SRC_NAME. HAVE_NAME: can it be
# built here? FLAGS_ and LIBS_: to compile and to link it. PC_: the last argument of scripts/pkgconfig.
ALL_BACKENDS := mpi nccl rccl pmix

MPI       := $(shell scripts/mpi --module || echo mpi-c)
HAVE_mpi  := $(shell $(PKG_CONFIG) --exists $(MPI) && echo yes)
FLAGS_mpi := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(MPI) 2>/dev/null))
LIBS_mpi  := $(shell $(PKG_CONFIG) --libs $(MPI) 2>/dev/null) $(shell $(PKG_CONFIG) --libs libxxhash) -pthread
PC_mpi    := $(MPI)
# Rewritten only when make is run with another MPI: then what was compiled for the last one is compiled again.
MPI_FLAGS := $(B)/gen/mpi.flags
$(shell mkdir -p $(B)/gen; echo '$(FLAGS_mpi) $(LIBS_mpi)' | cmp -s - $(MPI_FLAGS) || echo '$(FLAGS_mpi) $(LIBS_mpi)' > $(MPI_FLAGS))

# NCCL is opened at run time: its backend needs only the headers (of 2.28.7 or later; the library that runs
# may be older), and does not link with NCCL.
CUDA_HOME  ?= $(firstword $(wildcard /usr/local/cuda /usr/local/cuda-*[0-9]) /usr)
NCCL_DIR   := $(firstword $(dir $(wildcard $(CUDA_HOME)/include/nccl.h /usr/include/nccl.h /usr/local/include/nccl.h)))
HAVE_nccl  := $(shell grep -qs ncclCommRevoke $(NCCL_DIR)nccl.h && test -e $(NCCL_DIR)cuda_runtime_api.h && echo yes)
FLAGS_nccl := $(if $(HAVE_nccl),-isystem $(NCCL_DIR))
LIBS_nccl  := $(shell $(PKG_CONFIG) --libs libxxhash) -ldl -lm -pthread
PC_nccl    := $(NCCL_DIR:/=)

# RCCL is opened like NCCL, by the same files; its headers and those of HIP are a ROCm's.
ROCM_PATH  ?= $(firstword $(wildcard /opt/rocm /opt/rocm-*) /usr)
HAVE_rccl  := $(shell test -e $(ROCM_PATH)/include/rccl/rccl.h && test -e $(ROCM_PATH)/include/hip/hip_runtime_api.h && echo yes)
FLAGS_rccl := -DMGRID_RCCL -D__HIP_PLATFORM_AMD__ -isystem $(ROCM_PATH)/include
LIBS_rccl  := $(LIBS_nccl)
PC_rccl    := $(ROCM_PATH)/include -D__HIP_PLATFORM_AMD__

HAVE_pmix  := $(shell $(PKG_CONFIG) --exists pmix && echo yes)
FLAGS_pmix := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags pmix 2>/dev/null))
LIBS_pmix  := $(shell $(PKG_CONFIG) --libs pmix 2>/dev/null) $(shell $(PKG_CONFIG) --libs libxxhash)
PC_pmix    := pmix

BACKENDS := $(foreach b,$(ALL_BACKENDS),$(if $(HAVE_$(b)),$(b)))

SRC_mpi  := $(wildcard src/comm/mpi/*.c)
SRC_nccl := $(wildcard src/comm/nccl/*.c)
SRC_rccl := $(SRC_nccl)
SRC_pmix := src/comm/carriers/pmix.c
# Where the objects lie of a backend whose files are compiled for another one, too.
APART_rccl := rccl/

# The rooms (src/README.md): the way from a recipe to a trainer's questions, and the slices beside it. Of each, what
# uses Lua goes into libmoongrid_lua (recipe/, ROOM/lua/).
WAY     := base families plan comm comm/carriers
files    = $(foreach s,$(1),$(sort $(wildcard src/$(s)/*.c)))
SRC     := $(filter-out $(SRC_pmix),$(call files,$(WAY) $(filter-out $(OF_LUA),$(SLICES))))
LUA_SRC := $(filter-out src/recipe/luaopen.c,$(call files,recipe recipe/words $(filter $(OF_LUA),$(SLICES)) $(SLICES:%=%/lua)))
OBJ     := $(SRC:src/%.c=$(B)/%.o) $(B)/gen/slices_items.o
LUA_OBJ := $(LUA_SRC:src/%.c=$(B)/%.o) $(B)/gen/bundle.o $(B)/gen/slices_lua.o
COMMAND := $(patsubst src/%.c,$(B)/%.o,$(call files,command)) $(B)/gen/texts.o $(B)/gen/command.o
# The Lua inside the library: scripts/embed.lua takes every file of these folders.
LUAFOLDERS := $(patsubst %/,%,lua/prelude/ lua/machine/ lua/pictures/ lua/moongrid/recipes/ $(wildcard lua/moongrid/recipes/*/))
PAGES      := $(wildcard lua/pictures/*.html lua/pictures/*.js)
LUATEXT    := $(LUAFOLDERS) $(wildcard $(LUAFOLDERS:%=%/*.lua)) $(PAGES)

# What is built: libmoongrid, and the libraries that it loads when something needs them.
LOADED  := lua $(BACKENDS)
LIB     := $(B)/libmoongrid.so.$(SOVER)
LIBS_OF_BACKENDS := $(BACKENDS:%=$(B)/libmoongrid_%.so.$(SOVER))
ARCHIVES := $(B)/libmoongrid.a $(if $(LUA_ARCHIVE),$(B)/libmoongrid_lua.a) $(BACKENDS:%=$(B)/libmoongrid_%.a)
# The Python package (src/python), with the headers for ctypes; in a clone PYTHONPATH=build/python
PYTHON_FILES := $(patsubst src/python/%,$(B)/python/%,$(wildcard src/python/moongrid/*)) $(B)/python/moongrid/_abi.py
OUT     := $(LIB) $(LOADED:%=$(B)/libmoongrid_%.so.$(SOVER)) $(ARCHIVES) $(B)/moongrid.so $(B)/moongrid $(PYTHON_FILES)
# What our own programs link: they use internal functions, and bring no other Lua.
WITH_LUA := $(LUA_OBJ) $(B)/libmoongrid.a $(LUA_LIBS)

all: $(OUT)

# Writing out members is bound by memory if its loops are vectorized, which -O2 does not do. What waits for Lua, other ranks or a
# reader is as fast when built for size, and a sixth smaller.
ifeq ($(SAN)$(TSAN)$(COV)$(FUZZ),)
$(patsubst %,$(B)/%.o,families/strided families/picked families/members tensors/chunks): OPT += -O3
$(filter $(addprefix $(B)/,checkpoints/% comm/% recipe/% survive/% tensors/lua/%),$(OBJ) $(LUA_OBJ)): OPT += -Os
endif

# One line per step; V=1 shows the commands.
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

$(B)/gen/bundle.c: scripts/embed.lua $(LUATEXT)
	@mkdir -p $(@D)
	COV=$(COV) $(LUA) scripts/embed.lua $@ $(LACKING)

# Texts are longer than those that -Wpedantic allows.
$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(filter-out -Wpedantic,$(ALL_CFLAGS)) $(OWN_FLAGS) -c $< -o $@

# The tables of the slices, which the way goes through and calls nothing of a slice otherwise: the rows mgrid_lua_slice_NAME
# of src/NAME/lua/slice.c, mgrid_item_reader_NAME of src/NAME/item_reader.c. Written again when SLICES changes.
SLICE_LIST := $(B)/gen/slices
$(shell echo '$(SLICES)' | cmp -s - $(SLICE_LIST) || echo '$(SLICES)' > $(SLICE_LIST))
# $(call table,FILE,HEADER,ROW): the rows of those slices that have such a file
rows  = $(foreach s,$(SLICES),$(if $(wildcard src/$(s)/$(1)),$(s)))
table = { echo '\#include "$(2)"'; $(foreach s,$(call rows,$(1)),echo 'extern const $(3) $(3)_$(s);';) \
          echo 'const $(3) *const $(3)s[] = { $(foreach s,$(call rows,$(1)),&$(3)_$(s),) 0 };'; }
$(B)/gen/slices_lua.c: Makefile $(SLICE_LIST) $(wildcard $(SLICES:%=src/%/lua/slice.c))
	$(call table,lua/slice.c,recipe/slice.h,mgrid_lua_slice) > $@
$(B)/gen/slices_items.c: Makefile $(SLICE_LIST) $(wildcard $(SLICES:%=src/%/item_reader.c))
	$(call table,item_reader.c,plan/item.h,mgrid_item_reader) > $@

# Which lines of Lua are reached: linked with everything (COV=1).
$(B)/lines.o: tests/lines.c
	@mkdir -p $(@D)
	$(CC) $(BASE_FLAGS) $(LUA_CFLAGS) -DLINES='"$(abspath $(B))/lua.lines"' -c $< -o $@
ifdef COV
$(OBJ): | $(B)/lines.o
endif

# The bundled recipes as they were written, for the command to print: megatron, and its parts as megatron.grids.
RECIPES := $(filter-out $(LACKING:%=lua/moongrid/recipes/%.lua),$(wildcard lua/moongrid/recipes/*.lua lua/moongrid/recipes/*/*.lua))
META    := $(wildcard lua/moongrid/meta*.lua)
TEXTS   := :layout.lua=examples/layout.lua $(foreach f,$(META),:$(notdir $(f))=$(f)) $(foreach f,$(RECIPES),$(subst /,.,$(patsubst lua/moongrid/recipes/%.lua,%,$(f)))=$(f))
$(B)/gen/texts.c: scripts/texts.lua $(RECIPES) $(META) examples/layout.lua Makefile
	@mkdir -p $(@D)
	$(LUA) scripts/texts.lua $@ $(TEXTS)

# The Lua of the command.
COMMAND_LUA := lua/command $(wildcard lua/command/*/ lua/command/*.lua lua/command/*/*.lua) $(PAGES)
$(B)/gen/command.c: scripts/embed.lua $(COMMAND_LUA) Makefile
	@mkdir -p $(@D)
	COV=$(COV) $(LUA) scripts/embed.lua --command $@ $(LACKING_COMMANDS)

# The symbols that the libraries export, with the version of the interface. libmoongrid also exports what
# libmoongrid_lua and moongrid.so use of its inside: not hidden when it is compiled, and under the version of
# this very release, so that the loader refuses to bring together two releases.
MAP     := $(B)/gen/exports.map
LIB_MAP := $(B)/gen/libmoongrid.map
OF_PYTHON := src/python/moongrid/_library.py
$(MAP): Makefile
	@mkdir -p $(@D)
	echo 'mgrid_$(SOVER) { global: mgrid_*; local: *; };' > $@

$(OBJ): OWN_FLAGS := -fvisibility=default -fno-semantic-interposition
# The public header of libmoongrid and its parts, which it includes.
CORE_HEADERS := src/moongrid.h $(patsubst %,src/moongrid%.h,_families _plan _backend _carrier _state _recipe) \
                $(wildcard $(patsubst %,src/moongrid_%.h,$(SLICES:s=)))
$(LIB_MAP): scripts/exports $(CORE_HEADERS) $(OBJ) $(LUA_OBJ) $(OF_PYTHON)
	scripts/exports $(VERSION) $(CORE_HEADERS) -- $(OBJ) -- $(LUA_OBJ) $(OF_PYTHON) > $@

# Tables of names need a relocation per name; packing them saves 12 KiB of the library. Loaders before glibc 2.36, and that
# of musl 1.2.3, do not know packed ones.
PACKED := $(shell $(CC) -dM -E -include features.h -xc /dev/null 2> /dev/null | awk '$$2 == "__GLIBC__" { n += 1000 * $$3 } \
            $$2 == "__GLIBC_MINOR__" { n += $$3 } END { if (n >= 2036) print "-Wl,-z,pack-relative-relocs" }')
SHARED = $(CC) -shared $(ALL_LDFLAGS) $(PACKED) -Wl,-Bsymbolic -Wl,-soname,$(@F)
DEFS  := $(if $(SAN)$(TSAN)$(FUZZ),,-Wl,-z,defs)

$(LIB): $(OBJ) $(LIB_MAP)
	$(call SAY,LD,$@)
	$(SHARED) $(DEFS) -Wl,--version-script=$(LIB_MAP) -o $@ $(OBJ) $(LIBS)
	ln -sf $(@F) $(B)/libmoongrid.so

$(B)/libmoongrid.a: $(OBJ)
	rm -f $@
	$(AR) rcs $@ $^

# What uses Lua. It links to libmoongrid, so that one copy of the code makes and frees plans and states.
$(B)/libmoongrid_lua.so.$(SOVER): $(LUA_OBJ) $(LIB) $(MAP)
	$(call SAY,LD,$@)
	$(SHARED) $(DEFS) -Wl,--version-script=$(MAP) $(if $(RUNPATH),-Wl$(,)-rpath$(,)'$$ORIGIN') -o $@ $(LUA_OBJ) $(LIB) $(LUA_LIBS)
	ln -sf $(@F) $(B)/libmoongrid_lua.so

# The host that links the archive may have any Lua, too. recipes.o contains its own Lua, with local symbols; module.o, of
# moongrid_lua.h, uses the host's, which the linker refuses if it is not 5.4. Lua's archive may not be
# position-independent: then its standard streams alone keep it out of shared libraries, and no function that is called
# has to do with them.
STREAMS := stdin stdout stderr
$(B)/gen/streams.o:
	@mkdir -p $(@D)
	echo '$(foreach s,$(STREAMS),void *const mgrid_no_$(s) = 0;)' | $(CC) $(OPT) -fPIC -xc - -c -o $@

$(B)/gen/recipes.o: $(LUA_OBJ) $(LUA_ARCHIVE) | $(B)/gen/streams.o
	$(LD) -r -o $@ $^
	$(OBJCOPY) $(foreach s,$(STREAMS),--redefine-sym $(s)=mgrid_no_$(s)) $@
	$(LD) -r -o $@.all $@ $(B)/gen/streams.o
	$(OBJCOPY) --keep-global-symbol=mgrid_lua_entry $@.all $@
	rm $@.all

OF_HOST := $(shell grep -oE '\bmgrid_lua_(open|push|to)\b' src/moongrid_lua.h)
$(B)/gen/module_of_host.o: $(LUA_OBJ) src/moongrid_lua.h
	$(LD) -r -o $@ $(LUA_OBJ)
	$(OBJCOPY) $(OF_HOST:%=--keep-global-symbol=%) $@

$(B)/libmoongrid_lua.a: $(B)/gen/recipes.o $(B)/gen/module_of_host.o
	rm -f $@
	$(AR) rcs $@ $^

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
	rm -f $$@
	$$(AR) rcs $$@ $$^
endef
$(B)/$(APART_rccl)%.o: src/%.c Makefile
	$(compile)
$(foreach b,$(BACKENDS),$(eval $(call backend,$(b))))
$(OBJ_mpi): $(MPI_FLAGS)

# `require "moongrid"`: the same objects, and Lua is that of the interpreter which loads it. Its functions are weak,
# so that an interpreter of another version, which lacks some of them, can load it and get an error.
$(B)/gen/module.o: $(B)/recipe/luaopen.o $(LUA_OBJ)
	$(LD) -r -o $@ $^
	$(OBJCOPY) --wildcard --weaken-symbol 'lua_*' --weaken-symbol 'luaL_*' $@

$(B)/moongrid.so: $(B)/gen/module.o $(LIB)
	$(call SAY,LD,$@)
	echo '{ global: luaopen_moongrid; local: *; };' > $(B)/gen/module.map
	$(SHARED) -Wl,--version-script=$(B)/gen/module.map $(if $(RUNPATH),-Wl$(,)-rpath$(,)'$$ORIGIN:$$ORIGIN/../..') -o $@ $< $(LIB) $(shell $(PKG_CONFIG) --libs $(TEXT_DEPS)) $(LIBS)

# The module of Fortran, which programs compile with their own compiler.
$(B)/fortran/moongrid.f90: scripts/fortran.lua src/fortran/moongrid.inc $(CORE_HEADERS) src/moongrid_mpi.h
	@mkdir -p $(@D)
	$(LUA) scripts/fortran.lua src/fortran/moongrid.inc $(VERSION) $(CORE_HEADERS) src/moongrid_mpi.h > $@

fortran: $(B)/fortran/moongrid.f90

$(B)/python/moongrid/_abi.py: scripts/python.lua $(CORE_HEADERS)
	@mkdir -p $(@D)
	$(LUA) scripts/python.lua $(VERSION) $(CORE_HEADERS) > $@

$(B)/python/moongrid/%: src/python/moongrid/%
	@mkdir -p $(@D)
	cp $< $@

# The command links no library of ours: it is one file to copy, and can use symbols that are not exported.
$(B)/moongrid: $(COMMAND) $(LUA_OBJ) $(B)/libmoongrid.a
	$(call SAY,LD,$@)
	$(CC) $(ALL_LDFLAGS) -o $@ $(COMMAND) $(WITH_LUA)

# ------------------------------------------------------------------------- manual
MAN := build/man/moongrid.1 build/man/moongrid.3
man: $(MAN)

$(MAN): build/man/moongrid.%: scripts/man.lua scripts/man3.lua scripts/headers.lua src/embedding.md src/CHANGES.md $(B)/moongrid $(wildcard src/*.h)
	@mkdir -p $(@D)
	$(LUA) scripts/man.lua $* $@

# ------------------------------------------------------------------- tests, lint
check: all
	scripts/test --no-setup

lint:
	scripts/lint

# The tables of options in the annotations and in lua/README.md, from the library's own tables.
docs: $(B)/moongrid.so $(B)/moongrid
	LUA_CPATH_5_4='$(B)/?.so' $(LUA) scripts/docs.lua

# The documents as a site.
site: all
	scripts/site

# The C style, by .clang-format.
format:
	scripts/files '*.c' '*.h' | xargs clang-format -i

# --------------------------------------------------------------------- install
# A backend's header has the name of the folder of its files: rccl has that of nccl.
HEADERS := $(CORE_HEADERS) src/moongrid_lua.h src/moongrid_cpp.h $(sort $(wildcard $(foreach b,$(BACKENDS),$(patsubst src/comm/%/,src/moongrid_%.h,$(dir $(firstword $(SRC_$(b))))))))
PC      = $(D)$(LIBDIR)/pkgconfig
CMAKE   = $(D)$(LIBDIR)/cmake/moongrid
MODULES = $(PREFIX)/share/modulefiles/moongrid
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR  ?= $(PREFIX)/share/zsh/site-functions
FISHDIR ?= $(PREFIX)/share/fish/vendor_completions.d
# folders stand in quotes: their names may have blanks
D = $(DESTDIR)

install: all man fortran
	for folder in $(foreach v,PREFIX LIBDIR MANDIR LUA_CMOD LUA_LMOD,'$v=$($v)'); do \
	  case "$$folder" in *=/*) ;; *) echo "$${folder%%=*} is a path from the root, not '$${folder#*=}'" >&2; exit 1;; esac; \
	done
	install -d '$(D)$(PREFIX)'/bin '$(D)$(PREFIX)'/include '$(D)$(LIBDIR)'/pkgconfig '$(D)$(LUA_CMOD)' '$(D)$(LUA_LMOD)'/moongrid
	install -m 755 $(B)/moongrid '$(D)$(PREFIX)'/bin/
	install -m 644 $(HEADERS) $(B)/fortran/moongrid.f90 '$(D)$(PREFIX)'/include/
	$(if $(ABSENT),sed -i $(foreach s,$(ABSENT:s=),-e '/^#include "moongrid_$(s)\.h"/d') '$(D)$(PREFIX)'/include/moongrid.h)
	for name in moongrid $(LOADED:%=moongrid_%); do \
	  install -m 755 $(B)/lib$$name.so.$(SOVER) '$(D)$(LIBDIR)'/ && \
	  ln -sf lib$$name.so.$(SOVER) '$(D)$(LIBDIR)'/lib$$name.so || exit 1; \
	done
	install -m 644 $(ARCHIVES) '$(D)$(LIBDIR)'/
	$(if $(LUA_ARCHIVE),,echo 'libmoongrid_lua.a is left out: it takes an archive of Lua 5.4, and there is none (LUA_ARCHIVE=FILE)')
	install -d '$(D)$(MANDIR)'/man1 '$(D)$(MANDIR)'/man3
	install -m 644 build/man/moongrid.1 '$(D)$(MANDIR)'/man1/
	install -m 644 build/man/moongrid.3 '$(D)$(MANDIR)'/man3/
	for name in moongrid moongrid_lua $(if $(LUA_ARCHIVE),moongrid_static); do scripts/pkgconfig $$name $(VERSION) '$(PREFIX)' '$(LIBDIR)' > '$(PC)'/$$name.pc || exit 1; done
	$(foreach b,$(BACKENDS),scripts/pkgconfig moongrid_$(b) $(VERSION) '$(PREFIX)' '$(LIBDIR)' $(PC_$(b)) > '$(PC)'/moongrid_$(b).pc &&) true
	install -d '$(CMAKE)'
	for file in moongrid-config.cmake moongrid-config-version.cmake; do \
	  scripts/cmake-package $$file $(VERSION) '$(PREFIX)' '$(LIBDIR)' > '$(CMAKE)'/$$file || exit 1; \
	done
	chmod 644 '$(PC)'/moongrid*.pc '$(CMAKE)'/*
	install -m 755 $(B)/moongrid.so '$(D)$(LUA_CMOD)'/
	install -m 644 $(META) '$(D)$(LUA_LMOD)'/moongrid/
	install -d '$(D)$(BASHDIR)' '$(D)$(ZSHDIR)' '$(D)$(FISHDIR)' '$(D)$(MODULES)'
	install -m 644 scripts/complete/moongrid.bash '$(D)$(BASHDIR)'/moongrid
	install -m 644 scripts/complete/_moongrid '$(D)$(ZSHDIR)'/
	install -m 644 scripts/complete/moongrid.fish '$(D)$(FISHDIR)'/
	scripts/modulefile $(VERSION) '$(PREFIX)' '$(LIBDIR)' '$(LUA_CMOD)' '$(LUA_LMOD)' '$(MANDIR)' > '$(D)$(MODULES)'/$(VERSION).lua
	chmod 644 '$(D)$(MODULES)'/$(VERSION).lua
# update the loader's list of libraries, if it searches LIBDIR and this does not stage a package
ifeq ($(DESTDIR),)
	if scripts/searched '$(LIBDIR)' && [ "$$(id -u)" = 0 ]; then PATH=$$PATH:/usr/sbin:/sbin ldconfig; fi
	LUA=$(LUA) scripts/installed $(VERSION) '$(PREFIX)' '$(LIBDIR)' '$(LUA_CMOD)' '$(LUA_LMOD)'
endif

# For LuaRocks: the Lua module alone, with the libraries in its folder, where it finds them.
lua: $(B)/moongrid.so $(LIB) $(LIBS_OF_BACKENDS)

install-lua: lua
	install -d '$(D)$(LUA_CMOD)' '$(D)$(LUA_LMOD)'/moongrid
	install -m 755 $(B)/moongrid.so $(LIB) $(LIBS_OF_BACKENDS) '$(D)$(LUA_CMOD)'/
	install -m 644 $(META) '$(D)$(LUA_LMOD)'/moongrid/
	install -d '$(D)$(LUA_LMOD)'/moongrid/addons/moongrid/library
	install -m 644 lua/addon/config.json '$(D)$(LUA_LMOD)'/moongrid/addons/moongrid/
	install -m 644 $(META) '$(D)$(LUA_LMOD)'/moongrid/addons/moongrid/library/

uninstall:
	rm -f '$(D)$(MANDIR)'/man1/moongrid.1 '$(D)$(MANDIR)'/man3/moongrid.3
	rm -f '$(D)$(PREFIX)'/bin/moongrid $(addprefix '$(D)$(PREFIX)'/include/,moongrid.f90 $(notdir $(CORE_HEADERS)) $(patsubst %,moongrid_%.h,lua cpp $(ALL_BACKENDS)))
	rm -f $(addprefix '$(D)$(LIBDIR)'/lib,$(foreach l,moongrid $(patsubst %,moongrid_%,lua $(ALL_BACKENDS)),$(l).so $(l).so.$(SOVER) $(l).a))
	rm -f $(addprefix '$(PC)'/,moongrid.pc moongrid_static.pc $(patsubst %,moongrid_%.pc,lua $(ALL_BACKENDS)))
	rm -rf '$(CMAKE)'
	rm -f '$(D)$(LUA_CMOD)'/moongrid.so $(addprefix '$(D)$(LUA_LMOD)'/moongrid/,$(notdir $(META)))
	rm -f '$(D)$(BASHDIR)'/moongrid '$(D)$(ZSHDIR)'/_moongrid '$(D)$(FISHDIR)'/moongrid.fish '$(D)$(MODULES)'/$(VERSION).lua
	-rmdir '$(D)$(LUA_LMOD)'/moongrid '$(D)$(MODULES)' 2>/dev/null

# --------------------------------------------------------------------- release
# What is linked, with versions and licences, as SPDX.
$(B)/moongrid.spdx: scripts/licences $(OUT)
	PKG_CONFIG='$(PKG_CONFIG)' scripts/licences $(VERSION) $(filter-out %.a $(PYTHON_FILES),$(OUT)) > $@

# The same for LuaRocks: the tarball, and how to build it.
rock: dist
	scripts/rock $(VERSION)

# For pip: the Python package with all that it needs.
wheel:
	scripts/wheel $(VERSION)

list-headers:
	@printf '%s\n' $(HEADERS)

# The packages of this version, from its tarball.
deb:
	scripts/deb --tools
	$(MAKE) dist
	scripts/deb $(VERSION) $(BACKENDS)

dist: $(B)/moongrid.spdx
	scripts/dist $(VERSION)
	install -m 644 $< build/dist/moongrid-$(VERSION).spdx

clean:
	rm -rf build

include tests/tests.mk

-include $(OBJ:.o=.d) $(LUA_OBJ:.o=.d) $(COMMAND:.o=.d) $(foreach b,$(BACKENDS),$(OBJ_$(b):.o=.d)) $(B)/recipe/luaopen.d
.PHONY: all man fortran check lint docs site format install lua install-lua uninstall dist rock wheel list-headers deb clean
.DELETE_ON_ERROR:
