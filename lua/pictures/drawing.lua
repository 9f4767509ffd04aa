-- SPDX-License-Identifier: MIT
--
-- drawing: a plan and the options of its picture. A drawing has
--   plan, world   world: the number of ranks
--   rank      the rank whose groups are highlighted, or nil
--   entries   the families: { name, family, same, shares }; same: the first family with the same groups, or nil;
--             shares: the family whose communicators this family uses, or nil
--   chosen    the entries to draw
--   machine   where ranks run (machine.lua), or nil
--   columns, unicode, color   of text: its width, whether it has box characters, whether it has colours

local machines = require "pictures.machine"

-- Make a drawing by options, moongrid.PictureOptions of meta_pictures.lua. With `all` and without `families`, draw
-- every family except those with the same groups as an earlier one.
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
    plan:family(name) -- refuses an unknown name
    d.chosen[i] = named[name]
  end
  d.machine = options.machine and machines(options.machine, plan.world)
  return d
end
