-- luacheck . : everything that is Lua here
std = "lua54"
max_line_length = 120
cache = false
exclude_files = { "build/**", "lua/moongrid/meta*.lua" } -- the annotations define what never runs

local vocabulary = {
  read_globals = {
    "recipe", "param", "policies", "steps", "grid", "topology", "concurrent", "same", "within", "disjoint", "covers", "tensor",
    "union", "zip", "closure", "fill", "flat", "relabel", "log",
    "machine", "aligned", "spread",
    string = { fields = { "split" } },
  },
}
files["examples/*.lua"] = vocabulary
files["examples/cookbook/*.lua"] = vocabulary
files["examples/trainer/*.lua"] = vocabulary
files["examples/steps/*.lua"] = vocabulary
files["examples/published/*.lua"] = vocabulary
files["scripts/lab/gpu/*.lua"] = vocabulary
files["examples/ports/*.lua"] = vocabulary
files["examples/ports/*/*.lua"] = vocabulary
files["lua/moongrid/recipes/**/*.lua"] = vocabulary
files["tests/**/recipes/*.lua"] = vocabulary
files["tests/lua/worst.lua"] = vocabulary
-- messages are compared whole, and some are long
files["tests/lua/*_spec.lua"] = { std = "lua54+busted", max_line_length = 200 }
files["examples/init/*_spec.lua"] = { std = "lua54+busted" }
files["tests/lua/layers.lua"] = { std = "lua54+busted" }
files["tests/lua/hostile.lua"] = { std = "lua54+busted" }
files["tests/lua/cases.lua"] = { std = "lua54+busted" }
files["tests/lua/readers.lua"] = { max_line_length = 200 }
files["tests/lua/recipes.lua"] = { std = "lua54+busted", max_line_length = 200 }
files["tests/lua/systems/*.lua"] = { max_line_length = 200 }
