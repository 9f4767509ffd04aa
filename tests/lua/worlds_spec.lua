-- SPDX-License-Identifier: MIT
--
-- The size of the world does not matter: random recipes of verbs, and every question about their plans, take at 2^30
-- ranks at most 3 times the instructions of 2^10. MOONGRID_SEED=N repeats a recipe alone, MOONGRID_CASES=N makes more
-- than a few. No test depends on a clock.

local support = dofile "tests/lua/support.lua"
local run = support.run

local SMALL, LARGE, BOUND = 1 << 10, 1 << 30, 3

-- Grids over all ranks, windows, shifted windows, and halves; the dims that stay small come in any order with one that
-- grows with the world.
local function draw_grid(random)
  local window = ({ "w", "w", "w:window(0, w.size // 2)", "w:window(w.size // 2, w.size // 2)",
    ("w:window(%d, w.size // 2)"):format(random(1, 9)), ("w:window(%d, w.size - %d)"):format(8 * random(1, 3), 32),
    "w:order(grid(w, 'x-y', { x = 4, y = fill }):ordered('y', 'x'))" })[random(7)]
  local sizes, dims = {}, { "a", "b", "c", "d" }
  for i = 1, 3 do sizes[i] = ("%s = %d"):format(dims[i], 1 << random(1, 3)) end
  sizes[4] = "d = fill"
  for i = 4, 2, -1 do
    local k = random(i)
    dims[i], dims[k] = dims[k], dims[i]
  end
  if window:find "%- 32" then sizes = { "a = 4", "b = 2", "c = 4", "d = fill" } end
  return ("grid(%s, '%s', { %s })"):format(window, table.concat(dims, "-"), table.concat(sizes, ", "))
end

local verbs = {
  function(f, random) return ("(%s:split(%d, { table = true }))"):format(f, 1 << random(0, 3)) end,
  function(f) return ("select(2, %s:split(2))"):format(f) end,
  function(f) return ("(%s:split(2, { by = 'row', table = true }))"):format(f) end,
  function(f) return ("select(2, %s:levels { 2, %s.size // 2 })"):format(f, f) end,
  function(f, random) return ("%s:bundle(%d)"):format(f, 1 << random(0, 3)) end,
  function(f) return f .. ":pick(0, -1)" end,
  function(f) return f .. ":pick(1)" end,
  function(f) return f .. ":pairs()" end,
  function(f) return f .. ":pairs 'wrap'" end,
  function(f) return f .. ":neighbours(2, 'wrap')" end,
  function(f) return f .. ":segments { 1, fill }" end,
  function(f, random) return ("%s:segments { %d, fill, 3 }"):format(f, random(1, 3)) end,
  function(f) return f .. ":twin()" end,
  function(f) return ("%s:with { timeout = 600 }"):format(f) end,
  function(f) return ("%s:where { a = 0 }"):format(f) end,
  function(f, _, other) return ("union(%s, %s)"):format(f, other) end,
  function(f, _, other) return ("zip(%s, %s)"):format(f, other) end,
}

local laws = { "same(%s, %s)", "within(%s, %s)", "disjoint(%s, %s)", "covers(%s)", "assert(%s == %s)" }

