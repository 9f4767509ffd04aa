-- luarocks --lua-version=5.4 make scripts/moongrid-dev-1.rockspec
-- Debian's packages come first: scripts/setup (a C compiler, Lua 5.4, jansson, xxhash, libyaml, an MPI).
rockspec_format = "3.0"
package = "moongrid"
version = "dev-1"
source = { url = "git+file:///./moongrid" }
description = {
  summary = "Process groups of parallel training, from a recipe to communicators",
  license = "MIT",
}
supported_platforms = { "linux" }
dependencies = { "lua ~> 5.4" }
external_dependencies = {
  JANSSON = { header = "jansson.h" },
  XXHASH = { header = "xxhash.h" },
  YAML = { header = "yaml.h" },
}
build = {
  type = "make",
  build_variables = { LUA = "$(LUA)" },
  install_target = "install-lua",
  install_variables = { LUA_CMOD = "$(LIBDIR)", LUA_LMOD = "$(LUADIR)" },
}
