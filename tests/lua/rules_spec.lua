-- SPDX-License-Identifier: MIT
--
-- moongrid reshard with rules between names: renamed, concatenated, cut apart, stacked, transposed and converted, each
-- compared with loops over elements; through rules and back; every kind of wrong rule.

local support = dofile "tests/lua/support.lua"
local files = dofile "tests/lua/safetensors.lua"
local run = support.run

local folder = support.folder()
local function at(name) return folder .. "/" .. name end

local function text_file(name, text)
  local f = assert(io.open(at(name), "w"))
  f:write(text)
  f:close()
  return at(name)
end

-- layout(NAME, TENSORS[, RULES]): a recipe whose tensors are { name, type, axes by length, cut axis }, over tp and dp
local function layout(name, tensors, rules)
  local lines = {}
  for i, t in ipairs(tensors) do
    local axes = {}
    for k, n in ipairs(t[3]) do axes[k] = ('{ "x%d", %d }'):format(k, n) end
    lines[i] = ('  t[%q] = tensor { axes = { %s }, type = "%s", cut = { %s } }'):format(t[1], table.concat(axes, ", "), t[2],
      t[4] and ('x%d = "tp"'):format(t[4]) or "")
  end
  return text_file(name, ([[
return recipe { params = { tp = 2, groups = 2 }, names = %q, build = function(world, p)
  local t = topology(world)
  t.g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
  local _ = p.groups
%s
  return t
end }
]]):format(rules or "", table.concat(lines, "\n")))
end

local function numbers(n, from)
  local list = {}
  for i = 1, n do list[i] = from + i end
  return list
end

-- reshard(FROM, TO, LINE): the tensors of the result, put into one file by a second call for a world of one
local function reshard(from, to, line)
  os.execute(("rm -rf %s %s"):format(at "cut", at "one"))
  local out, err, code = run(("build/moongrid reshard %s --to %s %s -o %s"):format(from, to, line or "", at "cut"))
  if code ~= 0 then return nil, err, code end
  assert.equal("", err)
  assert.truthy(out:find "^%d+ tensors?, ")
  assert.equal(0, select(3, run(("build/moongrid reshard %s --to %s --world 1 tp=1 -o %s"):format(at "cut", to, at "one"))))
  return files.read(at "one/model-00001-of-00001.safetensors")
end

local function rules(text) return "--names " .. text_file("names", text) end