-- A recipe, whose verbs are refused or not: what is refused makes no family.
local function draw_recipe(seed)
  math.randomseed(seed, 0)
  local random, lines, families = math.random, {}, {}
  for i = 1, 2 do lines[i] = ("local g%d = %s"):format(i, draw_grid(random)) end
  for i = 1, 12 do
    local dims = ({ "'a'", "'b'", "'d'", "'a', 'b'", "'b', 'd'", "'a', 'b', 'c', 'd'" })[random(6)]
    local f = ("g%d(%s)"):format(random(2), dims)
    if #families > 0 and random(3) == 1 then f = families[random(#families)] end
    for _ = 1, random(0, 2) do
      local other = #families > 0 and families[random(#families)] or f
      f = verbs[random(#verbs)](f, random, other)
    end
    if #f > 200 then f = families[1] end
    families[i] = "f" .. i
    lines[#lines + 1] = ("local f%d = try(function() return %s end, %s)"):format(i, f, i > 1 and "f" .. random(i - 1) or "g1 'a'")
    lines[#lines + 1] = ("t.n%d = f%d"):format(i, i)
  end
  for _ = 1, 4 do
    local law = laws[random(#laws)]:format(families[random(12)], families[random(12)])
    lines[#lines + 1] = ("try(function() %s end)"):format(law)
  end
  local text = ([[
    local function try(f, other) local ok, made = pcall(f) return ok and made or other end
    return recipe { idle = IDLE, build = function(w)
      local t = topology(w)
      %s
      return t
    end, queries = { counts = function(s)
      return s.plan:counts().communicators + #s.plan:schedule()
    end } }
  ]]):format(table.concat(lines, "\n      ")):gsub("IDLE", seed % 2 == 0 and "'allow'" or "nil")
  return text
end

local questions = {
  "plan FILE --world N", "plan FILE --world N --schedule", "plan FILE --world N --text", "plan FILE --world N --rank 5",
  "explain FILE --world N", "check FILE --world N --law 'within(n1, n2)'",
  "check FILE --world N --law 'disjoint(n1, n2)'", "check FILE --world N --law 'same(n3, n4)' --law 'covers(n5)'",
  "diff FILE --world N vs OTHER", "ask FILE --world N --rank 5 counts", "draw FILE --world N --family n1",
}

local function instructions(line)
  local _, err, code = run(("LD_BIND_NOW=1 valgrind --tool=callgrind --callgrind-out-file=/dev/null build/moongrid %s"):format(line))
  return math.tointeger(tonumber(err:match "Collected : (%d+)")), code, err
end

-- A recipe of this seed, in a file; one that makes long lists, which are paid by the rank, is drawn again.
local function drawn(seed)
  for try = 0, 99 do
    local path = support.file(draw_recipe(seed + 1000000 * try))
    if select(3, run(("build/moongrid plan %s --world %d --text"):format(path, LARGE))) == 0 then return path end
  end
  error "100 recipes were refused"
end

local function compare(question, file, other)
  local line = question:gsub("FILE", file):gsub("OTHER", other or "")
  local count = {}
  for i, world in ipairs { SMALL, LARGE } do
    local n, code, said = instructions((line:gsub("%f[%w]N%f[%W]", world)))
    assert.is_truthy(n, line .. "\n" .. said) -- else it was killed for its time
    assert.is_true(code <= 1, ("%s ended with %d: %s"):format(line, code, said))
    count[i] = n
  end
  if os.getenv "MOONGRID_VERBOSE" then print(question, count[1], count[2], count[2] / count[1]) end
  return count[2] > BOUND * count[1] and ("%s: %d instructions at 2^10 ranks, %d at 2^30"):format(question, count[1], count[2])
end

-- Of windows that are shifted by 1, most groups of each are groups of another.
local shifted = [[
  return recipe { idle = "allow", build = function(w)
    local t = topology(w)
    for i = 0, 9 do
      local g = grid(w:window(i, w.size // 2), "a-b-c", { a = 2, b = 4, c = fill })
      t["a" .. i], t["b" .. i], t["ring" .. i] = g "a", g "b", g("a", "b"):pairs "wrap"
    end
    return t
  end, queries = { counts = function(s) return s.plan:counts().communicators end } }]]

describe("the size of the world", function()
  local first = tonumber(os.getenv "MOONGRID_SEED")
  local cases = tonumber(os.getenv "MOONGRID_CASES" or first and 1 or 2)
  local seed = first or 1 -- what a run finds is mended by hand: it may be a walk that is documented
  local valgrind = select(3, run "command -v valgrind") == 0

  it("does not matter to windows that are shifted", function()
    if not valgrind then return pending "valgrind is not installed" end
    local file = support.file(shifted)
    for _, question in ipairs { "plan FILE --world N --schedule", "ask FILE --world N --rank 5 counts" } do
      assert.is_false(compare(question, file))
    end
  end)

  for case = seed, seed + cases - 1 do
    it("does not matter to a random recipe, MOONGRID_SEED=" .. case, function()
      if not valgrind then return pending "valgrind is not installed" end
      local file, other, slow = drawn(case), drawn(case + 100000), {}
      for i, question in ipairs(questions) do
        if first or (i + case) % 2 == 0 then -- every other one, to be short
          slow[#slow + 1] = compare(question, file, other) or nil
        end
      end
      assert.are.equal(0, #slow, ("MOONGRID_SEED=%d, recipe %s:\n%s"):format(case, file, table.concat(slow, "\n")))
    end)
  end
end)
