-- SPDX-License-Identifier: MIT
--
-- Tensors in recipes, what plan and move say about them, and the whole message of each refusal.

local json = require "dkjson"
local moongrid = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run = support.run

-- A recipe over tp 2 x pp 2 x dp with one tensor t.x; `body` is what stands in tensor { ... }.
local function recipe_of(body, before)
  return support.file(([[
return recipe { doc = "a tensor", params = { tp = 2, pp = 2 }, build = function(world, p)
  local g = grid(world, "tp-pp-dp", { tp = p.tp, pp = p.pp, dp = fill })
  local t = topology(world)
  %s
  t.x = tensor { %s }
  return t
end }
]]):format(before or "t.dense = g", body))
end

local qkv = [[axes = { { "layer", 8 }, { "qkv", 48 }, { "hidden", 4 } }, type = "bf16", over = "dense",
  cut = { layer = "pp", qkv = { "tp", parts = { 32, 8, 8 }, unit = 2 } }]]

describe("tensor { ... }", function()
  local path = recipe_of(qkv)

  it("is in the canonical text and the digest", function()
    local plan = moongrid.load(path):plan(8)
    assert.is_truthy(plan:text():find(
      "\ntensor x: bf16 layer 8 by pp, qkv 48 by tp unit 2 parts 32,8,8, hidden 4 over tp 2 x pp 2 x dp 2 over ranks 0..7\n", 1, true))
    local other = recipe_of((qkv:gsub("bf16", "f16")))
    assert.are_not.equal(plan.digest, moongrid.load(other):plan(8).digest)
    assert.are.same({ "x" }, plan.tensors)
  end)

  it("tells the part of a rank", function()
    local plan = moongrid.load(path):plan(9 - 1)
    assert.are.same({ shape = { 4, 24, 4 }, elements = 384, bytes = 768, copy = 1, copies = 2,
                      runs = { { { 4, 4 } }, { { 16, 16 }, { 36, 4 }, { 44, 4 } }, { { 0, 4 } } } }, plan:tensor("x", 7))
  end)

  it("is shown by the command", function()
    local out, err, code = run("build/moongrid plan " .. path .. " --world 8 --tensor x --rank 3")
    assert.are.same({ "        3            768 bytes, copy 0: layer 4..7, qkv 16..31 36..39 44..47, hidden 0..3\n", "", 0 },
      { out, err, code })
    out = run("build/moongrid plan " .. path .. " --world 8")
    assert.is_truthy(out:find("\nx                          3072            768         2         0  bf16 layer 8", 1, true), out)
    local all = json.decode((run("build/moongrid plan " .. path .. " --world 8 --json"))).tensors.x
    assert.are.same({ 3072, 768, 2, 8, "bf16" }, { all.bytes, all.largest, all.copies, all.holders, all.type })
    local mine = json.decode((run("build/moongrid plan " .. path .. " --world 8 --json --rank 3"))).tensors.x
    assert.are.same({ { { 4, 4 } }, { { 16, 16 }, { 36, 4 }, { 44, 4 } }, { { 0, 4 } } }, mine.runs)
    out, err, code = run("build/moongrid plan " .. path .. " --world 8 --tensor y")
    assert.are.same({ "", "moongrid: unknown tensor 'y'; known: x\n", 1 }, { out, err, code })
  end)

  it("is told by diff", function()
    local out = run("build/moongrid diff " .. path .. " --world 8 vs tp=4 pp=1")
    assert.is_truthy(out:find("~ tensor   x: bf16 layer 8 by pp, qkv 48 by tp unit 2", 1, true), out)
  end)

  it("goes again", function()
    local with = recipe_of(qkv)
    local text = io.open(with):read "a"
    support.write(with, (text:gsub("return t\n", "t.x = nil return t\n")))
    local plan = moongrid.load(with):plan(8)
    assert.are.same({}, plan.tensors)
    assert.is_nil(plan:text():find("tensor", 1, true))
  end)

  it("has a name as checkpoints have, of 255 bytes at most", function()
    local named = support.file [[return recipe { params = { name = "x" }, build = function(world, p)
      local t = topology(world)
      t.g = grid(world, "tp", { tp = fill })
      t[p.name] = tensor { axes = { { "x", 8 } }, type = "f32", cut = { x = "tp" } }
      return t
    end }]]
    local recipe, long = moongrid.load(named), ("model.layers.0.self_attn/q-proj.weight_"):rep(7):sub(1, 255)
    for _, name in ipairs { long, "0.weight", "a-b", "_" } do
      local plan = recipe:plan(2, { name = name })
      assert.same({ name }, plan.tensors)
      assert.same({ { { 4, 4 } } }, plan:tensor(name, 1).runs)
      local saved = os.tmpname()
      for _, how in ipairs { "--json", "--rules" } do
        run(("build/moongrid plan %s --world 2 name=%s %s > %s"):format(named, name, how, saved))
        assert.truthy(run("build/moongrid plan " .. saved):find(plan.digest, 1, true), how)
      end
      os.remove(saved)
    end
    for _, name in ipairs { long .. "x", "", "a b", "a:b", "\195\164" } do
      local ok, text = pcall(recipe.plan, recipe, 2, { name = name })
      assert.same({ false, ("'%s' is not a tensor name (letters, digits, _ . - or /; at most 255)"):format(name) },
        { ok, (text:gsub("^[^ ]*:%d+: ", "")) })
    end
    local out = run(("build/moongrid move %s --world 2 name=%s vs --world 4 name=%s"):format(named, long, long))
    assert.truthy(out:find("\n" .. long .. "  ", 1, true))
  end)

  it("is held by some ranks alone", function()
    local some = recipe_of([[axes = { { "vocab", 7 } }, type = "f32", cut = { vocab = { "tp", sizes = "ceil" } },
      on = g "pp":pick(0, -1)]])
    local plan = moongrid.load(some):plan(8, { pp = 4 })
    assert.is_nil(plan:tensor("x", 2))
    assert.are.same({ { { 4, 3 } } }, plan:tensor("x", 7).runs)
    assert.are.equal(2, plan:tensor("x", 0).copies)
  end)

  for name, case in pairs {
    bounds = { "bounds = { 0, 3, 7 }", { { 3, 4 } } },
    ["a function of the number of pieces"] = { "bounds = function(n, length) return { 0, length - n, length } end", { { 5, 2 } } },
    ["a function that gives sizes"] = { "bounds = function() return { 6, 1 } end", { { 6, 1 } } },
    sizes = { "sizes = { 2, 5 }", { { 2, 5 } } },
    blocks = { "cyclic = 2", { { 2, 2 }, { 6, 1 } } },
    owners = { "owners = { 1, 0, 1, 1, 0, 0, 1 }", { { 0, 1 }, { 2, 2 }, { 6, 1 } } },
    ["owners of units"] = { "owners = { 1 }, unit = 7", { { 0, 7 } } },
  } do
    it("is cut by " .. name, function()
      local file = recipe_of(([[axes = { { "x", 7 } }, type = "f32", cut = { x = { "tp", %s } }]]):format(case[1]))
      local plan = moongrid.load(file):plan(4)
      assert.are.same({ case[2] }, plan:tensor("x", 1).runs)
    end)
  end

  for body, message in pairs {
    ['axs = {}'] = "unknown field 'axs'; nearest is 'axes' (axes, type, over, cut, on)",
    ['type = "f32"'] = "tensor 'x': its axes are missing; they are a list, { { \"layer\", 32 }, ... }, slowest first",
    ['type = "f32", axes = {}'] = "tensor 'x': its axes are an empty table; they are a list, { { \"layer\", 32 }, ... }, slowest first",
    ['type = "f32", axes = { { "a" } }'] = "tensor 'x': axis 1 is not { name, length }, as { \"row\", 4096 }",
    ['type = "f32", axes = { { "a", "4" } }'] = "tensor 'x': the length of axis 'a' is a string, not an integer",
    ['type = "f32", axes = { { "a", 4.5 } }'] = "tensor 'x': the length of axis 'a' is a float, not an integer",
    ['type = "f32", axes = { { 4, "a" } }'] = "tensor 'x': axis 1 is not { name, length }, as { \"row\", 4096 }",
    ['type = "f32", axes = { "a", 4 }'] = "tensor 'x': axis 1 is not { name, length }, as { \"row\", 4096 }",
    ['axes = { { "a", 4 } }'] = "tensor 'x': its type is missing; it is a text, as \"bf16\"",
    ['axes = { { "a", 4 } }, type = "bf32"'] = "tensor 'x': unknown type 'bf32'; nearest is 'f32' (bf16, f16, f32, f64, "
      .. "f8_e4m3, f8_e5m2, i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128)",
    ['axes = { { "a", 4 } }, type = "f32", over = "dens"'] = "unknown grid 'dens'; nearest is 'dense' (dense)",
    ['axes = { { "a", 4 } }, type = "f32", over = 3'] = "tensor 'x': `over` is a number, not a grid or the name of one",
    ['axes = { { "a", 4 } }, type = "f32", on = 3'] = "tensor 'x': `on` is a number, not a family",
    ['axes = { { "a", 4 } }, type = "f32", cut = { b = "tp" }'] = "unknown axis 'b'; known: a",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = "tq" }'] = "tensor 'x': axis 'a': unknown dim 'tq'; nearest is 'tp' (tp, pp, dp)",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = {} }'] = "tensor 'x': axis 'a' is cut by no dim; "
      .. "a dim cuts it, \"tp\", or a list of them, outermost first",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", cyclick = 2 } }'] =
      "unknown way to cut 'cyclick'; nearest is 'cyclic' (sizes, cyclic, parts, bounds, unit, owners, copies)",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", cyclic = 2, owners = { 0, 0, 1, 1 } } }'] =
      "tensor 'x': axis 'a' is cut by 'cyclic' and by 'owners'",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", owners = 1 } }'] =
      "tensor 'x': axis 'a': 'owners' is a number, not a list of integers",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", owners = { 0, 1, 0 } } }'] =
      "tensor 'x': axis 'a' has 3 owners, but its 4 elements need one each",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { { "tp", "pp" }, owners = { 0, 1, 2, 4 } } }'] =
      "tensor 'x': axis 'a': element 1 of its cut is a table, not the name of a dim",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", "pp", owners = { 0, 1, 2, 4 } } }'] =
      "tensor 'x': axis 'a': the owner of element 3 is 4, but its pieces (tp 2 x pp 2 = 4) are 0 to 3",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", parts = { 2, 2 }, owners = { 0, 1, 0, 1 } } }'] =
      "tensor 'x': axis 'a': owners say where every element goes, so they cannot have parts",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", cyclic = 2, sizes = "ceil" } }'] =
      "tensor 'x': axis 'a' is cut by 'sizes' and by 'cyclic'",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", sizes = "cel" } }'] =
      "tensor 'x': axis 'a': sizes are 'cel'; they are \"ceil\" or a list",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", unit = 3 } }'] =
      "tensor 'x': axis 'a': unit 3 does not divide 4 elements; nearest: 2 or 4",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", unit = "x" } }'] =
      "tensor 'x': axis 'a': 'unit' is a string, not an integer of 1 or more",
    ['axes = { { "a", 3 } }, type = "f32", cut = { a = { "tp", "pp", "dp", copies = true } }'] =
      "tensor 'x': axis 'a': 3 elements cannot have equally many copies for tp 2 x pp 2 x dp 2 = 8; nearest: 6 or 9 pieces",
    ['axes = { { "a", 24 } }, type = "f32", cut = { a = { "tp", "pp", "dp", unit = 2, parts = { 16, 8 }, copies = true } }'] =
      "tensor 'x': axis 'a': 8 units of part 0 and 4 of part 1 have 1 and 2 copies for tp 2 x pp 2 x dp 2 = 8; make each part a tensor",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", cyclic = 2, copies = true } }'] =
      "tensor 'x': axis 'a': cyclic blocks say what every piece has, so they cannot have copies",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", sizes = { 1, 3 }, copies = true } }'] =
      "tensor 'x': axis 'a': bounds say what every piece has, so they cannot have copies",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", owners = { 0, 1, 0, 1 }, copies = true } }'] =
      "tensor 'x': axis 'a': owners say what every piece has, so they cannot have copies",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", copies = 2 } }'] =
      "tensor 'x': axis 'a': 'copies' is a number, not true or false",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", parts = { 2, "x" } } }'] =
      "tensor 'x': axis 'a': element 2 of 'parts' is a string, not an integer",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", sizes = { 5, -1 } } }'] =
      "tensor 'x': axis 'a': piece 1 has -1 elements; pieces have 0 or more",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", parts = { math.maxinteger, math.maxinteger, 4 } } }'] =
      "tensor 'x': axis 'a': its parts sum to at least 9223372036854775807, but its length is 4",
    ['axes = { { "a", math.maxinteger } }, type = "i8", cut = { a = { "tp", parts = { math.maxinteger, math.maxinteger, 2 } } }'] =
      "tensor 'x': axis 'a': the sum of its parts overflows 64 bits",
    ['axes = { { "a", (1 << 25) - 1 } }, type = "f32", cut = { a = { "tp", cyclic = 1 } }'] =
      "tensor 'x': axis 'a': with 1 elements in a block there are 33554431 blocks; at most 16777216 are allowed",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", sizes = { math.maxinteger, 1 } } }'] =
      "tensor 'x': axis 'a': its sizes overflow 64 bits",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { { "tp", 5 } } }'] =
      "tensor 'x': axis 'a': element 1 of its cut is a table, not the name of a dim",
    ['axes = { { "a", 1 }, { "b", 1 }, { "c", 1 }, { "d", 1 }, { "e", 1 }, { "f", 1 }, { "g", 1 }, { "h", 1 }, { "i", 1 } }, type = "i8"'] =
      "tensor 'x': a tensor has 1 to 8 axes, not 9",
    ['axes = { { "a", 4 } }, type = "f32", cut = "tp"'] =
      "tensor 'x': its cut is a string; it names the dims by axis, { layer = \"pp\" }",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", parts = (function() local l = {} for i = 0, 62 do l[1 << i], l[(1 << i) + 1] = 1, 1 end return l end)() } }'] =
      "tensor 'x': axis 'a': 'parts' has more than 2147483647 elements",
    ['axes = { { "a", 4 } }, type = "f32", cut = { a = { "tp", bounds = function() return 3 end } }'] =
      "tensor 'x': axis 'a': 'bounds' is a number, not a list of integers",
  } do
    it("refuses " .. body, function()
      local file = recipe_of(body)
      local ok, text = pcall(function() return moongrid.load(file):plan(8) end)
      assert.is_false(ok)
      assert.are.equal(file .. ":5: " .. message, text)
    end)
  end

  it("refuses the name of a grid where there is none yet", function()
    local file = recipe_of([[axes = { { "a", 4 } }, type = "f32", over = "dense"]], "")
    local ok, text = pcall(function() return moongrid.load(file):plan(8) end)
    assert.are.same({ false, file .. ":5: tensor 'x': there is no grid 'dense' in the topology yet: assign it before the tensor" },
      { ok, text })
  end)

  it("refuses a grid that comes later, and a choice between several", function()
    local body = [[axes = { { "a", 4 } }, type = "f32"]]
    for before, message in pairs {
      [""] = "tensor 'x': the topology has no grid yet: write t.grid = g before, or say `over`, a grid or the name of one",
      ["t.a = g t.b = g"] = "tensor 'x': the topology has several grids: say `over`, a grid or the name of one",
      ["t.x = g"] = "'x' is in the topology already, since %s:4; name yours otherwise, or assign nil first",
    } do
      local file = recipe_of(body, before)
      local ok, text = pcall(function() return moongrid.load(file):plan(8) end)
      assert.is_false(ok)
      assert.are.equal(file .. ":5: " .. message:format(file:match "[^/]*$"), text) -- no folder inside of a message
    end
  end)
