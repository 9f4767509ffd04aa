-- SPDX-License-Identifier: MIT
local own = { world_pg = "world_pg", local_pg = "local_pg" }

local function family(kind) return own[kind] or kind:match("^(.*)_pg$") end

return {
  recipe = "nanotron",
  backend = function(_, kind, backend) return kind == "world_pg" and "nccl" or backend end,
  kinds = family,
  query = function(column)
    local kind = column:match("^rank in (.*)$")
    if kind then return "get_rank", { group = family(kind) } end
    if column == "global_rank(back)" then return "get_global_rank", {} end -- of one's own coordinates
    return column, {}
  end,
}
