# SPDX-License-Identifier: MIT
#
# moongrid in a browser. The Makefile includes this.
#
# make wasm         build/wasm/: moongrid.js and moongrid.wasm, from src/page/page.c, by emscripten (scripts/setup --site),
#                   with libraries from Debian's sources; playground.html, a page with both in it

W := build/wasm
AS_WASM := CC=emcc OPT=-Os CFLAGS='-include page/missing.h' OF_PAGE=--page $(ALL_BACKENDS:%=HAVE_%=) \
           WARN='-Wall -Wextra -Werror -Wno-unused-command-line-argument -Wno-tautological-constant-out-of-range-compare'
# emscripten starts acorn, which Debian has in a folder of its own
wasm:
	command -v emcc > /dev/null || { echo 'make wasm: no emcc; scripts/setup --site installs emscripten' >&2; exit 1; }
	test -e $(W)/lib/licences || NODE_PATH=/usr/share/nodejs scripts/make/wasm $(W)/lib
	+NODE_PATH=/usr/share/nodejs PKG_CONFIG_LIBDIR=$(W)/lib $(MAKE) B=$(W) $(AS_WASM) $(W)/playground.html

EXPORTS := -sMODULARIZE=1 -sEXPORT_NAME=moongrid -sENVIRONMENT=web,worker,node -sEXPORTED_FUNCTIONS=_mgrid_page_answer,_malloc,_free \
           -sEXPORTED_RUNTIME_METHODS=ccall,UTF8ToString,stringToNewUTF8 '-sDEFAULT_LIBRARY_FUNCS_TO_INCLUDE=$$stringToNewUTF8'
BOUNDS  := -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=512MB -sTOTAL_STACK=2MB -sDYNAMIC_EXECUTION=0
PAGE    := $(call objects,page)
$(W)/moongrid.js: $(PAGE) $(OBJ) $(LUA_OBJ) scripts/make/wasm.mk
	$(call SAY,LD,$@)
	emcc $(OPT) $(EXPORTS) $(BOUNDS) --no-entry -o $@ $(PAGE) $(OBJ) $(LUA_OBJ) $(LUA_LIBS)

# The page has the licences of the libraries that it links, as these licences require.
$(W)/playground.html: $(W)/moongrid.js scripts/make/playground.lua scripts/make/pages.lua README.md \
                      $(wildcard lua/pictures/*.html lua/pictures/*.js lua/pictures/*.css examples/*.lua examples/cookbook/* examples/published/*)
	gzip -9cn $(<:.js=.wasm) > $(<:.js=.wasm.gz)
	{ $(LUA) scripts/make/playground.lua $< $(<:.js=.wasm.gz) && echo '<!--' && cat LICENSE $(W)/lib/licences && echo '-->'; } > $@

-include $(PAGE:.o=.d)
.PHONY: wasm
