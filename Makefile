# SPDX-License-Identifier: MIT
#
# make            build/: the command, the libraries, the Lua module
# make check      every test (scripts/test installs what is missing first)
# make lint       the rule of dependencies, luacheck, shellcheck
# make docs       the tables of options in lua/, after a change of options
# make install    PREFIX=/usr/local DESTDIR=; make uninstall takes the same
# make install-lua  the Lua module alone, for LuaRocks (scripts/*.rockspec)
# SAN=1           build into build/san with AddressSanitizer and UBSan

VERSION := $(shell sed -n 's/^\#define MGRID_VERSION  *"\(.*\)"/\1/p' src/moongrid.h)
SOVER   := $(basename $(VERSION))
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
LUA_CMOD ?= $(LIBDIR)/lua/5.4
LUA_LMOD ?= $(PREFIX)/share/lua/5.4
MANDIR  ?= $(PREFIX)/share/man

CC         ?= cc
AR         ?= ar
LUA        ?= lua5.4
PKG_CONFIG ?= pkg-config
OPT        ?= -O2 -g
B          := build

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla -Wwrite-strings -Werror
ifdef SAN
B   := build/san
OPT := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
endif

DEPS := lua5.4 jansson libxxhash yaml-0.1

BASE_FLAGS := -std=c11 -D_GNU_SOURCE -DMGRID_SOVER='"$(SOVER)"' -Isrc $(WARN) -fPIC -fvisibility=hidden -MMD -MP
ALL_CFLAGS  = $(BASE_FLAGS) $(OPT) $(shell $(PKG_CONFIG) --cflags $(DEPS)) $(CFLAGS)
ALL_LDFLAGS = $(OPT) $(LDFLAGS)
LIBS       := $(shell $(PKG_CONFIG) --libs $(DEPS)) -ldl -lm

# The backends, each a library of its own of src/comm/NAME.c, NAME_*.c and NAME/*.c. HAVE_NAME: can it be
# built here? FLAGS_ and LIBS_: to compile and to link it. PC_: the last argument of scripts/pkgconfig.
ALL_BACKENDS := mpi nccl

MPI       := $(shell $(PKG_CONFIG) --exists ompi-c && echo ompi-c || echo mpich)
HAVE_mpi  := $(shell $(PKG_CONFIG) --exists $(MPI) && echo yes)
FLAGS_mpi := $(patsubst -I%,-isystem %,$(shell $(PKG_CONFIG) --cflags $(MPI) 2>/dev/null))
LIBS_mpi  := $(shell $(PKG_CONFIG) --libs $(MPI) 2>/dev/null)
PC_mpi    := $(MPI)

# NCCL is opened at run time: its backend needs only the headers (of 2.28.7 or later; the library that runs
# may be older), and does not link with NCCL.
CUDA_HOME  ?= $(firstword $(wildcard /usr/local/cuda /usr/local/cuda-*[0-9]) /usr)
NCCL_DIR   := $(firstword $(dir $(wildcard $(CUDA_HOME)/include/nccl.h /usr/include/nccl.h /usr/local/include/nccl.h)))
HAVE_nccl  := $(shell grep -qs ncclCommRevoke $(NCCL_DIR)nccl.h && test -e $(NCCL_DIR)cuda_runtime_api.h && echo yes)
FLAGS_nccl := $(if $(HAVE_nccl),-isystem $(NCCL_DIR))
LIBS_nccl  := $(shell $(PKG_CONFIG) --libs libxxhash) -ldl -lm -pthread
PC_nccl    := $(NCCL_DIR:/=)

BACKENDS := $(foreach b,$(ALL_BACKENDS),$(if $(HAVE_$(b)),$(b)))

