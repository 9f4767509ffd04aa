-- SPDX-License-Identifier: MIT
--
-- The part `libraries` of scripts/lab/bench: creation on every installed MPI library, each measured by a separate run
-- of the part `create`, built with that library. Ratios are within one run; times of two libraries are from two runs.

local json = require "dkjson"

local WAYS = "ours best split"

-- Return the results of a run, points[LAYOUT .. " " .. RANKS][WAY], and the commit.
local function points(path)
  local file = io.open(path)
  local all = file and json.decode(file:read "a") or {}
  if file then file:close() end
  local by = {}
  for _, p in ipairs(all.parts and all.parts.create.values.points or {}) do
    local key = p.layout .. " " .. p.ranks
    by[key] = by[key] or {}
    by[key][p.way] = p
  end
  return by, all.versions and all.versions.commit
end

return function(B)
  local measured = {}
  for line in B.run("scripts/mpi --list"):gmatch "[^\n]+" do
    local name, where, lacks = line:match "^(%S+) (%S+) ?(.*)"
    if where == "-" then
      print(("%s: skipped: %s"):format(name, lacks))
    else
      local into = ("build/mpi/%s/tree/build/create.json"):format(name)
      os.remove(into)
      print(("%s: %s"):format(name, where))
      B.run(("BENCH_WAYS='%s' scripts/mpi %s scripts/lab/bench create %s -o build/create.json"):format(WAYS, name,
        B.quick and "--quick" or ""))
      table.insert(measured, { name = name, points = points(into) })
    end
  end
  for _, layout in ipairs { "facts", "megatron" } do
    local t = B.table(("creating the communicators of %s on each MPI library, cold"):format(
      layout == "facts" and "17 families" or layout), "ms")
    for _, ranks in ipairs { 8, 16, 32, 64 } do
      for _, library in ipairs(measured) do
        local p = library.points[layout .. " " .. ranks]
        if p and p.ours and p.best then
          t:row(("%d ranks, %s: moongrid"):format(ranks, library.name), { p.ours.median }, {
            library = library.name, layout = layout, ranks = ranks, plain = p.best.median,
            split = p.split and p.split.median,
            remark = ("plain C %.3g, a split per family %s: %.2f of plain C"):format(p.best.median,
              p.split and ("%.3g"):format(p.split.median) or "-", p.ours.median / p.best.median) })
        elseif p then
          t:note("%d ranks, %s: not measured", ranks, library.name)
        end
      end
    end
  end
  return { libraries = measured }
end
