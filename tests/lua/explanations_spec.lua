-- SPDX-License-Identifier: MIT
--
-- Explanations are true: random recipes are asked who shares a communicator and why not, for counterexamples to laws,
-- and for what a loss keeps. Each answer is compared with the lists of the groups.

local mg = require "moongrid"

local seed = tonumber(os.getenv "MOONGRID_SEED") or 20261129
local cases = tonumber(os.getenv "MOONGRID_CASES") or 600

local function any(list) return list[math.random(#list)] end

-- A list of random groups, as a text; perhaps with one of them twice.
local function table_of(world)
  local groups = {}
  for i = 1, math.random(2, 5) do
    local list, has = {}, {}
    for _ = 1, math.random(2, 4) do
      local rank = math.random(0, world - 1)
      if not has[rank] then list[#list + 1], has[rank] = rank, true end
    end
    groups[i] = "{" .. table.concat(list, ",") .. "}"
  end
  if math.random(2) == 1 then groups[#groups + 1] = groups[1] end
  return ("world:table({ %s }, 'cover')"):format(table.concat(groups, ", "))
end

local rules = { "g 'a'", "g 'b'", "g('a', 'b')", "g 'a':pairs()", "g 'b':pairs 'wrap'", "g 'a':groups { 0 }",
                "g 'b':lists()", "g 'a':twin()", "g('a', 'b'):without { 1, 2 }", "g 'b':pick(0, -1)" }
local options = { "unique = true", "lazy = true", "first = true", "single = true", "timeout = 60", "backend = 'none'",
                  "windows = { kv = 4096 }", "device = { lsa_barriers = 4 }" }

-- Return a random recipe. `plain`: without options. `rest` is put before `build`.
local function recipe_of(world, plain, rest)
  local lines, n = {}, math.random(2, 5)
  for i = 1, n do
    local family = math.random(3) == 1 and table_of(world) or any(rules)
    if i > 1 and math.random(3) == 1 then family = "t.f" .. math.random(i - 1) end
    if not plain and math.random(3) == 1 then family = ("(%s):with { %s }"):format(family, any(options)) end
    lines[i] = ("t.f%d = %s"):format(i, family)
  end
  if not plain and math.random(3) == 1 then
    lines[n + 1] = ("concurrent(t, { 'f1', 'f%d' })"):format(math.random(2, n))
  end
  return ([[return recipe { idle = "allow", %s build = function(world)
    local g, t = grid(world, "a-b", { a = %d, b = fill }), topology(world)
    %s
    return t
  end }]]):format(rest or "", math.random(1, 3), table.concat(lines, "\n    "))
end

-- Call check(plan, groups, what) for random recipes: `groups` has the lists of each family by number, as `at`, and the
-- number of the groups that have a rank, as `of`.
local function each_plan(plain, rest, check)
  math.randomseed(seed)
  local planned = 0
  for case = 1, cases do
    local world = math.random(6, 14)
    local text = recipe_of(world, plain, rest)
    local what = ("seed %d, case %d, %d ranks:\n%s\n"):format(seed, case, world, text)
    local done, plan = pcall(function() return mg.load("case", { text = text }):plan(world) end)
    if done then
      local groups = {}
      for name, family in pairs(plan) do
        groups[name] = { at = {}, of = {}, count = family.count }
        for rank = 0, world - 1 do groups[name].of[rank] = {} end
        for g, ranks in family:groups() do
          groups[name].at[g] = ranks
          for _, rank in ipairs(ranks) do groups[name].of[rank][g] = true end
        end
      end
      planned = planned + 1
      check(plan, groups, what)
    end
  end
  assert.is_true(planned > cases // 4, planned)
end

-- Return whether one group of a family has all these ranks.
local function has_all(family, ranks)
  for g in pairs(family.of[ranks[1]]) do
    local all = true
    for _, rank in ipairs(ranks) do all = all and family.of[rank][g] or false end
    if all then return true end
  end
  return false
end

local SEPARATES = "the recipe separates families that are used at the same time"
local function never_shared(one)
  return one.options:find "unique" or one.options:find "windows" or one.options:find "device"
end

describe("explanations", function()
  it("count the communicators that ranks create", function()
    each_plan(false, "", function(plan, groups, what)
      local made, own = {}, {}
      for rank = 0, plan.world - 1 do
        for _, c in ipairs(plan:creates(rank)) do made[c.family .. " " .. c.group] = c.family end
      end
      for _, family in pairs(made) do own[family], own.all = (own[family] or 0) + 1, (own.all or 0) + 1 end
      assert.equal(own.all or 0, plan:counts().communicators, what)
      for name, family in pairs(groups) do
        local led, many, one = 0, 0, plan:communicators(name)
        for _, leader in ipairs(plan:leaders(name)) do led = led + leader.groups end
        for _, ranks in pairs(family.at) do many = many + (#ranks > 1 and 1 or 0) end
        if not one.made then many = 0 end
        assert.same({ own[name] or 0, many - (own[name] or 0) }, { one.own, led }, what .. name)
      end
    end)
  end)

  it("say why families with the same groups do not share", function()
    local said = {}
    each_plan(false, "", function(plan, _, what)
      for _, name in ipairs(plan.families) do
        local text, one = mg.pictures.explain(plan, { families = { name }, columns = 1000 }), plan:communicators(name)
        for other, why in text:gmatch "(%w+) has the same groups and communicators of its own: ([^\n]*)" do
          local its, together = plan:communicators(other), false
          for _, list in ipairs(plan.concurrent) do
            local names = table.concat(list, " ") .. " "
            together = together or names:find(name .. " ") and names:find(other .. " ") and true
          end
          local never = never_shared(one) or never_shared(its)
          local lanes = (one.options .. its.options):find "lane=" -- perhaps of a third family
          local want = (one.twin or its.twin) and "a twin is meant to be separate"
                       or (together and not never or lanes and why == SEPARATES) and SEPARATES
                       or never and one.options == its.options and "a family with these options shares none"
                       or one.options ~= its.options and "its options differ"
          assert.equal(want, why, what .. text)
          said[why] = true
        end
        for other in text:gmatch "(%w+) has the same groups and options, and shares them" do
          assert.equal(one.options, plan:communicators(other).options, what .. text)
        end
        local head, alike = text:match "those of (%w+), which is made before, .-, and ([%w ]+)"
        if head then
          local same = plan:communicators(head).options == one.options
          assert.equal(same and "the same options" or "options that allow it", alike, what .. text)
        end
      end
    end)
    local n = 0
    for _ in pairs(said) do n = n + 1 end
    assert.equal(4, n)
  end)

  it("show why a group is not within another", function()
    local said = { rank = 0, pair = 0, all = 0 }
    each_plan(true, "", function(plan, groups, what)
      for a, inner in pairs(groups) do
        for b, outer in pairs(groups) do
          local first
          for g = inner.count - 1, 0, -1 do
            if not has_all(outer, inner.at[g]) then first = g end
          end
          local holds, why = plan:law(("within(%s, %s)"):format(a, b))
          assert.equal(first == nil, holds, what .. tostring(why))
          if first then
            local rank, of = why:match ": rank (%d+) of group (%d+) of %w+ is in no group of %w+$"
            local group, x, y = why:match ": group (%d+) of %w+ has ranks (%d+) and (%d+), and no group .* has both$"
            local all = why:match ": no group of %w+ has all ranks of group (%d+) of %w+$"
            local ranks = rank and { tonumber(rank) } or x and { tonumber(x), tonumber(y) } or inner.at[tonumber(all)]
            local kind = rank and "rank" or x and "pair" or "all"
            assert.equal(first, tonumber(of or group or all), what .. why)
            for _, one in ipairs(ranks) do assert.is_true(inner.of[one][first], what .. why) end
            assert.is_false(has_all(outer, ranks), what .. why)
            said[kind] = said[kind] + 1
          end
        end
      end
    end)
    for kind, n in pairs(said) do assert.is_true(n > 0, kind) end
  end)

  it("show two nodes in which a group uses other rails", function()
    local broken = 0
    each_plan(true, "", function(plan, groups, what)
      local each = math.random(2, 4)
      local machine = mg.open_machine(("node:%d gpu:%d rail = gpu"):format(plan.world // each + 1, each))
      for name, family in pairs(groups) do
        local holds, why = plan:law(("aligned(%s, machine.rail)"):format(name), machine)
        if not holds then
          local use = "its rank (%d+) in node (%d+) is on rail (%d+)"
          local g, x, nx, rx, y, ny, ry = why:match("group (%d+): " .. use .. ", and " .. use .. ";")
          local ranks = family.at[tonumber(g)]
          local function uses(node, rail)
            local found = false
            for _, rank in ipairs(ranks) do found = found or rank == node * each + rail end
            return found
          end
          nx, rx, ny, ry = tonumber(nx), tonumber(rx), tonumber(ny), tonumber(ry)
          assert.same({ tonumber(x), tonumber(y) }, { nx * each + rx, ny * each + ry }, what .. why)
          assert.is_true(nx ~= ny and uses(nx, rx) and uses(ny, ry), what .. why)
          assert.is_false(uses(nx, ry) and uses(ny, rx), what .. why)
          broken = broken + 1
        end
      end
    end)
    assert.is_true(broken > cases // 4)
  end)

  it("count each communicator after a loss in one family", function()
    local several = 0
    each_plan(true, "spares = 1,", function(plan, _, what)
      local loss = plan:lose { ranks = { math.random(0, plan.world - 1) } }
      local kept, made = 0, 0
      for _, one in pairs(loss.communicators.families) do kept, made = kept + one.kept, made + one.made end
      assert.same({ loss.communicators.kept, loss.communicators.made }, { kept, made }, what .. tostring(loss))
      if kept > 0 and made > 0 then several = several + 1 end
    end)
    assert.is_true(several > cases // 50, several)
  end)

  it("show the whole value of a parameter", function()
    local text = [[return recipe { params = { name = ("x"):rep(150) }, build = function(world)
      local t = topology(world)
      t.all = grid(world, "a", { a = fill }) "a"
      return t
    end }]]
    local recipe, long = mg.load("case", { text = text }), ("x"):rep(150)
    local diff = recipe:plan(4):diff(recipe:plan(4, { name = long .. "y" }))
    assert.same({ { kind = "~", what = "param", name = "name", from = long, to = long .. "y" } }, diff.changes)
  end)

  it("name the lines of all families that were joined", function()
    local text = [[return recipe { build = function(world)
      local t, g = topology(world), grid(world, "a-b", { a = 2, b = fill })
      local low = g:at { b = 0 } "a"
      local high = g:at { b = 1 } "a"
      t.more = zip(low, high)
      t.all = union(low, high):bundle(2)
      return t
    end }]]
    local plan = mg.load("case", { text = text, lines = true }):plan(4)
    assert.same({ "case:3", "case:4", "case:5" }, plan:lines "more")
    assert.same({ "case:3", "case:4", "case:6", "case:6" }, plan:lines "all")
  end)
end)