end)

describe("flat { ... }", function()
  local function flat_of(text)
    return support.file(([[
return recipe { doc = "flats", params = { tp = 2 }, build = function(world, p)
  local g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
  local t = topology(world)
  t.dense = g
  local a = tensor { axes = { { "out", 6 }, { "in", 5 } }, type = "f32", cut = { out = "tp" } }
  local b = tensor { axes = { { "x", 7 } }, type = "f32" }
  %s
  return t
end }
]]):format(text))
  end

  it("cuts what lies one after the other", function()
    local path = flat_of 't.a, t.b = flat { a, b, over = "dp", pad = 4 }'
    local plan = moongrid.load(path):plan(6) -- 15 + 7 elements on each of tp 2, slices of 8
    assert.are.same({ shape = { 3, 5 }, elements = 7, bytes = 28, copy = 0, copies = 1, first = 8, offset = 0, slice = 8,
                      runs = { { { 3, 3 } }, { { 0, 5 } } } }, plan:tensor("a", 3))
    assert.are.same({ 1, 0, 7, 8, 2 }, (function(x) return { x.elements, x.first, x.offset, x.slice, x.copies } end)(plan:tensor("b", 3)))
    assert.are.same({ 6, 1, 0, 8, 2 }, (function(x) return { x.elements, x.first, x.offset, x.slice, x.copies } end)(plan:tensor("b", 4)))
    assert.are.equal(0, plan:tensor("a", 5).elements)
    assert.is_truthy(plan:text():find("\ntensor b: f32 x 7 over tp 2 x dp 3 over ranks 0..5 flat 2 of 2 by dp pad 4 as %x+\n"))
    local out, err, code = run("build/moongrid plan " .. path .. " --world 6 --tensor b --rank 4")
    assert.are.same({ "        4             24 bytes, copy 0: x 0..6; of these only 6 elements, from element 1 on; in the rank's slice of 8 elements they begin at 0\n", "", 0 },
      { out, err, code })
    local mine = json.decode((run("build/moongrid plan " .. path .. " --world 6 --json --rank 4"))).tensors.b
    assert.are.same({ first = 1, elements = 6, offset = 0, slice = 8 }, mine.flat)
    local m = json.decode((run("build/moongrid move " .. path .. " --world 6 vs tp=3 --json")))
    assert.is_true(m.all.sent == m.all.minimum and m.all.sent > 0)
  end)

  it("is listed at once on the largest worlds, also where parts are uneven", function()
    local path = flat_of [[local c = tensor { axes = { { "x", (1 << 30) + 7 } }, type = "f32", cut = { x = "tp" } }
      t.c, t.d = flat { c, c, over = "dp", pad = 16 }]]
    local out = run("build/moongrid plan " .. path .. " --world " .. (1 << 30) .. " tp=" .. (1 << 24))
    assert.is_truthy(out:find("\nd +4294967324 +64 +1 +0  f32 x"), out)
  end)

  it("has another digest when its order, its dim or its pad is another", function()
    local seen = {}
    for _, text in ipairs { 'flat { a, b, over = "dp" }', 'flat { a, b, over = "dp", pad = 2 }', "a, b", 'flat { a, over = "dp" }, b' } do
      local path = flat_of("t.a, t.b = " .. text)
      local digest = moongrid.load(path):plan(6).digest
      assert.is_nil(seen[digest])
      seen[digest] = true
    end
    local path = flat_of 't.b, t.a = flat { b, a, over = "dp" }'
    assert.is_nil(seen[moongrid.load(path):plan(6).digest])
  end)

  for text, message in pairs {
    ["flat(3)"] = "bad argument #1 to 'flat' (table expected, got number)",
    ["flat {}"] = 'flat has no tensors: flat { a, b, over = "dp" }',
    ['flat { a, t.dense, over = "dp" }'] = "flat: element 2 is a Grid, not a tensor",
    ["flat { a }"] = 'flat: `over` is missing; it is the dim that cuts it, "dp", or a list of them, outermost first',
    ["flat { a, over = {} }"] = 'flat: `over` is an empty table; it is the dim that cuts it, "dp", or a list of them, outermost first',
    ["flat { a, over = t.dense }"] = 'flat: `over` is a Grid; it is the dim that cuts it, "dp", or a list of them, outermost first',
    ["flat { a, over = { 3 } }"] = "flat: element 1 of `over` is a number, not the name of a dim",
    ['flat { a, over = "dp", pad = 0 }'] = "flat: `pad` is 0, not an integer of 1 or more",
    ['flat { a, over = "dp", pad = "x" }'] = "flat: `pad` is a string, not an integer of 1 or more",
    ['flat { a, over = "dp", pat = 3 }'] = "unknown field 'pat'; nearest is 'pad' (over, pad)",
    ['flat { flat { a, over = "dp" }, over = "dp" }'] = "flat: tensor 1 is flat already",
    ['t.a = flat { a, over = "dq" }'] = "tensor 'a': unknown dim 'dq'; nearest is 'dp' (tp, dp)",
    ['t.a = flat { b, a, over = "tp" }'] = "tensor 'a': dim 'tp' cuts axis 'out' of tensor 2; a flat is cut by dims that cut none of its tensors",
    ['t.a = flat { b, tensor { axes = { { "x", 4 } }, type = "bf16" }, over = "dp" }'] =
      "tensor 'a': tensor 2 of the flat is bf16, tensor 1 f32; a flat has one type",
    ['local c = tensor { axes = { { "x", 1 << 62 } }, type = "u8" }; t.a = flat { c, c, over = "dp" }'] =
      "tensor 'a': the elements of the flat overflow 64 bits at tensor 2",
    ['t.a = flat { b, tensor { axes = { { "x", 4 } }, type = "bf61" }, over = "dp" }'] =
      "tensor 'a': tensor 2 of its flat: unknown type 'bf61'; nearest is 'bf16' (bf16, f16, f32, f64, f8_e4m3, f8_e5m2, "
      .. "i8, i16, i32, i64, u8, u16, u32, u64, bool, c64, c128)",
    ['t.a = flat { b, tensor { axes = { { "x", 5 } }, type = "f32", cut = { x = "tp" } }, over = "dp" }'] =
      "tensor 'a': parts of tensor 2 differ along 'tp', which does not cut tensor 1 of the flat; cut them evenly, or put "
      .. "these tensors into different flats",
  } do
    it("refuses " .. text, function()
      local path = flat_of((text:find "^t" or text:find "^local") and text or "local _ = " .. text)
      local ok, said = pcall(function() return moongrid.load(path):plan(6) end)
      assert.is_false(ok)
      assert.are.equal(path .. ":7: " .. message, said)
    end)
  end
end)

