-- SPDX-License-Identifier: MIT
--
-- drawing: a plan and the options of its picture. A drawing has
--   plan, world, rank?  `rank`: the rank whose groups are highlighted
--   entries   the families: { name, family, same, shares }; same: the first family with the same groups
--   chosen    the entries to draw
--   machine   where ranks run, or nil
--   columns, unicode, color   for text: its width, and whether to use box characters and colours

local machines = require "pictures.machine"

-- Make a drawing. options: { families = {name}, all = true, machine = Machine, rank, columns, unicode, color, most };
-- all: if `families` names none, draw every family except those with the same groups as another one.
return function(plan, options)
  local d = { plan = plan, world = plan.world, entries = {}, chosen = {}, rank = options.rank,
              columns = options.columns or 80, unicode = options.unicode, color = options.color }
  local named = {}
  for _, name in ipairs(plan.families) do
    local family = plan:family(name)
    local entry = { name = name, family = family, shares = plan:shares(name) }
    for _, other in ipairs(d.entries) do
      if not other.same and other.family == family then
        entry.same = other.name
        break
      end
    end
    named[name], d.entries[#d.entries + 1] = entry, entry
    if options.all and not options.families and not entry.same then d.chosen[#d.chosen + 1] = entry end
  end
  for i, name in ipairs(options.families or {}) do
    plan:family(name) -- raises with the nearest name
    d.chosen[i] = named[name]
  end
  d.machine = options.machine and machines(options.machine, plan.world)
  return d
end
