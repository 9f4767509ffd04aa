# SPDX-License-Identifier: MIT
#
# What is installed, and packed for a release. The Makefile includes this.
#
# make install      PREFIX=/usr/local DESTDIR= (make uninstall: likewise); with the playground, if make wasm has made it
# make install-lua  the Lua module alone, for LuaRocks (scripts/release/*.rockspec)
# make rock         build/dist/moongrid-VERSION-1.src.rock, for luarocks install
# make wheel        build/wheel/*.whl, for pip (scripts/release/wheel)
# make deb          build/deb/*.deb, packages for Debian (scripts/release/debian/)
# make dist         build/dist/moongrid-VERSION.tar.gz, which builds without git, and a list of licences of linked libraries

PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
LUA_CMOD ?= $(LIBDIR)/lua/$(LUAV)
LUA_LMOD ?= $(PREFIX)/share/lua/$(LUAV)
MANDIR   ?= $(PREFIX)/share/man
BASHDIR  ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR   ?= $(PREFIX)/share/zsh/site-functions
FISHDIR  ?= $(PREFIX)/share/fish/vendor_completions.d
PC        = $(D)$(LIBDIR)/pkgconfig
CMAKE     = $(D)$(LIBDIR)/cmake/moongrid
SHARE     = $(PREFIX)/share/moongrid
MODULEFILES = $(PREFIX)/share/modulefiles/moongrid
# folders stand in quotes: their names may have blanks
D         = $(DESTDIR)

# The module of Fortran, which programs compile with their own compiler.
fortran: $(B)/fortran/moongrid.f90
$(B)/fortran/moongrid.f90: scripts/make/fortran.lua scripts/make/headers.lua src/fortran/moongrid.inc $(CORE_HEADERS) src/moongrid_mpi.h
	@mkdir -p $(@D)
	$(LUA) scripts/make/fortran.lua src/fortran/moongrid.inc $(VERSION) $(CORE_HEADERS) src/moongrid_mpi.h > $@

# The manual.
MAN := $(B)/man/moongrid.1 $(B)/man/moongrid.3
man: $(MAN)
$(MAN): $(B)/man/moongrid.%: scripts/make/man.lua scripts/make/man3.lua scripts/make/headers.lua scripts/make/annotations.lua src/embedding.md src/CHANGES.md \
  $(B)/moongrid $(wildcard src/*.h lua/moongrid/meta*.lua)
	@mkdir -p $(@D)
	$(LUA) scripts/make/man.lua $* $@ $(B)/moongrid

# A backend's header has the name of the folder of its files, so rccl uses moongrid_nccl.h.
HEADERS := $(CORE_HEADERS) src/moongrid_lua.h src/moongrid_cpp.h $(sort $(wildcard $(foreach b,$(BACKENDS),$(patsubst src/comm/%/,src/moongrid_%.h,$(dir $(firstword $(SRC_$(b))))))))

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
	install -m 644 $(B)/man/moongrid.1 '$(D)$(MANDIR)'/man1/
	install -m 644 $(B)/man/moongrid.3 '$(D)$(MANDIR)'/man3/
	for name in moongrid moongrid_lua $(if $(LUA_ARCHIVE),moongrid_static); do scripts/make/pkgconfig $$name $(VERSION) '$(PREFIX)' '$(LIBDIR)' > '$(PC)'/$$name.pc || exit 1; done
	$(foreach b,$(BACKENDS),scripts/make/pkgconfig moongrid_$(b) $(VERSION) '$(PREFIX)' '$(LIBDIR)' $(PC_$(b)) > '$(PC)'/moongrid_$(b).pc &&) true
	install -d '$(CMAKE)'
	for file in moongrid-config.cmake moongrid-config-version.cmake; do \
	  scripts/make/cmake-package $$file $(VERSION) '$(PREFIX)' '$(LIBDIR)' $(B)/libmoongrid_mpi.so '$(PC_mpi)' > '$(CMAKE)'/$$file || exit 1; \
	done
	chmod 644 '$(PC)'/moongrid*.pc '$(CMAKE)'/*
	install -m 755 $(B)/moongrid.so '$(D)$(LUA_CMOD)'/
	install -m 644 $(META) '$(D)$(LUA_LMOD)'/moongrid/
	install -d '$(D)$(BASHDIR)' '$(D)$(ZSHDIR)' '$(D)$(FISHDIR)' '$(D)$(MODULEFILES)'
	install -m 644 scripts/make/complete/moongrid.bash '$(D)$(BASHDIR)'/moongrid
	install -m 644 scripts/make/complete/_moongrid '$(D)$(ZSHDIR)'/
	install -m 644 scripts/make/complete/moongrid.fish '$(D)$(FISHDIR)'/
	scripts/make/modulefile $(VERSION) '$(PREFIX)' '$(LIBDIR)' '$(LUA_CMOD)' '$(LUA_LMOD)' '$(MANDIR)' > '$(D)$(MODULEFILES)'/$(VERSION).lua
	chmod 644 '$(D)$(MODULEFILES)'/$(VERSION).lua
	if [ -e $(W)/playground.html ]; then install -d '$(D)$(SHARE)' && install -m 644 $(W)/playground.html '$(D)$(SHARE)'/; fi
# update the loader's list of libraries, if it searches LIBDIR and this does not stage a package
ifeq ($(DESTDIR),)
	if scripts/make/searched '$(LIBDIR)' && [ "$$(id -u)" = 0 ]; then PATH=$$PATH:/usr/sbin:/sbin ldconfig; fi
	LUA=$(LUA) scripts/make/installed $(VERSION) '$(PREFIX)' '$(LIBDIR)' '$(LUA_CMOD)' '$(LUA_LMOD)'
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
	rm -f '$(D)$(BASHDIR)'/moongrid '$(D)$(ZSHDIR)'/_moongrid '$(D)$(FISHDIR)'/moongrid.fish '$(D)$(MODULEFILES)'/$(VERSION).lua
	rm -f '$(D)$(SHARE)'/playground.html
	-rmdir '$(D)$(LUA_LMOD)'/moongrid '$(D)$(MODULEFILES)' '$(D)$(SHARE)' 2>/dev/null

# ---------------------------------------------------------------- release
# What is linked, with versions and licences, as SPDX.
SPDX = PKG_CONFIG='$(PKG_CONFIG)' scripts/release/licences $(VERSION) $(filter-out %.a $(PYTHON_FILES),$(OUT))
$(B)/moongrid.spdx: scripts/release/licences $(OUT)
	$(SPDX) > $@

# For LuaRocks: the tarball and its rockspec.
rock:
	scripts/release/rock $(VERSION)

# For pip: the Python package with the libraries.
wheel:
	scripts/release/wheel $(VERSION)

list-headers:
	@printf '%s\n' $(HEADERS)

# The packages of this version, from its tarball.
deb:
	scripts/release/deb $(VERSION) $(BACKENDS)

# SHA256SUMS also lists the files of make deb, wheel and rock. KEY=NAME signs it with this key of gpg.
dist: $(OUT)
	scripts/release/dist $(VERSION)
	$(SPDX) > build/dist/moongrid-$(VERSION).spdx
	scripts/release/sums $(VERSION) $(KEY)

.PHONY: man fortran install lua install-lua uninstall dist rock wheel list-headers deb
