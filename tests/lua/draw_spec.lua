-- SPDX-License-Identifier: MIT
--
-- moongrid draw: text and SVG compared with the plan's own JSON, the pictures of the documents, hostile text.

local support = dofile("tests/lua/support.lua")
local json = require "dkjson"
local run, read = support.run, support.read

local function draw(line, locale)
  local out, err, code = run(("LC_ALL=%s build/moongrid draw %s"):format(locale or "C.UTF-8", line))
  assert.equal("", err)
  assert.equal(0, code)
  return out
end

local function svg(line)
  local path = os.tmpname() .. ".svg"
  assert.equal("", draw(line .. " -o " .. path))
  local text = read(path)
  local _, why, code = run("command -v xmllint > /dev/null || exit 77; xmllint --noout --nonet " .. path)
  os.remove(path)
  assert.truthy(code == 0 or code == 77, why)
  return text
end

local function refuses(line, code, message)
  local out, err, got = run("build/moongrid draw " .. line)
  assert.equal("moongrid: " .. message .. "\n", err)
  assert.equal("", out)
  assert.equal(code, got)
end

-- The groups of an SVG's panel: { { rank, ... }, ... } as the titles of the coloured cells say.
local function groups_of(text, family)
  local groups = {}
  for index, ranks in text:gmatch("<title>" .. family .. " (%d+): {([%d,]+)}</title>") do
    local list = {}
    for rank in ranks:gmatch "%d+" do list[#list + 1] = tonumber(rank) end
    groups[tonumber(index) + 1] = list
  end
  return groups
end

-- How many cells each group has on paper.
local function cells_of(text, family)
  local cells = {}
  for d, index in text:gmatch('d="([^"]*)"><title>' .. family .. " (%d+):") do
    cells[tonumber(index) + 1] = select(2, d:gsub("M", ""))
  end
  return cells
end

local moe = "examples/moe.lua"

describe("the pictures of the documents", function()
  it("are what the command draws: the README's grid", function()
    local readme = read "README.md"
    local recipe = support.file(readme:match("```lua\n(return recipe {.-\n}\n)```"))
    local picture = readme:match("18 groups:\n\n```\n(.-)```\n\n`moongrid draw my.lua %-%-world 8` prints ")
    assert.equal(picture, draw(recipe .. " --world 8"))
  end)

  it("are what the command draws: examples/pictures", function()
    local n = 0
    for line, path in read("examples/pictures/README.md"):gmatch "\nmoongrid draw ([^\n]*) %-o ([^\n]*)\n" do
      assert.equal(read(path), svg(line), path)
      n = n + 1
    end
    assert.equal(6, n)
  end)
end)

describe("moongrid draw in text", function()
  it("draws lines between groups", function()
    assert.equal([[
dp: 4 groups of 2
  pp 0                 pp 1
         tp 0  tp 1           tp 0  tp 1
       ┌─────┬─────┐        ┌─────┬─────┐
  dp 0 │  0  │  1  │   dp 0 │  4  │  5  │
  dp 1 │  2  │  3  │   dp 1 │  6  │  7  │
       └─────┴─────┘        └─────┴─────┘
]], draw(moe .. " --world 8 tp=2 pp=2 --family dp"))
  end)

  it("writes groups beside the ranks where lines do not tell them, and nothing but ASCII in another locale", function()
    assert.equal([[
pp: 4 groups of 2
  pp 0                   pp 1
         tp 0   tp 1            tp 0   tp 1
       +------+------+        +------+------+
  dp 0 | 0 g0 | 1 g1 |   dp 0 | 4 g0 | 5 g1 |
       +------+------+        +------+------+
  dp 1 | 2 g2 | 3 g3 |   dp 1 | 6 g2 | 7 g3 |
       +------+------+        +------+------+

position_embedding: 4 groups of 1
  pp 0                 pp 1
         tp 0  tp 1           tp 0  tp 1
       +-----+-----+        +-----------+
  dp 0 |  0  |  1  |   dp 0 | 4 -   5 - |
       +-----+-----+        |           |
  dp 1 |  2  |  3  |   dp 1 | 6 -   7 - |
       +-----+-----+        +-----------+
]], draw(moe .. " --world 8 tp=2 pp=2 --family pp,position_embedding", "C"))
  end)

  it("lists the groups of each rank of a cover, and marks a rank", function()
    assert.equal([[
stages: 6 groups of 2
  rank       groups
     2 ──┬── 0 {0,2}
         └── 1 {2,4}

tp: 4 groups of 2
         tp 0  tp 1
       ┌───────────┐
  pp 0 │   0     1 │
       ├───────────┤
  pp 1 │  >2    *3 │
       ├───────────┤
  pp 2 │   4     5 │
       ├───────────┤
  pp 3 │   6     7 │
       └───────────┘
]], draw(moe .. " --world 8 tp=2 pp=4 --family stages,tp --rank 2"))
  end)

  it("keeps to 80 columns, has every rank of up to 4096, and says what it leaves out of more", function()
    for _, world in ipairs { 4, 6, 13, 64, 97, 1000, 4096 } do
      local out, seen = draw(("picotron --world %d --family dp"):format(world)), {}
      for line in out:gmatch "[^\n]+" do
        assert.truthy(utf8.len(line) <= 80, line)
        for rank in line:gsub("%a[%w_]* %d+", ""):gmatch "%d+" do seen[tonumber(rank)] = true end
      end
      for rank = 0, world - 1 do assert.truthy(seen[rank], world .. ": " .. rank) end
    end
    local out = draw(moe .. " --world 1048576 tp=8 pp=8")
    assert.truthy(support.flat(out):find " 256 of 1048576 ranks are drawn: [^,]*, dp 0 to %d+ and 16383 of 16384", out)
    assert.truthy(out:find "[^%d]1048575[^%d]")
    assert.truthy(#out < 20000)
    out = draw(moe .. " --world 1048576 tp=8 pp=8 --family dp --rank 54321")
    assert.truthy(out:find ">%s+54321")
    assert.truthy(out:find "\n  %d+ of 1048576 ranks are drawn: [^\n]*dp 0 to %d+, 6790 and\n    16383 of 16384\n")
  end)

  it("has ranks where they run, with a machine", function()
    local machine = "--machine 'rack:2 node:2,1 gpu:4,2,4 ranks = 2,3,0,1,4..9'"
    local path = support.file [[return recipe { build = function(world)
      local g, t = grid(world, "tp-dp", { tp = 2, dp = fill }), topology(world)
      t.tp, t.dp, t.ring = g "tp", g "dp", g "dp":pairs "wrap"
      return t end }]]
    local out = draw(path .. " --world 10 --family tp,dp " .. machine, "C")
    assert.are.equal([[
tp: 5 groups of 2; 0 cross a node, 0 cross a rack
  rack 0                                 rack 1
           gpu 0  gpu 1  gpu 2  gpu 3             gpu 0  gpu 1  gpu 2  gpu 3
         +-------------+-------------+          +-------------+-------------+
  node 0 |   2      3  |   0      1  |   node 0 |   6      7  |   8      9  |
         +-------------+-------------+          +-------------+-------------+
  node 1 |   4      5  |                 node 1
         +-------------+

dp: 2 groups of 5; 2 cross a node, 2 cross a rack
  rack 0                                 rack 1
           gpu 0  gpu 1  gpu 2  gpu 3             gpu 0  gpu 1  gpu 2  gpu 3
         +------+------+------+------+          +------+------+------+------+
  node 0 | 2 g0 | 3 g1 | 0 g0 | 1 g1 |   node 0 | 6 g0 | 7 g1 | 8 g0 | 9 g1 |
         |      |      +------+------+          +------+------+------+------+
  node 1 | 4 g0 | 5 g1 |                 node 1
         +------+------+
]], (out:gsub(" +\n", "\n")))
    -- domains have the numbers that `machine:where` says, without those before the first that has ranks
    out = draw(path .. " --world 4 --family tp --machine 'rack:3 node:4 gpu:2 ranks = 13,12,18,19'", "C")
    assert.are.equal([[
tp: 2 groups of 2; 0 cross a node, 0 cross a rack
  rack 1                   rack 2
           gpu 0  gpu 1             gpu 0  gpu 1
                                  +-------------+
  node 1                   node 1 |   2      3  |
         +-------------+          +-------------+
  node 2 |   1      0  |   node 2
         +-------------+
]], (out:gsub(" +\n", "\n")))
    -- plain inside a node, yellow across one, red across a rack
    local colours = "--color always --family %s --world 10 --machine '%s'"
    local function styles(family, on)
      local seen = {}
      for style in draw(path .. " " .. colours:format(family, on)):gmatch "\27%[0;(3%d)m *%d" do seen[style] = true end
      return seen
    end
    assert.are.same({}, styles("tp", "rack:2 node:2 gpu:4"))
    assert.are.same({ ["33"] = true }, styles("dp", "rack:1 node:3 gpu:4"))
    assert.are.same({ ["31"] = true }, styles("dp", "rack:2 node:2 gpu:4"))
    assert.are.same({ ["33"] = true, ["31"] = true }, styles("tp", "rack:4 node:3 gpu:1"))
    local picture = svg(path .. " --world 10 " .. machine)
    local _, red = picture:gsub('stroke="#b00020"', "")
    local _, grey = picture:gsub('fill="#e4e7ec" d=', "")
    local _, boxes = picture:gsub('class="box"', "")
    assert.are.same({ 2, 5 + 1, 2 + 4 }, { red, grey, boxes }) -- dp; tp, and what is below the arrows; racks and nodes
  end)

  it("is coloured when asked", function()
    assert.truthy(draw(moe .. " --world 8 --family dp --color always"):find "\027%[0;3%dm")
    assert.falsy(draw(moe .. " --world 8 --family dp"):find "\027")
  end)
end)

describe("moongrid draw as SVG", function()
  it("has the plan's groups, each with a cell for each rank", function()
    for _, case in ipairs { moe .. " --world 16 tp=2 pp=2 ep=2", "examples/encoder_decoder.lua --world 12",
                            "examples/nodes.lua --world 32 tp=4 pp=2 shard=2", "megatron --world 32 tp=2 cp=2 pp=2",
                            "picotron --world 13" } do
      local plan, picture = json.decode((run("build/moongrid plan " .. case .. " --json"))), svg(case)
      local compared = 0
      for name, family in pairs(plan.families) do
        local drawn = groups_of(picture, name)
        if #drawn > 0 then
          assert.same(family.groups, drawn, name)
          for i, n in ipairs(cells_of(picture, name)) do assert.equal(#family.groups[i], n, name) end
          compared = compared + 1
        else
          assert.truthy(picture:find(name, 1, true), name) -- among those with the same groups
        end
      end
      assert.truthy(compared > 0)
    end
  end)

  it("draws pairs as arrows, and raises the groups of a rank", function()
    local picture = svg(moe .. " --world 8 tp=2 pp=4 --family stages,pp --rank 2")
    assert.equal(2 * 2, select(2, picture:gsub('class="arrow own"', "")))
    assert.equal(4 * 2, select(2, picture:gsub('class="arrow back"', "")))
    assert.equal(1, select(2, picture:gsub('class="raised"', "")))
    assert.equal(2, select(2, picture:gsub('class="chosen"', "")))
    assert.truthy(picture:find(">2 groups of 4; rank 2: position 1 of group 0<", 1, true))
    assert.truthy(picture:find(">6 groups of 2 that share ranks; rank 2: position 1 of group 0, 0 of group 1<", 1, true))
  end)

  it("cuts a rank of several groups into a part for each, and draws pairs alone as arrows", function()
    local picture = svg "examples/cookbook/weight_sync.lua --world 8 --family sync" -- {0,1,4,5} {0,1,6,7}
    assert.falsy(picture:find('class="arrow', 1, true))
    assert.truthy(picture:find("A rank of several groups has a part in the colour of each.", 1, true))
    local parts = {}
    for outlines in picture:gmatch '<path fill="url%(#c%d+p%d+%)" d="([^"]*)">' do
      local n, widths = 0, 0.0
      for width in outlines:gmatch "h(%d[%d.]*)v" do n, widths = n + 1, widths + tonumber(width) end
      parts[#parts + 1] = { n, widths }
    end
    assert.same({ 4, 4 }, { parts[1][1], parts[2][1] }) -- two halves, two whole cells
    assert.near(parts[1][2], parts[2][2], 0.11)
    local _, idle = picture:match '<path class="idle" d="([^"]*)"':gsub("h(%d[%d.]*)v", "")
    assert.equal(2, idle)
  end)

  it("draws arrows that go far faintly, but those of the rank", function()
    local picture = svg "examples/cookbook/torus.lua --world 64 --family z"
    assert.equal(64 * 2, select(2, picture:gsub('class="arrow back"', "")))
    picture = svg "examples/cookbook/torus.lua --world 64 --family x"
    assert.equal(64 * 2, select(2, picture:gsub('class="arrow"', "")))
    picture = svg "examples/cookbook/torus.lua --world 64 --family z --rank 0"
    assert.equal(2 * 2, select(2, picture:gsub('class="arrow own"', "")))
  end)

  it("says how to read what is in it, in lines that fit", function()
    local box = "A box is a rank. The ranks of a group have one colour and pattern; dashed: in no group."
    local function notes(line)
      local all = {}
      for note in svg(line):gmatch 'class="note">([^<]*)<' do all[#all + 1] = note end
      return all
    end
    assert.same({ box }, notes "picotron --world 8")
    assert.same({ "tp=2  pp=4", box, "An arrow goes from a member of a group to the next. The thick frame is rank 2." },
      notes(moe .. " --world 8 tp=2 pp=4 --family pp,stages --rank 2"))
    assert.same({ box .. " After 40 groups their looks come again." }, notes "examples/nvl72.lua --world 144")
  end)

  it("goes on behind a comma where the names of families take several lines", function()
    local also = {}
    for line in svg("megatron --world 8 --family dp"):gmatch 'class="caption">([^<]*)<' do also[#also + 1] = line end
    assert.same({ "1 group of 8, shared with dp_cp", "also dp_cp, dp_cp_gtp_remat, dp_gtp_remat, expt_dp,",
      "expt_dp_gtp_remat, intra_dp_cp,", "intra_dp_cp_gtp_remat, intra_expt_dp,", "intra_expt_dp_gtp_remat, intra_dist_opt,",
      "dp_cp_gloo, intra_dp_cp_gloo, dp_gloo,", "expt_dp_gloo, intra_expt_dp_gloo, tp_dp_cp, tp_dp" }, also)
  end)

  it("draws worlds of any size", function()
    for _, world in ipairs { 1, 4, 7, 512, 4096, 4097, 2147483647 } do
      local picture = svg(("picotron --world %d"):format(world))
      local ranks = select(2, picture:match('<g id="ranks0".-</g>'):gsub("<text", ""))
      assert.equal(world <= 4096 and world or ranks, ranks)
      assert.equal(world > 4096, picture:find "Only %d+ of %d+ ranks are drawn: " ~= nil)
      assert.truthy(ranks <= 4096)
    end
  end)

  it("has no script and no reference outside, and escapes what a recipe says", function()
    local nasty = "</text><script>alert(1)</script>&amp;\"'<!-- ]]> "
    local recipe = support.file(([[return recipe {
      params = { words = param.text(%q) },
      build = function(world) local t = topology(world) t.all = grid(world, "x", { x = fill })("x") return t end,
    }]]):format(nasty))
    local folder = os.tmpname()
    os.remove(folder)
    local path = folder .. "<script>&\"'\n\27[2J\255\237\160\128.lua"
    support.write(path, read(recipe))
    local quoted = "'" .. path:gsub("'", "'\\''") .. "'"
    local picture = svg(quoted .. " --world 4 'words=" .. nasty:gsub("'", "'\\''") .. "x'")
    assert.falsy(picture:find "<script")
    assert.falsy(picture:find "\27")
    assert.truthy(picture:find("&lt;script&gt;&amp;&quot;", 1, true))
    assert.truthy(picture:find("&lt;/text&gt;&lt;script&gt;alert(1)", 1, true))
    for link in picture:gmatch 'href="([^"]*)"' do assert.truthy(link:find "^#") end
    os.remove(path)
  end)
end)

describe("moongrid draw", function()
  it("says that a rank is in no group of a family", function()
    local line = "picotron --world 8 tp=2 pp=4 --family pp_dp --rank 3"
    assert.falsy(draw(line):find("is in none", 1, true))
    line = "examples/moe.lua --world 8 tp=2 pp=4 --family embedding --rank 3"
    assert.truthy(draw(line):find("^embedding: 2 groups of 2; rank 3 is in none\n"))
    assert.truthy(svg(line):find("2 groups of 2; rank 3 is in none<", 1, true))
  end)

  it("refuses bad input with one line", function()
    refuses("", 2, "draw needs a recipe: a file, or one that 'moongrid recipes' lists")
    refuses(moe, 2, "draw needs --world N, the number of ranks")
    refuses(moe .. " --world 8 --rank 8", 2, "rank 8 is out of range; ranks are 0 to 7")
    refuses(moe .. " --world 8 -o", 2, "option '-o' needs a value: FILE")
    refuses(moe .. " --world 8 -o x.png", 2, "--output is a file that ends with .svg, .html or .txt, not 'x.png'")
    refuses(moe .. " --world 8 -o /nowhere/x.svg", 3, "cannot write /nowhere/x.svg: No such file or directory")
    local path = os.tmpname()
    os.execute(("ln -s /dev/full %s.svg"):format(path))
    refuses(moe .. " --world 8 -o " .. path .. ".svg", 3, "cannot write " .. path .. ".svg: No space left on device")
    os.execute(("rm %s %s.svg"):format(path, path))
    refuses(moe .. " --world 8 --family ''", 2, "--family is a list of families, F,G; not ''")
    refuses("picotron --world 8 --family tp,dpp", 1, "unknown family 'dpp'; nearest is 'dp' (tp, cp, pp, dp, cp_dp, "
      .. "pp_dp, world_group)")
    refuses("picotron --world 8 tp=3", 1,
      "picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks")
  end)
end)

local function pairs_of(keys)
  local list = {}
  for key in pairs(keys) do list[#list + 1] = key end
  return list
end

-- What the page does is tried in a browser: tests/draw/page.py.
describe("moongrid draw -o x.html", function()
  local page = os.tmpname() .. ".html"
  teardown(function() os.remove(page) end)

  it("writes one file without network, with a plan for each combination of values", function()
    assert.equal(0, (select(3, run("build/moongrid draw examples/moe.lua --world 8,6 tp=1,2,4 -o " .. page))))
    local text = io.open(page):read "a"
    assert.falsy(text:find("https?://"))
    local data = json.decode(text:match('<script type="application/json" id="data">(.-)</script>'))
    assert.same({ { name = "world", values = { "8", "6" } }, { name = "tp", values = { "1", "2", "4" } } }, data.axes)
    assert.equal(6, #data.frames)
    for i, of in ipairs { "8 tp=1", "8 tp=2", "8 tp=4", "6 tp=1", "6 tp=2" } do
      local plan, drawn = json.decode((run("build/moongrid plan examples/moe.lua --json --world " .. of))), data.frames[i].plan
      assert.same({ plan.digest, plan.world, plan.communicators.total, plan.communicators.groups },
        { drawn.digest, drawn.world, drawn.communicators, drawn.groups })
      local seen = 0
      for _, family in ipairs(drawn.families) do
        local of_plan = plan.families[family.name]
        assert.same({ of_plan.count, of_plan.shares }, { family.count, family.shares })
        if family.groups then assert.same(of_plan.groups, family.groups) end
        assert.is_true(family.modes ~= nil or family.groups ~= nil or family.same ~= nil)
        assert.same(of_plan.groups, plan.families[family.same or family.name].groups)
        seen = seen + 1
      end
      assert.equal(#pairs_of(plan.families), seen)
    end
    assert.truthy(data.frames[6].error:find("tp 4 does not divide the 6 ranks", 1, true))
    assert.same({ 0, 1, 2, 3, 4, 5, 6, 7 }, data.frames[2].sheets[1].parts[1].ranks)
  end)

  it("has a part of a world that is too large for all of it, and its groups as rules", function()
    for _, world in ipairs { 4097, 65536, 2147483647 } do
      assert.same({ "", "", 0 }, { run(("build/moongrid draw picotron --world %d -o %s"):format(world, page)) })
      local text = read(page)
      local data = json.decode(text:match('<script type="application/json" id="data">(.-)</script>')).frames[1]
      assert.truthy(data.sampled:find("^%d+ of " .. world .. " ranks are drawn: "))
      assert.is_true(#data.sheets[1].parts[1].ranks <= 4096 and #text < 200000)
      for _, family in ipairs(data.plan.families) do assert.truthy(family.modes) end
    end
  end)

  it("has ranks where they run, if every place of the machine has one", function()
    local function sheets(machine)
      run(("build/moongrid draw megatron --world 16 tp=2 %s -o %s"):format(machine, page))
      local data = json.decode(read(page):match '<script type="application/json"[^>]*>(.-)</script>' or read(page):match '({"recipe":.-})</script>')
      return data.frames[1].sheets, data.frames[1].plan.machine
    end
    local own = sheets ""
    local placed = sheets "--machine 'rack:2 node:2 gpu:4 ranks = 8..15,0..7'"
    assert.are.same({ { { "gpu", 4 }, { "node", 2 }, { "rack", 2 } }, { 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7 } },
      { placed[1].parts[1].levels, placed[1].parts[1].ranks })
    assert.are.same(own, (sheets "--machine 'node:2 gpu:10,6'"))
    local ranks_of_a_node = { [""] = 8, ["--machine 'node:4 gpu:4'"] = 4, ["--machine 'node:2 gpu:10,6'"] = 0,
                              ["--machine 'node:2 gpu:8 ranks = 8..15,0..7'"] = 0 }
    for machine, ranks in pairs(ranks_of_a_node) do assert.equal(ranks, (select(2, sheets(machine)))) end
  end)

  it("refuses what a page cannot have", function()
    local function refused(line, code, message)
      local _, err, got = run("build/moongrid draw " .. line)
      assert.same({ "moongrid: " .. message .. "\n", code }, { err, got })
    end
    refused("picotron --world 8,16", 2, "several worlds go into a page: -o FILE.html")
    refused("picotron --world 8 --rank 1 -o " .. page, 2, "a page takes no --family and no --rank: it shows all")
    refused("picotron --world 8,16,32,64,128 tp=1,2,4,8 pp=1,2,4,8 -o " .. page, 3,
      "a page has up to 64 plans; fewer values would do")
  end)

  it("refuses a value that no plan of the page has", function()
    for values, message in pairs {
      ["--world 8 tp=1,x"] = "picotron:33: parameter 'tp_size' is a size (an integer of 1 or more), not 'x'",
      ["--world 8 tp=1,,2"] = "picotron:33: parameter 'tp_size' is a size (an integer of 1 or more), not ''",
      ["--world 8 tp=1,0"] = "picotron:33: parameter 'tp_size' is a size (an integer of 1 or more), not '0'; nearest is 1",
      ["--world 8,16 tp=1,3"] = "picotron:39: tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks",
      ["--world 8,7 tp=2,4"] = "picotron:39: tp 2 does not divide the 7 ranks; nearest: tp 1 or 7, or a world of 6 or 8 ranks",
      ["--world 8 tp=2 pp=1,5,2 cp=1,2"] = "picotron:39: tp 2 x pp 5 = 10 does not divide the 8 ranks; nearest: pp 4, or a world of 10 ranks",
    } do
      local _, err, code = run("build/moongrid draw picotron " .. values .. " -o " .. page)
      assert.same({ "moongrid: " .. message .. "\n", 1 }, { err, code })
    end
  end)

  it("refuses a live page of what a page cannot plan, and where the playground is not", function()
    refuses("examples/moe.lua --world 8 --live", 2, "--live makes a page: -o FILE.html")
    refuses("examples/moe.lua --world 8 --live -o x.svg", 2, "--live makes a page: -o FILE.html")
    refuses("examples/moe.lua --world 8,16 --live -o x.html", 2, "several worlds go into a page that is not live")
    refuses("examples/moe.lua --world 8 --machine dgx-h100 --live -o x.html", 2,
            "a live page takes no --machine: the recipe names it, machine = ...")
    local folder = support.folder()
    run(("build/moongrid plan picotron --world 8 --json > %s/p.json"):format(folder))
    refuses(folder .. "/p.json --live -o x.html", 2, "--live takes a recipe, not a saved plan")
    run(("cp build/moongrid %s; cp examples/moe.lua %s/base.lua"):format(folder, folder))
    support.write(folder .. "/two.lua", "return recipe { base = './base.lua' }")
    refuses(folder .. "/two.lua --world 8 --live -o x.html", 1, "--live takes a recipe that reads no other file; a page "
      .. "would say: two.lua:1: './base.lua' is a file, and a recipe without a folder, such as one from standard input, cannot name files")
    local out, err, code = run(folder .. "/moongrid draw megatron --world 8 --live -o x.html")
    assert.are.same({ "", "moongrid: --live needs the page of the playground, and this moongrid was installed without it: "
      .. "scripts/setup --site, make wasm and make install add it\n", 4 }, { out, err, code })
    run("rm -r " .. folder)
  end)
end)