describe("rules between names", function()
  teardown(function() os.execute("rm -rf " .. folder) end)

  local q, k, v = numbers(8 * 3, 0), numbers(4 * 3, 100), numbers(4 * 3, 200)
  local apart = files.write(at "apart.safetensors", {
    { "m.layers.0.q.weight", "F32", { 8, 3 }, q }, { "m.layers.0.k.weight", "F32", { 4, 3 }, k },
    { "m.layers.0.v.weight", "F32", { 4, 3 }, v }, { "m.norm", "F32", { 3 }, { 1, 2, 3 } },
  })
  local parts = { { "m.layers.0.q.weight", "f32", { 8, 3 }, 1 }, { "m.layers.0.k.weight", "f32", { 4, 3 }, 1 },
                  { "m.layers.0.v.weight", "f32", { 4, 3 } }, { "m.norm", "f32", { 3 } } }
  local all = { "m.layers.(%d+).q.weight + m.layers.%1.k.weight + m.layers.%1.v.weight -> l%1_qkv", "m.norm -> norm" }

  -- The rows of q, k and v in n blocks.
  local function fused(n)
    local list = {}
    for block = 0, n - 1 do
      for _, x in ipairs { q, k, v } do
        table.move(x, block * #x // n + 1, (block + 1) * #x // n, #list + 1, list)
      end
    end
    return list
  end

  for _, case in ipairs {
    { "one after the other", "", 1 }, { "in blocks", " by 4", 4 }, { "in blocks of a parameter", " by groups", 2 },
    { "in blocks of the other parameter", " by heads or groups", 2 },
  } do
    it("make one tensor of several, " .. case[1] .. ", and cut it apart again", function()
      local names = rules(all[1] .. case[2] .. "\n" .. all[2] .. "\n")
      local one = layout("one.lua", { { "l0_qkv", "f32", { 16, 3 }, 1 }, { "norm", "f32", { 3 } } })
      assert.same({ l0_qkv = { "F32", { 16, 3 }, fused(case[3]) }, norm = { "F32", { 3 }, { 1, 2, 3 } } },
        reshard(apart, one, "--world 4 " .. names))
      os.execute(("mv %s %s"):format(at "cut", at "fused"))
      assert.same(files.read(apart), reshard(at "fused", layout("apart.lua", parts), "--world 6 tp=2 --window 1 " .. names))
      os.execute("rm -r " .. at "fused")
    end)
  end

  it("stand in a recipe", function()
    local one = layout("one.lua", { { "l0_qkv", "f32", { 16, 3 }, 1 }, { "norm", "f32", { 3 } } }, table.concat(all, "\n"))
    assert.same(fused(1), reshard(apart, one).l0_qkv[3]) -- the smallest world
    assert.same(fused(2), reshard(apart, one, rules(all[1] .. " by 2")).l0_qkv[3]) -- those of --names first
  end)

  it("stand in a recipe with layouts, and are numbered as there", function()
    local both = { { "l0_qkv", "f32", { 16, 3 }, 1 }, { "norm", "f32", { 3 } } }
    local one = layout("one.lua", both, "\n" .. all[1] .. "\n\n*.norm norm\n")
    assert.same({ "F32", { 3 }, { 1, 2, 3 } }, reshard(apart, one)["m.norm"]) -- keeps its name
    for text, message in pairs {
      ["# first\n\n" .. all[1] .. "\n\n*.norm norms"] = "5: no tensor 'norms'; nearest is 'norm' (l0_qkv, norm)",
      ["\n\nx -> "] = "3: NAMES -> NAMES is expected", ["\n" .. all[1] .. " by x\n" .. all[2]] =
        "2: 'by x' is neither a number of 1 or more nor a parameter that is one",
    } do
      one = layout("one.lua", both, text)
      local got, err, code = reshard(apart, one)
      assert.same({ nil, ("moongrid: %s:%s\n"):format(one, message), 1 }, { got, err, code })
    end
  end)

  it("concatenate on another axis, transposed too", function()
    local a, b = numbers(6, 0), numbers(4, 10) -- 2 x 3, 2 x 2
    local from = files.write(at "t.safetensors", { { "a", "F32", { 2, 3 }, a }, { "b", "F32", { 2, 2 }, b } })
    local names = rules "a + b -> ab axis 1"
    assert.same({ 1, 2, 3, 11, 12, 4, 5, 6, 13, 14 }, reshard(from, layout("ab.lua", { { "ab", "f32", { 2, 5 }, 2 } }), names).ab[3])
    names = rules "a + b -> ab axis 1 transposed"
    local wide = layout("ab.lua", { { "ab", "f32", { 5, 2 }, 1 } })
    assert.same({ 1, 4, 2, 5, 3, 6, 11, 13, 12, 14 }, reshard(from, wide, names).ab[3])
    os.execute(("mv %s %s"):format(at "cut", at "ab"))
    local back = reshard(at "ab", layout("a_b.lua", { { "a", "f32", { 2, 3 }, 2 }, { "b", "f32", { 2, 2 } } }), names)
    assert.same(files.read(from), back)
    names = rules "a -> at transposed\nb -> -"
    assert.same({ 1, 4, 2, 5, 3, 6 }, reshard(from, layout("at.lua", { { "at", "f32", { 3, 2 }, 2 } }), names).at[3])
  end)

  it("stack slices, and take them apart", function()
    local experts, list = {}, {}
    for layer = 0, 1 do
      for e = 0, 11 do
        list[#list + 1] = { ("h.%d.experts.%d.w1"):format(layer, e), "I32", { 2, 3 }, numbers(6, 1000 * layer + 10 * e) }
        table.move(numbers(6, 1000 * layer + 10 * e), 1, 6, #experts + 1, experts)
      end
    end
    local from = files.write(at "experts.safetensors", list)
    local names = rules "h.(%d+).experts.(%d+).w1 -> w1_of_%1[%2]"
    local stacked = layout("stacked.lua", { { "w1_of_0", "i32", { 12, 2, 3 }, 1 }, { "w1_of_1", "i32", { 12, 2, 3 }, 3 } })
    local got = reshard(from, stacked, "--world 4 " .. names)
    assert.same(experts, table.move(got.w1_of_1[3], 1, 72, 73, got.w1_of_0[3]))
    os.execute(("mv %s %s"):format(at "cut", at "stacked"))
    local each = {}
    for i, t in ipairs(list) do each[i] = { t[1], "i32", { 2, 3 }, i % 3 } end
    for _, t in ipairs(each) do t[4] = t[4] > 0 and t[4] or nil end
    assert.same(files.read(from), reshard(at "stacked", layout("each.lua", each), "--world 2 " .. names))
    -- in both directions at once: layers of experts into one tensor each expert
    local both = layout("both.lua", { { "e", "i32", { 12, 2, 3 } }, { "other", "i32", { 12, 2, 3 } } })
    names = rules "w1_of_(%d+)[%2] -> x"
    local _, err, code = reshard(at "stacked", both, names)
    assert.same({ ("moongrid: %s:1: [%%2] is not a capture\n"):format(at "names"), 1 }, { err, code })
  end)

  it("have as many blocks as elements, in little memory", function()
    local n = 20000 -- more blocks than are read at once
    local one, two, both = numbers(n, 0), numbers(2 * n, n), {}
    for i = 1, n do table.move({ one[i], two[2 * i - 1], two[2 * i] }, 1, 3, 3 * i - 2, both) end
    local from = files.write(at "two.safetensors", { { "a", "I32", { n }, one }, { "b", "I32", { 2 * n }, two } })
    local ab = layout("ab.lua", { { "ab", "i32", { 3 * n }, 1 } })
    assert.same(both, reshard(from, ab, rules("a + b -> ab by " .. n)).ab[3])
    os.execute(("mv %s %s"):format(at "cut", at "blocks"))
    local apart_again = layout("a_b.lua", { { "a", "i32", { n }, 1 }, { "b", "i32", { 2 * n } } })
    assert.same(files.read(from), reshard(at "blocks", apart_again, rules("a + b -> ab by " .. n)))
    local many = 1 << 20
    local wide = text_file("wide.safetensors", files.header { { "a", "U8", { many } }, { "b", "U8", { many } } } .. ("\0"):rep(2 * many))
    local to = layout("wide.lua", { { "ab", "u8", { 2 * many } } })
    local _, err, code = run(("ulimit -v 100000; build/moongrid reshard %s --to %s --window 1 %s -o %s"):format(wide, to,
      rules("a + b -> ab by " .. many), at "wide"))
    assert.same({ "", 0 }, { err, code })
  end)

  it("count only the digits of a capture in an index", function()
    local from = files.write(at "digits.safetensors", { { "x", "I32", { 13, 1 }, numbers(13, 0) } })
    assert.same({ 13 }, reshard(from, layout("w.lua", { { "w120", "i32", { 1 } } }), rules "w(%d+)0 -> x[%1]").w120[3])
  end)

  it("convert floats to the nearest, ties to even", function()
    local x = { 1, 1 + 2 ^ -11, 1 + 3 * 2 ^ -11, 65504, 65519, 65520, -1e30, 2 ^ -24, 2 ^ -25, 2 ^ -25 * 1.5, 6e-8, -0.0, 1 / 0, 2 ^ -14 - 2 ^ -26 }
    local from = files.write(at "x.safetensors", { { "x", "F32", { #x }, x } })
    local f16 = { 0x3c00, 0x3c00, 0x3c02, 0x7bff, 0x7bff, 0x7c00, 0xfc00, 1, 0, 1, 1, 0x8000, 0x7c00, 0x0400 }
    assert.same(f16, reshard(from, layout("x.lua", { { "x", "f16", { #x } } }), "--convert").x[3])
    os.execute(("mv %s %s"):format(at "cut", at "f16"))
    local back = { 1, 1, 1 + 2 ^ -9, 65504, 65504, 1 / 0, -1 / 0, 2 ^ -24, 0, 2 ^ -24, 2 ^ -24, -0.0, 1 / 0, 2 ^ -14 }
    assert.same(back, reshard(at "f16", layout("x.lua", { { "x", "f64", { #x } } }), "--convert").x[3])
    local y = { 1, 1 + 2 ^ -8, 1 + 3 * 2 ^ -8, 3.4e38, 2 ^ -133, 2 ^ -134, 2 ^ -134 * 1.25 }
    from = files.write(at "y.safetensors", { { "y", "F64", { #y }, y } })
    local bf16 = { 0x3f80, 0x3f80, 0x3f82, 0x7f80, 1, 0, 1 }
    assert.same(bf16, reshard(from, layout("y.lua", { { "y", "bf16", { #y } } }), "--convert").y[3])
  end)

  it("keep to the window, also where tensors are put together", function()
    local n = 1 << 18
    local a, b = numbers(n, 0), numbers(n, n)
    local from = files.write(at "big.safetensors", { { "a", "F32", { 512, 512 }, a }, { "b", "F32", { 512, 512 }, b } })
    local got = reshard(from, layout("big.lua", { { "ab", "f32", { 512, 1024 }, 1 } }), "--window 1 " .. rules "a + b -> ab axis 1 transposed")
    assert.is_nil(got)
    got = reshard(from, layout("big.lua", { { "ab", "f32", { 1024, 512 }, 1 } }), "--window 1 " .. rules "a + b -> ab axis 1 transposed")
    for _, i in ipairs { 1, 2, 513, n, n + 1, 2 * n } do
      local row, column = (i - 1) // 512, (i - 1) % 512
      assert.equal((row < 512 and column * 512 + row or n + column * 512 + row - 512) + 1, got.ab[3][i])
    end
  end)

  for text, message in pairs {
    ["a -> b -> c"] = "1: names on a side are separated by ' + '",
    ["-> b"] = "1: NAMES -> NAMES is expected",
    ["a ->"] = "1: NAMES -> NAMES is expected",
    ["a b c"] = "1: NAMES -> NAMES, or a pattern of names and a tensor of the recipe, are expected",
    ["a b -> c"] = "1: names on a side are separated by ' + '",
    ["a + -> c"] = "1: names on a side are separated by ' + '",
    ["a + b -> c + d"] = "1: both sides have several names, but one side must have one",
    ["a.%1 -> b"] = "1: %1 in '%1' is not a capture; the rule has 0 before it",
    ["a.(%d) -> b"] = "1: '(%d)': captures are (%d+), (%a+), (%w+) and (.+)",
    ["a.(%d+) -> b"] = "1: each name must have all captures of the rule",
    ["\na.(%d+) + b -> c%1"] = "2: each name must have all captures of the rule",
    ["(%d+)(%d+)(%d+)(%d+)(%d+) -> x"] = "1: a rule has at most 4 captures",
    ["a.(%w+) -> b[%1]"] = "1: the index %1 is not a capture of digits, (%d+)",
    ["a.(%d+) -> b%1[%1]"] = "1: %1 is in the name and its index",
    ["x[%0] -> norm"] = "1: character 2: an index is [%1] to [%4], the number of a capture",
    ["norm -> x[%/]"] = "1: character 10: an index is [%1] to [%4], the number of a capture",
    ["\n \3\2x -> norm"] = "2: character 2: a name has no bytes 1 to 5",
    ["m.\5 -> -"] = "1: character 3: a name has no bytes 1 to 5",
    ["m.norm -> norm\0"] = "1: character 15: a text has no byte 0",
    ["m.norm% -> norm"] = "1: %  in '%' is not a capture; the rule has 0 before it",
    [all[1] .. " by 99999999999999999999"] = "1: 'by 99999999999999999999' is neither a number of 1 or more nor a parameter that is one",
    ["a -> b by"] = "1: 'by' after the names; 'by N [or N]', 'axis N' and 'transposed' may be there",
    ["a -> b axis 9"] = "1: axis 9; axes are 0 to 7",
    ["a -> b axis x"] = "1: axis x; axes are 0 to 7",
    ["a -> b transposed twice"] = "1: 'twice' after the names; 'by N [or N]', 'axis N' and 'transposed' may be there",
    ["a + b -> -"] = "1: a line that ends with '-> -' has one name before it",
    ["m.norm -> norm\nm.layers.(%d+).q.weight + m.layers.%1.x -> l%1_qkv"] = "2: the checkpoint has no tensor 'm.layers.0.x', which 'l0_qkv' is made of",
    ["m.norm -> norm\nm.layers.(%d+).q.weight + m.layers.%1.k.weight -> l%1_qkv"] =
      "2: 'm.layers.0.q.weight' f32 8 x 3 + 'm.layers.0.k.weight' f32 4 x 3 are not 'l0_qkv' f32 16 x 3",
    ["m.norm -> norm\nm.layers.(%d+).q.weight -> l%1_qkv transposed"] = "2: 'm.layers.0.q.weight' f32 8 x 3, transposed, is not 'l0_qkv' f32 16 x 3",
    [all[1] .. " by 3"] = "1: 'm.layers.0.q.weight' has 8 elements on axis 0, which are not 3 equal blocks",
    [all[1] .. " by x"] = "1: 'by x' is neither a number of 1 or more nor a parameter that is one",
    [all[1] .. " by 0"] = "1: 'by 0' is neither a number of 1 or more nor a parameter that is one",
    [all[1] .. " axis 2"] = "1: 'm.layers.0.q.weight' f32 8 x 3 + 'm.layers.0.k.weight' f32 4 x 3 + 'm.layers.0.v.weight' f32 4 x 3 are not 'l0_qkv' f32 16 x 3",
    ["m.layers.(%d+).q.weight -> l0_qkv[%1]"] = "1: 'm.layers.0.q.weight' f32 8 x 3 is not 'l0_qkv' f32 3",
    ["m.norm norms"] = "1: no tensor 'norms'; nearest is 'norm' (l0_qkv, norm)",
  } do
    it("are refused: " .. text:gsub("[%s%c]+", " "), function()
      local one = layout("one.lua", { { "l0_qkv", "f32", { 16, 3 }, 1 }, { "norm", "f32", { 3 } } })
      local got, err, code = reshard(apart, one, rules(text))
      assert.same({ nil, ("moongrid: %s:%s\n"):format(at "names", message), 1 }, { got, err, code })
    end)
  end

  it("refuse what nothing needs, what nothing makes, and other types", function()
    local one = layout("one.lua", { { "l0_qkv", "f32", { 16, 3 }, 1 } })
    local _, err = reshard(apart, one, rules(all[1]))
    assert.equal(("moongrid: %s: no tensor 'm.norm'; --names with the rule 'm.norm -> -' leaves it out\n"):format(at "names"), err)
    assert.truthy(reshard(apart, one, rules(all[1] .. "\n*.norm -> -")))
    one = layout("one.lua", { { "l0_qkv", "f32", { 16, 3 }, 1 }, { "norm", "f32", { 3 } }, { "more", "f32", { 3 } } })
    _, err = reshard(apart, one, rules(all[1] .. "\n" .. all[2]))
    assert.equal("moongrid: the checkpoint has no tensor that is 'more' of the recipe\n", err)
    assert.truthy(reshard(apart, one, rules(all[1] .. "\n" .. all[2] .. "\nm.norm -> more"))) -- twice in the result
    one = layout("one.lua", { { "l0_qkv", "bf16", { 16, 3 }, 1 }, { "norm", "u8", { 3 } } })
    _, err = reshard(apart, one, rules(all[1] .. "\n" .. all[2]))
    assert.equal("moongrid: tensor 'm.layers.0.q.weight' is f32 in the checkpoint, and 'l0_qkv' of the recipe is bf16; "
      .. "--convert converts it\n", err)
    _, err = reshard(apart, one, "--convert " .. rules(all[1] .. "\n" .. all[2]))
    assert.equal("moongrid: tensor 'm.norm' is f32 in the checkpoint, and 'norm' of the recipe is u8\n", err)
    local parted = layout("parted.lua", { parts[1], parts[2], parts[4] })
    local whole = files.write(at "qkv.safetensors", { { "l0_qkv", "F32", { 16, 3 }, fused(1) }, { "m.norm", "F32", { 3 }, { 1, 2, 3 } } })
    _, err = reshard(whole, parted, rules(all[1]))
    assert.equal(("moongrid: %s:1: the recipe has no tensor 'm.layers.0.v.weight', which is a part of 'l0_qkv'\n"):format(at "names"), err)
    local stack = layout("stack.lua", { { "s", "f32", { 2, 8, 3 } }, { "m.layers.0.k.weight", "f32", { 4, 3 } } })
    _, err = reshard(apart, stack, rules "m.layers.(%d+).q.weight -> s[%1]\n*.norm -> -\n*.v.weight -> -")
    assert.equal(("moongrid: %s:1: the checkpoint has slices 0 to 0 of 's', whose first axis has 2\n"):format(at "names"), err)
  end)
end)

-- What nobody who means well would write; a few seconds and 400 MB are allowed.
describe("rules and names made to be hostile", function()
  local one = at "one.lua"
  setup(function()
    os.execute("mkdir -p " .. folder)
    layout("one.lua", { { "w", "i32", { 2 }, 1 } })
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  -- moongrid reshard: the message of its refusal, or its tensors
  local function tried(from, to, line)
    os.execute(("rm -rf %s"):format(at "out"))
    local _, err, code = run(("ulimit -t 5 -v 400000; build/moongrid reshard %s --to %s --world 1 tp=1 %s -o %s"):format(from, to, line or "", at "out"))
    assert.truthy(code == 0 or code == 1 or code == 3, ("%d: %s"):format(code, err)) -- 3: a limit
    return code > 0 and err:gsub("^moongrid: ", ""):gsub("\n$", "") or files.read(at "out/model-00001-of-00001.safetensors")
  end

  local function stored(...)
    local list = { { "x", "I32", { 2 }, { 1, 2 } } }
    for _, name in ipairs { ... } do list[#list + 1] = { name, "I32", { 1 }, { 7 } } end
    return files.write(at "hostile.safetensors", list)
  end

  local long, only_x = ("a"):rep(4000), { w = { "I32", { 2 }, { 1, 2 } } }
  for rule, name in pairs {
    ["*a*a*a*a*a*b -> -"] = long, ["*a*a*a*a*a*a*a*a*b* -> -"] = long, [("*a"):rep(300) .. " -> -"] = long, [("*"):rep(30000) .. " -> -"] = long,
    ["(.+)(.+)(.+)b -> -"] = long, ["(.+)(.+)(.+)(.+)b* -> -"] = long, ["(%a+)(%w+)(.+)*b(%a+) -> -"] = long, [long .. " -> -"] = long,
    [("a"):rep(200000) .. "(.+) -> -"] = ("a"):rep(200001), ["a(%d+)a(%d+)*(%w+) -> -"] = ("a1"):rep(50000),
    ["(.+)%1b%1* -> -"] = ("a"):rep(400), ["(.+)x%1 -> -"] = ("ab"):rep(900) .. "x" .. ("ab"):rep(900),
  } do
    local fits = not rule:find "b"
    for _, way in ipairs { "--names", "the recipe" } do
      it(("end: %s on %d letters, in %s"):format(rule:sub(1, 40), #name, way), function()
        local text = "x -> w\n" .. rule
        local got = way == "--names" and tried(stored(name), one, rules(text)) or tried(stored(name), layout("own.lua", { { "w", "i32", { 2 } } }, text))
        if fits then
          assert.same(only_x, got)
        else
          assert.truthy(got:find(": no tensor 'aaa", 1, true), got)
        end
      end)
    end
  end

  it("are refused where a capture occurs twice and there are too many ways to find it", function()
    assert.truthy(tried(stored(long), one, rules "x -> w\n(.+)(.+)(.+)(.+)%1%2%3%4 -> -"):find(
      "^[^:]*names:2: a capture occurs twice in a name, and there are too many ways to find it in 'aaa"))
  end)

  it("are refused in a recipe where they take more work than allowed", function()
    local own = layout("own.lua", { { "w", "i32", { 2 } } }, "x -> w\n" .. ("*a"):rep(9000) .. "* -> -")
    assert.equal(at "own.lua" .. ": matching names by its rules takes more work than allowed", tried(stored(("a"):rep(90000)), own))
  end)

  it("may have any byte but those, each as itself", function()
    for _, name in ipairs { "\u{e9}", "mod\u{e8}le.x", "\u{4e2d}\u{6587}", "\u{1f600}", "\u{7f}x", "[x", "x]", "^$.-?" } do
      local from = files.write(at "bytes.safetensors", { { name .. "7", "I32", { 2 }, { 1, 2 } }, { name, "I32", { 1 }, { 7 } } })
      local to = layout("w7.lua", { { "w7", "i32", { 2 } } })
      assert.same({ w7 = only_x.w }, tried(from, to, rules(name .. "(%d+) -> w%1\n" .. name .. " -> -")))
    end
  end)
end)

describe("a folder of Hugging Face's", function()
  local config = [[{"model_type": "qwen2", "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1, "vocab_size": 10,
    "num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": true, "torch_dtype": "float32", "head_dim": null}]]
  local list = {}
  setup(function()
    os.execute("mkdir -p " .. at "hf")
    local a = "model.layers.0."
    for i, t in ipairs {
      { "model.embed_tokens.weight", { 10, 8 } }, { "model.norm.weight", { 8 } }, { a .. "input_layernorm.weight", { 8 } },
      { a .. "post_attention_layernorm.weight", { 8 } }, { a .. "self_attn.q_proj.weight", { 8, 8 } }, { a .. "self_attn.q_proj.bias", { 8 } },
      { a .. "self_attn.k_proj.weight", { 4, 8 } }, { a .. "self_attn.k_proj.bias", { 4 } }, { a .. "self_attn.v_proj.weight", { 4, 8 } },
      { a .. "self_attn.v_proj.bias", { 4 } }, { a .. "self_attn.o_proj.weight", { 8, 8 } }, { a .. "mlp.gate_proj.weight", { 6, 8 } },
      { a .. "mlp.up_proj.weight", { 6, 8 } }, { a .. "mlp.down_proj.weight", { 8, 6 } },
    } do
      list[i] = { t[1], "F32", t[2], numbers(t[2][1] * (t[2][2] or 1), 1000 * i) }
    end
    files.write(at "hf/model.safetensors", list)
    text_file("hf/config.json", config)
  end)
  teardown(function() os.execute("rm -rf " .. folder) end)

  it("is cut by its own config, for the smallest world", function()
    local out, err, code = run(("build/moongrid reshard %s --to llama tp=4 -o %s"):format(at "hf", at "out"))
    assert.same({ "14 tensors, 1.78 KiB, in 4 files of " .. at "out" .. "\n", "", 0 }, { out, err, code })
    local got = files.read(at "out/model-00003-of-00004.safetensors") -- rank 2: its head of q; ranks 0 and 2 have the keys
    assert.same({ 2, 8 }, got["model.layers.0.self_attn.q_proj.weight"][2])
    assert.same(table.move(list[5][4], 33, 48, 1, {}), got["model.layers.0.self_attn.q_proj.weight"][3])
    assert.same(table.move(list[7][4], 17, 32, 1, {}), got["model.layers.0.self_attn.k_proj.weight"][3])
    assert.is_nil(files.read(at "out/model-00004-of-00004.safetensors")["model.layers.0.self_attn.k_proj.weight"])
    assert.equal(0, select(3, run(("build/moongrid reshard %s --to llama --params %s -o %s"):format(at "out", at "hf/config.json", at "back"))))
    assert.same(files.read(at "hf/model.safetensors"), files.read(at "back/model-00001-of-00001.safetensors"))
  end)

  it("tells the rule that leaves out what the recipe lacks, and obeys it", function()
    local function follows(more, message)
      os.execute("mkdir -p " .. at "more")
      files.write(at "more/model.safetensors", table.move(more, 1, #more, #list + 1, table.move(list, 1, #list, 1, {})))
      text_file("more/config.json", config)
      local line = ("build/moongrid reshard %s --to llama tp=2 -o %s"):format(at "more", at "fewer")
      local _, err, code = run(line)
      assert.same({ "moongrid: llama: no tensor " .. message .. "\n", 1 }, { err, code })
      text_file("rule", err:match "the rule '([^']*)'" .. "\n")
      _, err, code = run(line .. " --names " .. at "rule")
      assert.same({ "", 0 }, { err, code })
      os.execute("rm -r " .. at "more" .. " " .. at "fewer")
    end
    local head = { "lm_head.weight", "F32", { 10, 8 }, numbers(80, 1) } -- the config ties it to the embedding
    follows({ head }, "'lm_head.weight'; --names with the rule 'lm_head.weight -> -' leaves it out")
    local mtp = {} -- a layer behind num_hidden_layers, for multi-token prediction
    for i, name in ipairs { "eh_proj.weight", "enorm.weight", "self_attn.q_proj.weight" } do
      mtp[i] = { "model.layers.1." .. name, "F32", { 8 }, numbers(8, i) }
    end
    follows(mtp, "'model.layers.1.eh_proj.weight'; --names with the rule 'model.layers.1.(.+) -> -' leaves it out, and the 2 "
      .. "others that begin so")
    follows({ { "model.layers.1.eh_proj.weight", "F32", { 8 }, numbers(8, 1) } },
      "'model.layers.1.eh_proj.weight'; nearest is 'model.layers.0.mlp.up_proj.weight'; --names with the rule 'model.layers.1.eh_proj.weight -> -' leaves it out")
  end)

  it("is refused with one message", function()
    local function refuses(words, message, change, from)
      text_file("hf/config.json", change and config:gsub(change[1], change[2]) or config)
      local _, err, code = run(("build/moongrid reshard %s --to llama %s -o %s"):format(from or at "hf", words, at "no"))
      assert.same({ "moongrid: " .. message .. "\n", 1 }, { (err:gsub("llama:%d+", "llama:LINE")), code })
      assert.is_nil((io.open(at "no")))
    end
    refuses("", "llama:LINE: model_type 'gpt2' is not among deepseek_v3, llama, mistral, mixtral, phi3, qwen2, qwen2_moe, "
      .. "qwen3, qwen3_moe; write its tensors as in this recipe (moongrid recipes llama --source)", { "qwen2", "gpt2" })
    refuses("", "tensor 'model.embed_tokens.weight' is f32 10 x 8 in the checkpoint, and 'model.embed_tokens.weight' of the recipe "
      .. "is f32 11 x 8", { '"vocab_size": 10', '"vocab_size": 11' })
    refuses("", "the checkpoint has no tensor that is 'lm_head.weight' of the recipe", { "true", "false" })
    refuses("type=bf16", "tensor 'model.embed_tokens.weight' is f32 in the checkpoint, and 'model.embed_tokens.weight' of the "
      .. "recipe is bf16; --convert converts it")
    refuses("", at "empty" .. " has neither model.safetensors.index.json nor model.safetensors", nil, (os.execute("mkdir -p " .. at "empty") and at "empty"))
    text_file("empty/model.safetensors.index.json", '{"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}')
    refuses("--params " .. at "hf/config.json", at "empty/model-00001-of-00002.safetensors" .. " is missing; the index names it", nil, at "empty")
  end)
end)
