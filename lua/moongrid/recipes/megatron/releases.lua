-- The versions of Megatron-core that have a parameter. A parameter of an open pull request is accepted with every
-- version.

local versions = { "0.16", "0.17", "0.19", "dev" }
local only = { -- parameter, its neutral value, the versions that have it
  { "local_world_size", false, "0.17", "0.19", "dev" },
  { "rank_offset", 0, "0.17", "0.19", "dev" },
  { "create_all_gather_group", false, "0.16", "0.17" },
  { "create_all_gather_groups", false, "0.19", "dev" },
  { "hybrid_context_parallel", false, "0.16", "0.17", "0.19" },
  { "dynamic_context_parallel", false, "dev" },
  { "gtp_remat_size", 1, "0.19" },
  { "expert_gtp_remat_size", 1, "0.19" },
}

local function among(version, list, first)
  for i = first, #list do
    if list[i] == version then return true end
  end
end

-- Refuse an unknown version, and parameters that the version does not have.
local function check(p)
  local version = p.version
  if not among(version, versions, 1) then
    error("version '" .. version .. "' is unknown; '0.16', '0.17', '0.19' or 'dev' would do")
  end
  for _, rule in ipairs(only) do
    local name = rule[1]
    if not among(version, rule, 3) and (p[name] or false) ~= rule[2] then
      error(string.format("%s is not in version %s; version %s would do, or leave it out", name, version,
        table.concat(rule, " or ", 3)))
    end
  end
end

-- Return whether the version has weight rematerialization, the families named ..._gtp_remat.
local function has_remat(p) return p.version == "0.19" end

return { check = check, has_remat = has_remat }