# The library's stages, in the order of dependencies.
STAGES := base algebra plan comm types script
SRC    := $(filter-out $(ALL_BACKENDS:%=src/comm/%.c) $(ALL_BACKENDS:%=src/comm/%_%.c) src/script/luaopen.c,$(foreach s,$(STAGES),$(sort $(wildcard src/$(s)/*.c))))
OBJ    := $(SRC:src/%.c=$(B)/%.o) $(B)/gen/bundle.o
COMMAND := $(patsubst src/%.c,$(B)/%.o,$(sort $(wildcard src/command/*.c)))
# The Lua inside the library: scripts/embed.lua takes every file of these folders.
LUAFOLDERS := $(patsubst %/,%,lua/prelude/ lua/moongrid/recipes/ $(wildcard lua/moongrid/recipes/*/))
LUATEXT    := $(LUAFOLDERS) $(wildcard $(LUAFOLDERS:%=%/*.lua))

LIB     := $(B)/libmoongrid.so.$(SOVER)
LIBS_OF_BACKENDS := $(BACKENDS:%=$(B)/libmoongrid_%.so.$(SOVER))
OUT     := $(LIB) $(B)/libmoongrid.a $(LIBS_OF_BACKENDS) $(BACKENDS:%=$(B)/libmoongrid_%.a) $(B)/moongrid.so $(B)/moongrid

all: $(OUT)

# Writing out members is bound by memory if its loops are vectorized, which -O2 does not do. Code that waits
# for Lua, other ranks or a reader is as fast when built for size, and a sixth smaller.
ifndef SAN
COLD := $(B)/comm/% $(B)/types/% $(B)/script/% $(patsubst %,$(B)/plan/%.o,cost diff json nccl print rehearse verify) $(patsubst %,$(B)/algebra/%.o,dims join layout order pairs pick renumber reshape split)
$(B)/algebra/listing.o: OPT += -O3
$(filter $(COLD),$(OBJ)): OPT += -Os
endif

# One line per step; V=1 shows the commands.
ifndef V
.SILENT:
SAY = @echo "  $(1)  $(2)"
endif

$(B)/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	$(call SAY,CC,$<)
	$(CC) $(ALL_CFLAGS) $(BACKEND_FLAGS) -c $< -o $@

$(B)/gen/bundle.c: scripts/embed.lua $(LUATEXT)
	@mkdir -p $(@D)
	$(LUA) scripts/embed.lua $@

$(B)/gen/bundle.o: $(B)/gen/bundle.c
	$(CC) $(filter-out -Wpedantic,$(ALL_CFLAGS)) -c $< -o $@

# The symbols that the libraries export, with the version of the interface.
MAP := $(B)/gen/exports.map
$(MAP): Makefile
	@mkdir -p $(@D)
	echo 'mgrid_$(SOVER) { global: mgrid_*; luaopen_moongrid; local: *; };' > $@

# Tables of names need a relocation per name; packing them saves 12 KiB of the library.
$(LIB): $(OBJ) $(MAP)
	$(call SAY,LD,$@)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,--version-script=$(MAP) -Wl,-z,pack-relative-relocs -Wl,-Bsymbolic-functions -Wl,-soname,libmoongrid.so.$(SOVER) $(if $(SAN),,-Wl,-z,defs) -o $@ $(OBJ) $(LIBS)
	ln -sf $(@F) $(B)/libmoongrid.so

$(B)/libmoongrid.a: $(OBJ)
	rm -f $@
	$(AR) rcs $@ $^

# A library for each backend. It links its own hidden copy of what it needs from the archive, and no symbol
# may be missing (-z defs), so it works in any process.
define backend
OBJ_$(1) := $$(patsubst src/%.c,$$(B)/%.o,$$(wildcard src/comm/$(1).c src/comm/$(1)_*.c src/comm/$(1)/*.c))
$$(OBJ_$(1)): BACKEND_FLAGS := $$(FLAGS_$(1))

$$(B)/libmoongrid_$(1).so.$$(SOVER): $$(OBJ_$(1)) $$(B)/libmoongrid.a $$(MAP)
	$$(call SAY,LD,$$@)
	$$(CC) -shared $$(ALL_LDFLAGS) -Wl,--exclude-libs,ALL -Wl,--version-script=$$(MAP) $$(if $$(SAN),,-Wl,-z,defs) -Wl,-soname,$$(@F) -o $$@ $$(OBJ_$(1)) $$(B)/libmoongrid.a $$(LIBS_$(1))
	ln -sf $$(@F) $$(B)/libmoongrid_$(1).so

$$(B)/libmoongrid_$(1).a: $$(OBJ_$(1))
	rm -f $$@
	$$(AR) rcs $$@ $$^
endef
$(foreach b,$(BACKENDS),$(eval $(call backend,$(b))))

# `require "moongrid"`: Lua's own symbols come from the interpreter that loads it.
$(B)/moongrid.so: $(B)/script/luaopen.o $(LIB)
	$(call SAY,LD,$@)
	$(CC) -shared $(ALL_LDFLAGS) -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../..' -o $@ $< -L$(B) -lmoongrid

# The command links the archive: it is one file to copy, and can use symbols that are not exported.
$(B)/moongrid: $(COMMAND) $(B)/libmoongrid.a
	$(call SAY,LD,$@)
	$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# ------------------------------------------------------------------------- manual
MAN := build/man/moongrid.1 build/man/moongrid.3
man: $(MAN)

$(MAN): build/man/moongrid.%: scripts/man.lua $(B)/moongrid $(wildcard src/*.h)
	@mkdir -p $(@D)
	$(LUA) scripts/man.lua $* $@

# ------------------------------------------------------------------- tests, lint
check: all
	scripts/test --no-setup

lint:
	scripts/lint

# The tables of options in the annotations and in lua/README.md, from the library's own tables.
docs: $(B)/moongrid.so
	LUA_CPATH='$(B)/?.so' $(LUA) scripts/docs.lua

# The C style, by .clang-format.
format:
	git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format -i

# --------------------------------------------------------------------- install
HEADERS := $(patsubst %,src/%.h,moongrid moongrid_recipe moongrid_lua) $(wildcard $(BACKENDS:%=src/moongrid_%.h))
PC      = $(D)$(LIBDIR)/pkgconfig
CMAKE   = $(D)$(LIBDIR)/cmake/moongrid
D = $(DESTDIR)
# the annotations, and the layers for stock Lua
LUA_FILES := $(wildcard lua/moongrid/*.lua)

install: all man
	case '$(PREFIX)' in /*) ;; *) echo "PREFIX is a path from the root, not '$(PREFIX)'" >&2; exit 1;; esac
	install -d $(D)$(PREFIX)/bin $(D)$(PREFIX)/include $(D)$(LIBDIR)/pkgconfig $(D)$(LUA_CMOD) $(D)$(LUA_LMOD)/moongrid
	install -m 755 $(B)/moongrid $(D)$(PREFIX)/bin/
	install -m 644 $(HEADERS) $(D)$(PREFIX)/include/
	for name in moongrid $(BACKENDS:%=moongrid_%); do \
	  install -m 755 $(B)/lib$$name.so.$(SOVER) $(D)$(LIBDIR)/ && \
	  ln -sf lib$$name.so.$(SOVER) $(D)$(LIBDIR)/lib$$name.so && \
	  install -m 644 $(B)/lib$$name.a $(D)$(LIBDIR)/ || exit 1; \
	done
	install -d $(D)$(MANDIR)/man1 $(D)$(MANDIR)/man3
	install -m 644 build/man/moongrid.1 $(D)$(MANDIR)/man1/
	install -m 644 build/man/moongrid.3 $(D)$(MANDIR)/man3/
	scripts/pkgconfig moongrid $(VERSION) $(PREFIX) $(LIBDIR) > $(PC)/moongrid.pc
	$(foreach b,$(BACKENDS),scripts/pkgconfig moongrid_$(b) $(VERSION) $(PREFIX) $(LIBDIR) $(PC_$(b)) > $(PC)/moongrid_$(b).pc &&) true
	install -d $(CMAKE)
	for file in moongrid-config.cmake moongrid-config-version.cmake; do \
	  scripts/cmake-package $$file $(VERSION) $(PREFIX) $(LIBDIR) > $(CMAKE)/$$file || exit 1; \
	done
	chmod 644 $(PC)/moongrid*.pc $(CMAKE)/*
	install -m 755 $(B)/moongrid.so $(D)$(LUA_CMOD)/
	install -m 644 $(LUA_FILES) $(D)$(LUA_LMOD)/moongrid/

# For LuaRocks: the Lua module alone, with the libraries in its folder, where it finds them.
install-lua: all
	install -d $(D)$(LUA_CMOD) $(D)$(LUA_LMOD)/moongrid
	install -m 755 $(B)/moongrid.so $(LIB) $(LIBS_OF_BACKENDS) $(D)$(LUA_CMOD)/
	install -m 644 $(LUA_FILES) $(D)$(LUA_LMOD)/moongrid/

uninstall:
	rm -f $(D)$(MANDIR)/man1/moongrid.1 $(D)$(MANDIR)/man3/moongrid.3
	rm -f $(D)$(PREFIX)/bin/moongrid $(addprefix $(D)$(PREFIX)/include/,moongrid.h $(patsubst %,moongrid_%.h,recipe lua $(ALL_BACKENDS)))
	rm -f $(addprefix $(D)$(LIBDIR)/lib,$(foreach l,moongrid $(ALL_BACKENDS:%=moongrid_%),$(l).so $(l).so.$(SOVER) $(l).a))
	rm -f $(addprefix $(PC)/,moongrid.pc $(ALL_BACKENDS:%=moongrid_%.pc))
	rm -rf $(CMAKE)
	rm -f $(D)$(LUA_CMOD)/moongrid.so $(addprefix $(D)$(LUA_LMOD)/moongrid/,$(notdir $(LUA_FILES)))
	-rmdir $(D)$(LUA_LMOD)/moongrid 2>/dev/null

clean:
	rm -rf build

include tests/tests.mk

-include $(OBJ:.o=.d) $(COMMAND:.o=.d) $(foreach b,$(BACKENDS),$(OBJ_$(b):.o=.d)) $(B)/script/luaopen.d
.PHONY: all man check lint docs format install install-lua uninstall clean
.DELETE_ON_ERROR:
