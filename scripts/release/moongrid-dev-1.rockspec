-- SPDX-License-Identifier: MIT
--
-- In the clone: luarocks --lua-version=5.4 make scripts/release/moongrid-dev-1.rockspec. scripts/release/rock makes the one of a release.
-- Debian's packages come first: scripts/setup (a C compiler, jansson, xxhash, libyaml, expat; an MPI for mg.mpi()).
rockspec_format = "3.0"
package = "moongrid"
version = "dev-1"
source = { url = "git+file://." }
description = {
  summary = "Process groups of parallel training, from a recipe to communicators",
  detailed = [[
    A recipe, a short text in Lua, describes the groups of ranks that a parallel training uses. moongrid plans them at any
    world size, and creates their communicators of MPI and NCCL. The rock has the module, its C library and the backends
    that can be built where it is installed.]],
  license = "MIT",
}
supported_platforms = { "linux" }
dependencies = { "lua >= 5.4, < 5.6" }
external_dependencies = {
  JANSSON = { header = "jansson.h" },
  XXHASH = { header = "xxhash.h" },
  YAML = { header = "yaml.h" },
  EXPAT = { header = "expat.h" },
}
build = {
  type = "make",
  build_target = "lua",
  build_variables = { LUA = "$(LUA)", LUA_CFLAGS = "-I$(LUA_INCDIR)" },
  install_target = "install-lua",
  install_variables = { LUA = "$(LUA)", LUA_CFLAGS = "-I$(LUA_INCDIR)", LUA_CMOD = "$(LIBDIR)", LUA_LMOD = "$(LUADIR)" },
}
