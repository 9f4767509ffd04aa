-- SPDX-License-Identifier: MIT
--
-- Saved plans: the output of `moongrid plan` can be given in place of a recipe, and has the digest that was saved.

local support = dofile("tests/lua/support.lua")
local run, read, file_of = support.run, support.read, support.file

local function refuses(line, code, message) support.refuses(line, code, "moongrid: " .. message) end

local megatron = "megatron --world 64 tp=2 pp=4 ep=2"

describe("a saved plan", function()
  for _, how in ipairs { "rules", "json" } do
    it("is shown, drawn and compared as its recipe, from --" .. how, function()
      local path = file_of(run(("build/moongrid plan %s --%s"):format(megatron, how)))
      for _, shown in ipairs { "plan @ --text", "plan @ --schedule", "plan @ --groups", "draw @ --family tp,pp", "why @ 0 9" } do
        local before, after = shown:match "(.-)@(.*)"
        local words, recipe = before .. path .. after, before .. megatron .. after
        local was, is = run("build/moongrid " .. recipe), run("build/moongrid " .. words)
        assert.truthy(#was > 100)
        assert.are.equal((was:gsub(" tp=2 pp=4 ep=2", "")), (is:gsub(path, "megatron")))
      end
      assert.truthy(run(("build/moongrid diff %s vs %s"):format(path, megatron)):find("^no difference\n"))
      assert.are.equal(run(("build/moongrid plan %s --json"):format(megatron)),
        (run(("build/moongrid plan - --json < %s"):format(path))))
      os.remove(path)
    end)
  end

  it("is compared with another one", function()
    local a, b = file_of(run("build/moongrid plan megatron --world 64 tp=2 --rules")),
      file_of(run("build/moongrid plan megatron --world 64 tp=4 --rules"))
    local want = run "build/moongrid diff megatron --world 64 tp=2 vs tp=4 --rank 3"
    assert.are.equal(want, run(("build/moongrid diff %s %s --rank 3"):format(a, b)))
    assert.are.equal(want, run(("build/moongrid diff --rank 3 %s vs %s"):format(a, b)))
    for _, line in ipairs { "diff --rank=3 A B", "diff --color never A --rank 3 B", "diff A --rank 3 - < B", "diff - B --rank 3 < A" } do
      assert.are.equal(want, (run("build/moongrid " .. line:gsub("[AB]", { A = a, B = b }))), line)
    end
    assert.are.equal(run(("build/moongrid diff %s vs %s --json"):format(a, b)), (run(("build/moongrid diff --json %s %s"):format(a, b))))
    refuses(("diff %s megatron"):format(a), 2, ("argument 'megatron' is not of the form NAME=VALUE, and the recipe is '%s'; "
      .. "write 'vs' between the two sides, unless both are saved plans"):format(a))
    local _, _, code = run(("build/moongrid diff %s %s --exit-code"):format(a, b))
    assert.are.equal(1, code)
    os.remove(a)
    os.remove(b)
  end)

  it("has its world and parameters", function()
    local path = file_of(run("build/moongrid plan picotron --world 8 tp=2 --rules"))
    refuses(("plan %s --world 16"):format(path), 2, path .. " is a saved plan of 8 ranks, not of 16")
    refuses(("plan %s tp=2"):format(path), 2, path .. " is a saved plan; it takes no parameters and options of families")
    refuses(("ask %s --rank 0 tp_rank"):format(path), 1,
      path .. " is a saved plan, which has no queries and policies; ask needs the recipe")
    refuses(("diff %s vs"):format(path), 2,
      ("nothing follows 'vs', and %s is a saved plan, which has no parameters to change"):format(path))
    refuses(("plan %s --rank 8"):format(path), 1, "rank 8 is out of range; ranks are 0 to 7")
    refuses(("plan %s --rules --rank 0"):format(path), 2, "--rules prints the whole plan; it takes no --rank")
    os.remove(path)
  end)

  it("stands for a recipe in explain, check and run", function()
    local path = file_of(run "build/moongrid plan picotron --world 8 tp=2 --rules")
    local explained = run "build/moongrid explain picotron --world 8 tp=2 --family dp"
    assert.are.equal((explained:gsub("  made by [^\n]*\n", "")), (run(("build/moongrid explain %s --family dp"):format(path))))
    local checked = run "build/moongrid check picotron --world 8 tp=2 --law 'within(tp, dp)'"
    checked = checked:gsub("step +held\n", "") -- a saved plan has no step
    assert.are.equal(checked, (run(("build/moongrid check %s --law 'within(tp, dp)'"):format(path))))
    local out, _, code = run(("build/moongrid check %s --world 16"):format(path))
    assert.are.same({ 2, true }, { code, out:find(path .. " is a saved plan of 8 ranks, not of 16", 1, true) ~= nil })
    out = run(("build/moongrid run %s --backend dry"):format(path))
    local played = run "build/moongrid run picotron --world 8 tp=2 --backend dry" -- its first line knows the defaults
    assert.are.equal((played:gsub("^[^\n]*", "")), (out:gsub("^[^\n]*", "")))
    assert.truthy((run(("scripts/launch 8 build/moongrid run %s"):format(path))):find("proved         every communicator on all 8 ranks", 1, true))
    local _, err, bad = run(("scripts/launch 2 build/moongrid run %s"):format(path))
    assert.are.same({ 2, true }, { bad, err:find(path .. " is a saved plan of 8 ranks, not of 2", 1, true) ~= nil })
    os.remove(path)
  end)

  it("is not text for people", function()
    local path = file_of((run "build/moongrid plan picotron --world 8 tp=2 --text"))
    refuses("plan " .. path, 1, path .. ": this is the text of a plan, which is for people; save a plan with plan --rules or --json")
    os.remove(path)
  end)

  it("has a format that this moongrid reads, or is refused with what to do", function()
    local json = run "build/moongrid plan picotron --world 8 tp=2 --rules"
    local path = file_of((json:gsub('"format": 1', '"format": 7'):gsub('"moongrid": "[^"]*"', '"moongrid": "3.1.4"')))
    refuses("plan " .. path, 1, ("%s: it was written by moongrid 3.1.4 in format 7 of saved plans; moongrid %s reads format 1: "
      .. "plan it again (moongrid plan picotron --world N --rules), or use that moongrid"):format(path, support.version))
    os.remove(path)
  end)

  it("is refused with the place and what was expected where it was changed", function()
    local json = run "build/moongrid plan picotron --world 8 tp=2 --rules"
    local before = json:match('"rules": %[\n(.-)[^\n]*"family":"tp"')
    local path = file_of((json:gsub('("family":"tp","rule":{"inside":%[%[)2', "%13")))
    refuses("plan " .. path, 1, ("%s: rules[%d].rule: modes (3:1) x (4:2): rank 8 is out of range; ranks are 0 to 7"):format(path,
      select(2, before:gsub("\n", ""))))
    os.remove(path)
    path = file_of((json:gsub('"param":"tp_size","value":"2"', '"param":"tp_size","value":"4"')))
    local out, err, code = run("build/moongrid plan " .. path)
    assert.are.same({ "", 1 }, { out, code })
    assert.truthy(err:match("^moongrid: " .. path .. ": digest: '%x+', which is that of the rules, expected, not '%x+'\n$"), err)
    os.remove(path)
    run(("build/moongrid plan picotron --world 9 tp=2 --rules > %s.json"):format(path)) -- what a refused plan leaves
    refuses(("plan %s.json"):format(path), 2, ("plan needs --world N, the number of ranks: %s.json is not a saved plan"):format(path))
    os.remove(path .. ".json")
    path = file_of(run "build/moongrid plan picotron --world 8 tp=2 --json --rank 0")
    refuses("plan " .. path, 1, path .. ": this is the view of one rank; without --rank the whole plan is saved")
    os.remove(path)
  end)

  it("is small at any world", function()
    local text = run "build/moongrid plan megatron --world 2147483520 tp=8 pp=16 --rules"
    assert.truthy(#text > 1000 and #text < 16384)
    local path = file_of(text)
    assert.are.equal(text, run(("build/moongrid plan %s --rules"):format(path)))
    os.remove(path)
    assert.truthy(read "src/command/README.md":find("--rules > saved.json", 1, true))
  end)
end)
