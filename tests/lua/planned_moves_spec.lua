-- SPDX-License-Identifier: MIT
--
-- Plans of moves: `moongrid move` and moongrid.move, and what they and plans report of ranks without any element.

local json = require "dkjson"
local moongrid = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run = support.run

-- A recipe over tp 2 x pp 2 x dp with one tensor t.x.
local layout = [[
return recipe { doc = "a tensor", params = { tp = 2, pp = 2 }, build = function(world, p)
  local g = grid(world, "tp-pp-dp", { tp = p.tp, pp = p.pp, dp = fill })
  local t = topology(world)
  t.dense = g
  t.x = tensor { axes = { { "layer", 8 }, { "qkv", 48 }, { "hidden", 4 } }, type = "bf16", over = "dense",
                 cut = { layer = "pp", qkv = { "tp", parts = { 32, 8, 8 }, unit = 2 } } }
  return t
end }
]]

describe("moongrid move", function()
  local path = support.file(layout)
  local function move(line)
    local out, err, code = run("build/moongrid move " .. path .. " " .. line)
    return code == 0 and json.decode(out) or out, err, code
  end

  it("sends the minimum, in rounds", function()
    local m = move "--world 8 vs tp=4 pp=1 --json --list"
    assert.are.equal(m.tensors[1].minimum, m.tensors[1].sent)
    assert.are.equal("x", m.tensors[1].name)
    local sum, seen = 0, {}
    for _, x in ipairs(m.messages) do
      assert.is_true(x.from ~= x.to and x.bytes > 0 and x.tensor == "x" and x.round < m.tensors[1].rounds)
      for _, key in ipairs { "s" .. x.from .. "/" .. x.round, "r" .. x.to .. "/" .. x.round } do
        assert.is_nil(seen[key])
        seen[key] = true
      end
      sum = sum + x.bytes
    end
    assert.are.equal(m.all.sent, sum)
    assert.are.equal(m.all.busiest, m.all.rounds)
    assert.are.equal(#m.messages, m.all.messages)
  end)

  it("moves nothing where nothing changes, whatever the world", function()
    for _, line in ipairs { "--world 8 vs", "--world 8 vs --world 4", "--world 4 vs --world 8 --map 4..7,0..3", "--world 1048576 vs tp=2 --rank 77" } do
      local m = move(line .. " --json")
      assert.are.equal(line:find "map" and 3072 or 0, m.all and m.all.sent or m.send, line)
    end
  end)

  it("shows all of them as a table", function()
    local out, err, code = run("build/moongrid move " .. path .. " --world 8 vs tp=4 pp=1 --list --machine 4")
    local all = move "--world 8 vs tp=4 pp=1 --list --machine 4 --json"
    assert.are.same({ "", 0 }, { err, code })
    assert.is_truthy(out:find("^tensor +stays +sent +minimum +max send +max recv +peers +rounds +by gather +crossing\n"), out)
    local x = all.tensors[1]
    assert.is_truthy(out:find(("\nx  [^\n]* %d +%d +%%S+ %%S+ +%%S+ %%S+\n"):format(x.peers, x.rounds)), out)
    local _, lines = out:gsub("\n +%d+ %-> %d+ +x +%d+ +%d+", "")
    assert.are.equal(#all.messages, lines)
  end)

  it("shows of many tensors those that send most", function()
    local words = "llama --world 8 tp=2 pp=2 vs tp=4 pp=1"
    local out, all = run("build/moongrid move " .. words), json.decode((run("build/moongrid move " .. words .. " --json")))
    local rows, sent = {}, {}
    for name in out:gmatch "\n(model%.%S+)" do rows[#rows + 1] = name end
    for _, one in ipairs(all.tensors) do sent[one.name] = one.sent end
    local least = math.huge
    assert.are.equal(12, #rows + select(2, out:gsub("\nlm_head", "")))
    for _, name in ipairs(rows) do least, sent[name] = math.min(least, sent[name]), nil end
    sent["lm_head.weight"] = nil
    for name, bytes in pairs(sent) do assert.is_true(bytes <= least, name) end
    assert.is_truthy(out:find "\n%.%.%. 279 more tensors, which send at most as much: [^\n]*\nin all  ")
  end)

  it("takes parts from the machine where they are needed", function()
    for _, case in ipairs { { 8, 4, "pp=1" }, { 64, 8, "tp=4" }, { 4096, 8, "tp=8" }, { 24, 6, "tp=4" } } do
      local world, machine, to = table.unpack(case)
      local line = ("--world %d vs %s --list --json"):format(world, to)
      local near, far = move(line .. " --machine " .. machine), 0
      local any = move(line)
      assert.are.equal(any.all.sent, near.all.sent)
      for _, m in ipairs(near.messages) do far = far + (m.from // machine ~= m.to // machine and m.bytes or 0) end
      assert.are.equal(far, near.all.crossing)
      local before = 0
      for _, m in ipairs(any.messages) do before = before + (m.from // machine ~= m.to // machine and m.bytes or 0) end
      assert.is_true(far <= before and (world < 64 or far < before), ("%d, %d of %d"):format(world, far, before))
    end
  end)

  it("shows one rank", function()
    local m = move "--world 8 vs tp=4 pp=1 --rank 3 --json"
    local out = run("build/moongrid move " .. path .. " --world 8 vs tp=4 pp=1 --rank 3")
    local send = 0
    for _, peer in ipairs(m.peers) do send = send + peer.send end
    assert.are.equal(m.send, send)
    assert.is_truthy(out:find(("rank 3: %d bytes stay, %d are sent, %d received"):format(m.stay, m.send, m.receive), 1, true))
  end)

  for line, want in pairs {
    ["--world 8"] = { "move needs two sides with 'vs' between: moongrid move A --world N vs B", 2 },
    ["vs"] = { "move needs --world N, the number of ranks", 2 },
    ["--world 8 vs --list --rank 3"] = { "--list prints the messages of all ranks; it takes no --rank", 2 },
    ["--world 8 vs --rank 8"] = { "rank 8 is out of range; ranks are 0 to 7", 2 },
    ["--world 8 vs --tensor y"] = { "unknown tensor 'y'; known: x", 1 },
    ["--world 2097152 vs"] = { "a move lists every rank, which is possible up to 1048576 ranks, not for 2097152; --rank R asks for one", 1 },
    ["--world 8 vs picotron"] = { "tensor 'x' is only in the plan before the move; name those that move", 1 },
    ["--world 8 vs --map 0..6"] = { "the map has 7 ranks, the world after the move 8", 1 },
    ["--world 8 vs --map 0..8"] = { "the map has more than the 8 ranks of the world after the move", 1 },
    ["--world 8 vs --map 0..3,x"] = { "--map '0..3,x', character 6: expected a rank, or a range such as 8..15", 1 },
    ["--world 8 vs --map 0..6,3"] = { "the map has rank 3 for ranks 3 and 7", 1 },
  } do
    it("refuses " .. line, function()
      local _, err, code = move(line)
      assert.are.same({ "moongrid: " .. want[1] .. "\n", want[2] }, { err, code })
    end)
  end

  it("refuses plans without tensors", function()
    local _, err, code = run "build/moongrid move picotron --world 8 vs"
    assert.are.same({ "moongrid: the plans have no tensors; a recipe defines them: t.weights = tensor { ... }\n", 1 }, { err, code })
  end)
end)

describe("moongrid.move", function()
  local path = support.file(layout)
  local function plan(args) return moongrid.load(path):plan(8, args) end

  it("tells what a rank does, of plans and of states", function()
    local from, to = plan {}, plan { tp = 4, pp = 1 }
    local m = moongrid.move(from, to, { rank = 3 })
    local told = json.decode((run("build/moongrid move " .. path .. " --world 8 vs tp=4 pp=1 --rank 3 --json")))
    assert.are.same({ 3, told.stay, told.send, told.receive, { "x" } }, { m.rank, m.stay, m.send, m.receive, m.tensors })
    assert.are.same(told.peers, m.peers)
    assert.is_nil(m.rounds)
    assert.are.equal(("Move of 1 tensors: rank 3 sends %d bytes, receives %d"):format(m.send, m.receive), tostring(m))
    assert.are.same(m.peers, moongrid.move(from:dry(3), to).peers)
    local rounds = moongrid.move(from, to:dry(3), { rounds = true, tensors = { "x" } })
    assert.is_true(rounds.rounds >= 1)
    for _, peer in ipairs(rounds.peers) do
      assert.are.equal(peer.send > 0, peer.send_round ~= nil)
      assert.are.equal(peer.receive > 0, peer.receive_round ~= nil)
    end
    assert.are.equal(0, moongrid.move(from, from, { rank = 0 }).send)
    assert.is_true(moongrid.move(from, from, { rank = 0, ranks = { 7, 6, 5, 4, 3, 2, 1, 0 } }).send > 0)
  end)

  local holes = {}
  for i = 0, 62 do holes[1 << i], holes[(1 << i) + 1] = 1, 1 end -- a list that seems to have 2^62 members
  for message, options in pairs {
    ["a move between plans needs the rank that it is seen from: { rank = r }"] = {},
    ["rank 8 is out of range; ranks are 0 to 7"] = { rank = 8 },
    ["unknown tensor 'y'; known: x"] = { rank = 0, tensors = { "y" } },
    ["tensors is a list of names; number 1 is a number"] = { rank = 0, tensors = { 1 } },
    ["ranks has more than 2147483647 elements"] = { rank = 0, ranks = holes },
    ["ranks is a list of ranks; number 2 is not a rank"] = { rank = 0, ranks = { 0, "a" } },
    ["the map has 1 ranks, the world after the move 8"] = { rank = 0, ranks = { 0 } },
    ["a machine has 1 to 4096 ranks, or 0 if none is given, not -1"] = { rank = 0, machine = -1 },
    ["a machine has 1 to 4096 ranks, or 0 if none is given, not 4097"] = { rank = 0, machine = 4097 },
    ["unknown option of a move 'runk'; nearest is 'rank' (rank, tensors, rounds, ranks, convert, machine)"] = { runk = 0 },
  } do
    it("refuses: " .. message, function()
      local ok, why = pcall(moongrid.move, plan {}, plan {}, options)
      assert.are.same({ false, message }, { ok, (tostring(why):gsub("^[^ ]+:%d+: ", "")) })
    end)
  end
end)

describe("moongrid.moves", function()
  local path = support.file(layout)
  local function plan(args) return moongrid.load(path):plan(8, args) end

  it("tells what all ranks do, as each of them does", function()
    local from, to = plan {}, plan { tp = 4, pp = 1 }
    for _, options in ipairs { {}, { machine = 4, ranks = { 7, 6, 5, 4, 3, 2, 1, 0 }, tensors = { "x" } } } do
      local moves = moongrid.moves(from, to, options)
      local tensors, all, why = moves:sums()
      assert.same({ 8, { "x" }, 1, "x" }, { moves.ranks, moves.tensors, #tensors, tensors[1].name })
      assert.equal("Moves of 1 tensors between 8 ranks", tostring(moves))
      assert.is_nil(why)
      local sum, most, crossing, messages = 0, 0, 0, 0
      for rank = 0, 7 do
        local peers, mine = {}, { rank = rank, rounds = true }
        for name, value in pairs(options) do mine[name] = value end
        local move = moongrid.move(from, to, mine)
        for _, m in ipairs(moves:messages(rank)) do
          peers[#peers + 1] = { m.to, m.bytes, m.round }
          crossing = crossing + (m.from // 4 ~= m.to // 4 and m.bytes or 0)
          assert.same({ rank, "x" }, { m.from, m.tensor })
        end
        local sent = {}
        for _, peer in ipairs(move.peers) do
          if peer.send > 0 then sent[#sent + 1] = { peer.rank, peer.send, peer.send_round } end
        end
        assert.same(sent, peers)
        sum, most, messages = sum + move.send, math.max(most, move.send), messages + #peers
        assert.equal(all.rounds, move.rounds)
      end
      assert.same({ sum, most, messages, options.machine and crossing }, { all.sent, all.max_send, all.messages, all.crossing })
      tensors[1].name = nil
      assert.same(all, tensors[1])
    end
  end)

  it("is asked by examples/cheapest_move.lua as by moongrid move", function()
    local out, err, code = run(("LUA_CPATH_5_4='build/?.so;;' lua5.4 examples/cheapest_move.lua %s 8 tp=2 'tp=4 pp=1' tp=2"):format(path))
    assert.same({ "", 0 }, { err, code })
    local all = json.decode((run("build/moongrid move " .. path .. " --world 8 vs tp=4 pp=1 --json"))).all
    local line = "%-20s %d bytes sent, %d by the busiest rank, in %d rounds\n"
    assert.equal(line:format("tp=4 pp=1", all.sent, all.max_send, all.rounds) .. line:format("tp=2", 0, 0, 0)
      .. "cheapest: tp=2\n", out)
  end)

  for message, ask in pairs {
    ["rank 8 is out of range; ranks are 0 to 7"] = function(a) moongrid.moves(a, a):messages(8) end,
    ["unknown tensor 'y'; known: x"] = function(a) moongrid.moves(a, a, { tensors = { "y" } }) end,
    ["unknown option of a move 'rank'; nearest is 'ranks' (tensors, ranks, convert, machine)"] = function(a)
      moongrid.moves(a, a, { rank = 0 })
    end,
  } do
    it("refuses: " .. message, function()
      local ok, why = pcall(ask, plan {})
      assert.same({ false, message }, { ok, (tostring(why):gsub("^[^ ]+:%d+: ", "")) })
    end)
  end
end)

describe("a cut that leaves ranks without anything of a tensor", function()
  local says = "axis 'x' has 4 elements for tp 8, so ranks 4..7 (4 of 8) have nothing of it; nearest: tp 4, or copies = true"
  local path
  setup(function()
    path = support.file [[return recipe { params = { tp = 8 }, build = function(world, p)
      local t = topology(world)
      t.g = grid(world, "tp-dp", { tp = p.tp, dp = fill })
      t.tp = t.g "tp"
      t.w = tensor { axes = { { "x", 4 }, { "y", 8 } }, type = "u8", cut = { x = "tp" } }
      return t
    end }]]
  end)
  local function moongrid_says(line)
    local out, err, code = run("build/moongrid " .. line:format(path))
    assert.equal(0, code, err)
    return out, err
  end

  it("makes copies where that is said", function()
    local file = support.file [[return recipe { params = { tp = 8, n = 4, how = "tp" }, build = function(world, p)
      local t = topology(world)
      t.g = grid(world, "tp-cp-dp", { tp = p.tp, cp = p.how == "tp" and 1 or 6, dp = fill })
      t.w = tensor { axes = { { "x", 2 * p.n }, { "y", 8 } }, type = "u8",
        cut = { x = { unit = 2, copies = true, table.unpack(p.how:split "-") } } }
      return t
    end }]]
    local recipe = moongrid.load(file)
    local function runs(plan, ranks)
      local list = {}
      for i, rank in ipairs(ranks) do
        local part = plan:tensor("w", rank)
        list[i] = { part.runs[1], part.copy, part.copies }
      end
      return list
    end
    local plan = recipe:plan(16)
    assert.same({ { { { 0, 2 } }, 0, 4 }, { { { 0, 2 } }, 1, 4 }, { { { 2, 2 } }, 0, 4 }, { { { 6, 2 } }, 1, 4 }, { { { 0, 2 } }, 2, 4 },
      { { { 6, 2 } }, 3, 4 } }, runs(plan, { 0, 1, 2, 7, 8, 15 }))
    assert.equal("w: u8 x 8 by tp unit 2 copies, y 8 over tp 8 x cp 1 x dp 2 over ranks 0..15", plan:text():match "tensor (w[^\n]*)")
    assert.same({ { { { 0, 4 } }, 0, 1 }, { { { 4, 4 } }, 0, 1 } }, runs(recipe:plan(2, { tp = 2 }), { 0, 1 })) -- enough for all
    assert.is_nil(recipe:plan(2, { tp = 2 }):text():find("copies", 1, true))
    -- 6 x 4 ranks and 12 heads: both dims cut, the last one makes the copies
    assert.same({ { { { 0, 2 } }, 0, 2 }, { { { 0, 2 } }, 1, 2 }, { { { 2, 2 } }, 0, 2 }, { { { 4, 2 } }, 0, 2 } },
      runs(recipe:plan(24, { tp = 4, n = 12, how = "cp-tp" }), { 0, 1, 2, 4 }))
    local ok, why = pcall(recipe.plan, recipe, 24, { tp = 4, n = 8, how = "cp-tp" })
    assert.same({ false, "tensor 'w': axis 'x': 3 copies of each of 8 units do not fit into cp 6 x tp 4 = 24; the last dims are filled first" },
      { ok, (why:gsub("^[^ ]*: ", "")) })
  end)

  it("is told by plan", function()
    local out, err = moongrid_says "plan %s --world 8"
    assert.equal(("moongrid: note: tensor 'w': %s\n"):format(says), err)
    assert.truthy(out:find "\nw +32 +8 +1 +4  u8 x 4 by tp") -- 4 ranks without
    assert.same({ "tensor 'w': " .. says }, moongrid.load(path):plan(8).notes)
    local w = json.decode((moongrid_says "plan %s --world 8 --json")).tensors.w
    assert.same({ 8, 4, { says } }, { w.holders, w.empty, w.notes })
  end)

  it("is told by check", function()
    local out, err = moongrid_says "check %s --world 8,16 --json"
    local worlds = json.decode(out)
    assert.equal(("moongrid: note: tensor 'w': %s\n"):format(says), err:match "[^\n]*ranks 4%.%.7[^\n]*\n")
    assert.same({ "tensor 'w': " .. says }, worlds[1].notes)
    assert.truthy(worlds[2].notes[1]:find("ranks 4..7, 12..15 (8 of 16) have", 1, true))
  end)

  it("is told by move, of both sides", function()
    for _, line in ipairs { "", " --rank 5", " --list" } do
      for side, words in pairs { before = "vs tp=4", after = "tp=4 vs" } do
        local note = ("%s: tensor 'w': %s"):format(side, says)
        local out, err = moongrid_says(("move %%s --world 8 %s --json%s"):format(words, line))
        assert.equal(("moongrid: note: %s\n"):format(note), err)
        assert.same({ note }, json.decode(out).notes)
      end
    end
  end)

  it("is not told where there is none", function()
    for _, line in ipairs { "plan %s --world 8 tp=4", "check %s --world 4 tp=4", "move %s --world 8 tp=4 vs tp=2" } do
      for _, how in ipairs { "", " --json" } do
        local out, err = moongrid_says(line .. how)
        assert.equal("", err)
        assert.falsy(out:find "notes" or out:find "empty")
      end
    end
  end)
end)