describe("bounds of an axis", function()
  it("are those of policies.layers", function()
    local path = recipe_of [[axes = { { "layer", 9 } }, type = "f32", over = "dense",
      cut = { layer = { "pp", bounds = policies.layers { embedding = 2 } } }]]
    local plan = moongrid.load(path):plan(8, { tp = 2, pp = 2 })
    assert.are.same({ { { { 0, 4 } } }, { { { 4, 5 } } } }, { plan:tensor("x", 0).runs, plan:tensor("x", 2).runs })
  end)
end)

describe("relabel", function()
  local relabel = moongrid.relabel

  it("gives shares to the pieces that have most of them", function()
    assert.are.same({ { 0, 0, 1, 1 }, 4 }, { relabel({ 0, 0, 1, 1 }, { 1, 1, 0, 0 }) })
    assert.are.same({ { 2, 2, 0, 1 }, 4 }, { relabel({ 2, 2, 0, 1 }, { 0, 0, 1, 2 }) })
    assert.are.same({ { 1, 1, 1, 0 }, 9 }, { relabel({ 0, 0, 1, 1 }, { 0, 0, 0, 1 }, { weights = { 1, 1, 9, 1 } }) })
    assert.are.same({ { 3, 3 }, 2 }, { relabel({ 3, 3 }, { 0, 0 }, { pieces = 4 }) })
    assert.are.same({ { 0, 0 }, 0 }, { relabel({ 3, 3 }, { 0, 0 }) }) -- piece 3 is gone
  end)

  it("says in a recipe what the plan has", function()
    local file = recipe_of([[axes = { { "e", 6 } }, type = "f32",
      cut = { e = { "tp", owners = (relabel({ 0, 0, 0, 1, 1, 1 }, { 1, 1, 0, 0, 0, 1 })) } }]])
    local plan = moongrid.load(file):plan(8)
    assert.are.same({ { 2, 3 } }, plan:tensor("x", 1).runs[1])
    assert.is_truthy(plan:text():find("\ntensor x: f32 e 6 by tp owners 0,0,1,1,1,0 over ", 1, true), plan:text())
  end)

  for message, call in pairs {
    ["relabel: the owners before are nil, not a list of integers"] = function() relabel() end,
    ["relabel: the owners before are an empty table"] = function() relabel({}, {}) end,
    ["relabel: the new owners are 2 numbers, the owners before 1"] = function() relabel({ 0 }, { 0, 0 }) end,
    ["relabel: element 2 of the new owners is a string, not an integer"] = function() relabel({ 0, 0 }, { 0, "1" }) end,
    ["relabel: new owner 0 is 2; 2 pieces are 0 to 1"] = function() relabel({ 0 }, { 2 }, { pieces = 2 }) end,
    ["relabel: 5000 pieces; there are 1 to 1024"] = function() relabel({ 0 }, { 4999 }) end,
    ["relabel: new owner 0 is -1; 1 pieces are 0 to 0"] = function() relabel({ 0 }, { -1 }, { pieces = 1 }) end,
    ["relabel: owner 0 is -1; owners are 0 or more"] = function() relabel({ -1 }, { 0 }) end,
    ["relabel: weight 0 is -3; weights are 0 or more"] = function() relabel({ 0 }, { 0 }, { weights = { -3 } }) end,
    ["relabel: the weights are 2 numbers, the owners before 1"] = function() relabel({ 0 }, { 0 }, { weights = { 1, 2 } }) end,
    ["unknown option of relabel 'weight'; nearest is 'weights' (pieces, weights)"] = function() relabel({ 0 }, { 0 }, { weight = 1 }) end,
  } do
    it("refuses: " .. message, function()
      local ok, text = pcall(call)
      assert.is_false(ok)
      assert.are.equal(message, (text:gsub("^[^ ]*spec.lua:%d+: ", "")))
    end)
  end

  it("is charged to the budget of a recipe", function()
    local file = support.file [[return recipe { build = function(world)
      local owners = {}
      for i = 1, 512 do owners[i] = i - 1 end
      for _ = 1, 1000 do relabel(owners, owners) end
    end }]]
    local _, err, code = run("build/moongrid plan " .. file .. " --world 8")
    assert.are.equal(3, code)
    assert.is_truthy(err:find("instructions", 1, true), err)
  end)
end)
