-- SPDX-License-Identifier: MIT
--
-- The examples of tensors that move: weights from a trainer to rollout ranks, experts to new owners, FSDP and tensor
-- parallelism. Their output is that in src/tensors/README.md.

local json = require "dkjson"
local mg = require "moongrid"
local support = dofile "tests/lua/support.lua"
local run, read = support.run, support.read

local readme = read "src/tensors/README.md"

-- The block of the README that begins with this command: what it shows below it.
local function shown(command)
  local out = readme:match("\n```\n" .. command:gsub("%p", "%%%0") .. "\n\n(.-)```\n")
  return assert(out, "src/tensors/README.md does not show " .. command)
end

-- in all of a move: what `moongrid move` says, by name
local function all_of(line) return json.decode((run("build/moongrid move " .. line .. " --json"))).all end

describe("rl_sync", function()
  local recipe = "examples/rl_sync.lua"
  local small = "layers=5 hidden=48 heads=4 kv_heads=4 head=12 ffn=50 vocab=61"

  local function sync(program, ranks, from, to)
    local out, err, code = run(("scripts/launch %d %s %s %s vs %s"):format(ranks, program, recipe, from, to))
    return out, err:match "(rl_sync: [^\n]*)\n", code
  end

  -- { bytes of the move, wrong, bytes of gather and broadcast, wrong, the minimum }
  local function numbers(out)
    local found = { out:match("\none move +(%d+) +[%d.]+ +(%d+)\ngather, then broadcast +(%d+) +[%d.]+ +(%d+)\n"
      .. "the minimum +(%d+)\n$") }
    for i, n in ipairs(found) do found[i] = math.tointeger(n) end
    return found
  end

  -- What goes where each tensor is gathered on the trainer's first rank and broadcast to `readers` others.
  local function plain(ranks, params, readers)
    local plan, bytes = mg.load(recipe):plan(ranks, params), 0
    local whole = json.decode((run(("build/moongrid plan %s --world %d %s --json"):format(recipe, ranks,
      table.concat((function() local words = {} for k, v in pairs(params) do words[#words + 1] = k .. "=" .. tostring(v) end
        return words end)(), " "))))).tensors
    for _, name in ipairs(plan.tensors) do
      local mine = plan:tensor(name, 0)
      bytes = bytes + whole[name].bytes * (readers + 1) - (mine and mine.bytes or 0)
    end
    return bytes
  end

  local values = { layers = 5, hidden = 48, heads = 4, kv_heads = 4, head = 12, ffn = 50, vocab = 61 }
  for _, case in ipairs {
    { 16, {}, "first=8 tp=2 pp=1", 8 }, { 16, { tied = true }, "first=8 tp=2 pp=1 tied=true", 8 },
    { 16, { ranks = 12, tp = 2, pp = 3 }, "first=12 ranks=4 tp=1 pp=2", 4 },
    { 8, { ranks = 8, tp = 2, pp = 4 }, "ranks=8 tp=4 pp=1", 7 }, { 2, { ranks = 1, tp = 1, pp = 1 }, "first=1 ranks=1 tp=1 pp=1", 1 },
  } do
    local params, words = {}, {}
    for name, value in pairs(values) do params[name] = value end
    for name, value in pairs(case[2]) do
      params[name] = value
      words[#words + 1] = name .. "=" .. tostring(value)
    end
    local from, to = small .. " " .. table.concat(words, " "), small .. " " .. case[3]
    it(("brings every element on %d ranks: %s vs %s"):format(case[1], table.concat(words, " "), case[3]), function()
      local out, err, code = sync("build/tests/rl_sync", case[1], from, to)
      assert.are.same({ nil, 0 }, { err, code }, out)
      local least = all_of(("%s --world %d %s vs %s"):format(recipe, case[1], from, to)).minimum
      assert.are.same({ least, 0, plain(case[1], params, case[4]), 0, least }, numbers(out))
    end)
  end

  for _, case in ipairs {
    { "", "first=8 tp=2 pp=1 hidden=96", "tensor 'embedding': axis 1 is hidden 384 on one side and hidden 96 on the other" },
    { "ffn=96", "first=8 tp=2 pp=1", "tensor 'gate_up': axis 1 is gate_up 192 on one side and gate_up 2048 on the other" },
    { "tied=true", "first=8 tp=2 pp=1", "tensor 'output' is only in the plan after the move; name those that move" },
    { "tp=3", "", "examples/rl_sync.lua:26: tp 3 x pp 2 = 6 does not divide the 8 ranks of the window; nearest: tp 2 or 4, "
      .. "or a window of 6 or 12 ranks" },
    { "", "first=9", "examples/rl_sync.lua:26: a window from 9 has 1 to 7 ranks, not 8" },
    { "", "tpp=2", "examples/rl_sync.lua:8: unknown parameter 'tpp'; nearest is 'tp' (first, ranks, tp, pp, layers, hidden, "
      .. "heads, kv_heads, head, ffn, vocab, tied)" },
  } do
    it(("refuses '%s' vs '%s'"):format(case[1], case[2]), function()
      local out, err, code = sync("build/tests/rl_sync", 16, case[1], case[2])
      assert.are.same({ "", "rl_sync: " .. case[3], 1 }, { out, err, code })
    end)
  end

  it("refuses weights that are not bf16, and a call without a recipe", function()
    local other = support.file((read(recipe):gsub('"bf16"', '"f32"')))
    local _, err, code = run(("scripts/launch 16 build/tests/rl_sync %s vs first=8"):format(other))
    assert.are.same({ "rl_sync: tensor 'embedding' is f32; this program has weights of bf16", 1 },
      { err:match "(rl_sync: [^\n]*)", code })
    _, err, code = run "scripts/launch 2 build/tests/rl_sync"
    assert.are.same({ "usage: rl_sync RECIPE [NAME=VALUE ...] vs [NAME=VALUE ...]", 2 }, { err:match "(usage: [^\n]*)", code })
  end)

  for name, change in pairs {
    ["carries weights once"] = { "mgrid_move_run%(s%->move", "if (step == 0) %0" },
    ["carries what a step before made"] = { "    round_all%(&from%);\n", "" },
    ["broadcasts only the first tensors"] = { "k < from%->n; k%+%+%) {\n    int64_t bytes = bytes_of%(from, k%);\n    if", "k < 2; k++) {\n int64_t bytes = bytes_of(from, k);\n if" },
  } do
    it("notices a program that " .. name, function()
      local text, n = read "examples/rl_sync.c":gsub(change[1], change[2])
      assert.equal(1, n)
      local source = support.file(text)
      local _, err, code = run(("cc -std=c11 -x c %s -o %s.out -Isrc -Lbuild -lmoongrid_mpi -lmoongrid -Wl,-rpath,$PWD/build "
        .. "$(pkg-config --cflags --libs $(scripts/mpi --module))"):format(source, source))
      assert.equal(0, code, err)
      local out
      out, err, code = sync(source .. ".out", 16, small, small .. " first=8 tp=2 pp=1")
      os.remove(source .. ".out")
      local found = numbers(out)
      assert.truthy(code ~= 0 and found[2] + found[4] > 0, out .. (err or ""))
    end)
  end

  it("takes the bytes that the page says", function()
    local from, to = "", "first=8 tp=2 pp=1"
    local least = all_of(("%s --world 16 %s vs %s"):format(recipe, from, to)).minimum
    assert.are.same({ least, 0, plain(16, {}, 8), 0, least },
      numbers(shown "mpirun -n 16 rl_sync examples/rl_sync.lua vs first=8 tp=2 pp=1"))
  end)
end)

describe("inference engines", function()
  local prefill, attention = "examples/prefill_decode.lua", "examples/dp_attention.lua"
  local decode = "first=8 tp=2 owners=0,0,1,2,3,1,2,3"

  for _, line in ipairs {
    ("moongrid move %s --world 16 vs %s"):format(prefill, decode), ("moongrid move %s --world 16 tp=8 ep=8 vs tp=8 ep=4"):format(attention),
  } do
    it("move as the page shows: " .. line, function() assert.are.same({ shown(line), "", 0 }, { run("build/" .. line) }) end)
  end

  it("hand each rank of a decoding engine the heads of its requests, from any of the ranks that have them", function()
    local before, after = mg.load(prefill):plan(16), mg.load(prefill):plan(16, { first = 8, tp = 2, owners = { 0, 0, 1, 2, 3, 1, 2, 3 } })
    for rank = 0, 7 do -- 4 heads on 8 ranks: neighbours have the same one
      local part = before:tensor("kv", rank)
      assert.are.same({ { rank // 2 * 64, 64 } }, part.runs[4])
      assert.are.same({ 2, rank % 2 }, { part.copies, part.copy })
    end
    local requests = { { { 0, 2 } }, { { 2, 1 }, { 5, 1 } }, { { 3, 1 }, { 6, 1 } }, { { 4, 1 }, { 7, 1 } } }
    for rank = 8, 15 do
      local part = after:tensor("kv", rank)
      assert.are.same(requests[(rank - 8) // 2 + 1], part.runs[1])
      assert.are.same({ { rank % 2 * 128, 128 } }, part.runs[4])
    end
    for _, world in ipairs { "16", "16 kv_heads=8", "16 tp=4 owners=0,1,0,1,0,1,0,1" } do
      local line = ("scripts/launch 16 build/moongrid run %s %s vs %s%s --move"):format(prefill, world:match " (.*)" or "", decode,
        world:find "kv_heads" and " kv_heads=8" or "")
      local out, err, code = run(line)
      assert.are.equal(0, code, err)
      assert.is_truthy(out:find("every element proved on all 16 ranks", 1, true), out)
    end
  end)

  for words, message in pairs {
    ["owners=0,0,0,0,0,0,0,1"] = "examples/prefill_decode.lua:31: tensor 'kv': axis 'request': the owner of element 7 is 1, but its pieces (engine 1) are 0 to 0",
    ["kv_heads=3"] = "examples/prefill_decode.lua:31: tensor 'kv': axis 'heads': 3 units cannot have equally many copies for tp 8; nearest: 6 or 9 pieces",
  } do
    it("are refused with " .. words, function()
      local _, err, code = run(("build/moongrid plan %s --world 16 %s"):format(prefill, words))
      assert.are.same({ "moongrid: " .. message .. "\n", 1 }, { err, code })
    end)
  end
end)

describe("experts", function()
  local recipe = "examples/experts.lua"
  local loads = "loads=31,12,20,17,25,28,14,13,40,11,19,16,52,15,18,21"
  local small = "hidden=4 ffn=6 layers=2"

  -- The experts of each rank of ep.
  local function shares(params)
    local plan, list = mg.load(recipe):plan(8, params), {}
    for rank = 0, params.ep - 1 do
      list[rank + 1] = {}
      for _, run_of in ipairs(plan:tensor("up", rank).runs[2]) do
        for i = run_of[1], run_of[1] + run_of[2] - 1 do table.insert(list[rank + 1], i) end
      end
    end
    return list
  end

  for _, words in ipairs { "", " relabel=false" } do
    it("move as the page shows" .. words, function()
      local line = ("moongrid move %s --world 8 vs %s%s"):format(recipe, loads, words)
      assert.are.same({ shown(line), "", 0 }, { run("build/" .. line) })
    end)
  end

  it("stay where they can: no other names of the new shares move fewer bytes", function()
    local numbers = {}
    for n in loads:gmatch "%d+" do numbers[#numbers + 1] = math.tointeger(n) end
    local old, new = shares { ep = 4 }, shares { ep = 4, loads = numbers, relabel = false }
    local most = 0
    local function try(name, k)
      if k > 4 then
        local kept = 0
        for share = 1, 4 do
          for _, i in ipairs(new[share]) do
            for _, j in ipairs(old[name[share]]) do kept = kept + (i == j and 1 or 0) end
          end
        end
        most = math.max(most, kept)
      end
      for i = k, 4 do
        name[k], name[i] = name[i], name[k]
        try(name, k + 1)
        name[k], name[i] = name[i], name[k]
      end
    end
    try({ 1, 2, 3, 4 }, 1)
    local all = all_of(("%s --world 8 vs %s"):format(recipe, loads))
    local expert = (2 * 2048 + 2048) * 1024 * 2 * 4 * 2 -- bytes in up and down, all layers, on both ranks of dp
    assert.are.same({ (16 - most) * expert, most * expert }, { all.minimum, all.stay })
    assert.equal(all.minimum, all.sent)
  end)

  for _, line in ipairs { "%s vs %s %s", "%s vs %s %s relabel=false", "%s ep=8 vs %s %s ep=2", "%s ep=2 vs %s %s ep=8 --rounds" } do
    it("arrive on 8 ranks: " .. line:format("", "", "loads=..."), function()
      local out, err, code = support.launch(8, ("build/moongrid run %s %s --move"):format(recipe, line:format(small, small, loads)))
      assert.are.same({ "", 0 }, { err, code }, out)
      assert.truthy(out:find "^moved +2 tensors on mpi: .* every element proved on all 8 ranks\n$", out)
    end)
  end

  it("go on from owners that are given", function()
    local first = shares { ep = 4, owners = { 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0 } }
    assert.are.same({ { 12, 13, 14, 15 }, { 8, 9, 10, 11 }, { 4, 5, 6, 7 }, { 0, 1, 2, 3 } }, first)
  end)

  for line, message in pairs {
    ["experts=18"] = "examples/experts.lua:38: experts 18 is not a multiple of ep 4",
    ["loads=1,2,3"] = "examples/experts.lua:50: 3 loads for 16 experts",
    ["owners=1,2,3"] = "examples/experts.lua:57: tensor 'up': axis 'expert' has 3 owners, but its 16 elements need one each"
      .. "\nexamples/experts.lua:58: tensor 'down': axis 'expert' has 3 owners, but its 16 elements need one each",
    ["owners=1,2,3,4,0,1,2,3,0,1,2,3,0,1,2,3"] =
      "examples/experts.lua:57: tensor 'up': axis 'expert': the owner of element 3 is 4, but its pieces (ep 4) are 0 to 3"
      .. "\nexamples/experts.lua:58: tensor 'down': axis 'expert': the owner of element 3 is 4, but its pieces (ep 4) are 0 to 3",
    ["ep=3"] = "examples/experts.lua:38: experts 16 is not a multiple of ep 3",
  } do
    it("refuse " .. line, function()
      support.refuses(("plan %s --world 8 %s"):format(recipe, line), 1, "moongrid: " .. message)
    end)
  end
end)

describe("fsdp_tp", function()
  local recipe = "examples/fsdp_tp.lua"
  local there, back = "%s vs tp=4 fsdp=false %s", "%s tp=4 fsdp=false vs %s"

  it("takes the bytes that README.md shows", function()
    local line = ("moongrid move %s --world 8 vs tp=4 fsdp=false"):format(recipe)
    assert.are.same({ shown(line), "", 0 }, { run("build/" .. line) })
    local sent, stay = shown(("mpirun -n 8 moongrid run %s vs tp=4 fsdp=false --move"):format(recipe))
      :match "^moved +8 tensors on mpi: ([^,]*) sent, ([^,]*) stayed, in [%d.]+ s; every element proved on all 8 ranks\n$"
    assert.truthy(run("build/" .. line):find("\nin all +" .. stay:gsub("%p", "%%%0") .. " +" .. sent:gsub("%p", "%%%0") .. " "))
    local of_gather, of_move
    of_move, of_gather = run("build/moongrid move " .. back:format(recipe .. " --world 8", "")):match
      "\nin all +[%d.]+ %a+ +([%d.]+ %a+) .* ([%d.]+ %a+)\n$"
    assert.truthy(readme:find(("sends %s; by gather %s.\n"):format(of_move, of_gather), 1, true), of_move .. of_gather)
  end)

  -- The elements that a rank has, of their numbers in the whole; and how many.
  local function elements(plan, name, rank)
    local part, list, n = plan:tensor(name, rank), {}, 0
    local first = part.first or 0
    for _, rows in ipairs(part.runs[1]) do
      for i = rows[1], rows[1] + rows[2] - 1 do
        for _, columns in ipairs(part.runs[2] or { { 0, 1 } }) do
          for j = columns[1], columns[1] + columns[2] - 1 do
            if n >= first and n < first + part.elements then list[i << 20 | j] = true end
            n = n + 1
          end
        end
      end
    end
    return list, part.elements
  end

  -- The bytes that ranks need and do not have, element by element; those that would come if each gathered what is not there.
  local function by_hand(from, to)
    local before, after = mg.load(recipe):plan(8, from), mg.load(recipe):plan(8, to)
    local least, gather = 0, 0
    for _, name in ipairs(before.tensors) do
      local whole, size = {}, 0
      for rank = 0, 7 do
        for e in pairs((elements(before, name, rank))) do
          size = size + (whole[e] and 0 or 1)
          whole[e] = true
        end
      end
      for rank = 0, 7 do
        local has, n = elements(before, name, rank)
        local needs, some = elements(after, name, rank)
        for e in pairs(needs) do least = least + (has[e] and 0 or 2) end
        if some > 0 then gather = gather + 2 * (size - n) end
      end
    end
    return least, gather
  end

  local small = { hidden = 12, head = 3, ffn = 20, vocab = 44, layers = 2, pad = 8 }
  local function words(params)
    local list = {}
    for name, value in pairs(params) do list[#list + 1] = name .. "=" .. tostring(value) end
    table.sort(list)
    return table.concat(list, " ")
  end
  local function with(params)
    local all = {}
    for name, value in pairs(small) do all[name] = value end
    for name, value in pairs(params) do all[name] = value end
    return all
  end

  for _, case in ipairs {
    { {}, { tp = 4, fsdp = false } }, { { tp = 4, fsdp = false }, {} }, { {}, { tp = 4 } }, { { tp = 2 }, { tp = 4, fsdp = false } },
    { { fsdp = false }, { tp = 2 } }, { {}, { pad = 1 } },
  } do
    local from, to = with(case[1]), with(case[2])
    it(("goes with the fewest bytes: %s vs %s"):format(words(case[1]), words(case[2])), function()
      local least, gather = by_hand(from, to)
      local all = all_of(("%s --world 8 %s vs %s"):format(recipe, words(from), words(to)))
      assert.are.same({ least, least, gather }, { all.minimum, all.sent, all.gather })
    end)

    it(("arrives on 8 ranks: %s vs %s"):format(words(case[1]), words(case[2])), function()
      local out, err, code = support.launch(8, ("build/moongrid run %s %s vs %s --move"):format(recipe, words(from), words(to)))
      assert.are.same({ "", 0 }, { err, code }, out)
      assert.truthy(out:find "^moved +13 tensors on mpi: .* every element proved on all 8 ranks\n$", out)
    end)
  end

  for line, message in pairs {
    [there:format("", "type=f32")] = "tensor 'layer0_qkv' is bf16 on one side and f32 on the other",
    [there:format("layers=2", "")] = "tensor 'layer1_qkv' is only in the plan before the move; name those that move",
    [there:format("", "head=96")] = "examples/fsdp_tp.lua:34: tensor 'layer0_qkv': axis 'qkv': unit 96 does not divide part 0, 512 "
      .. "elements; nearest: 64 or 128",
    ["tp=8 head=128 vs"] = "examples/fsdp_tp.lua:34: tensor 'layer0_qkv': parts of tensor 1 differ along 'tp', which does "
      .. "not cut tensor 5 of the flat; cut them evenly, or put these tensors into different flats",
  } do
    it("refuses " .. line, function()
      support.refuses(("move %s --world 8 %s"):format(recipe, line), 1, "moongrid: " .. message)
    end)
  end
end)
