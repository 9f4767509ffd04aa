-- SPDX-License-Identifier: MIT
--
-- Completion: the candidates of moongrid complete for a line, and the effect of the Tab key in real shells.

local support = dofile "tests/lua/support.lua"
local json = require "dkjson"
local run = support.run

-- offered(LINE): the candidates for its last word, without what is said about them
local function offered(line)
  local out, err, code = run("build/moongrid complete " .. line)
  assert.equal("", err)
  assert.equal(0, code)
  local list = {}
  for word in out:gmatch "([^\t\n]+)[^\n]*\n" do list[#list + 1] = word end
  return list, out
end

local function offers(line, list) assert.same(list, (offered(line)), line) end

local function has(list, word)
  for _, one in ipairs(list) do if one == word then return true end end
  return false
end

describe("moongrid complete", function()
  it("offers every subcommand with what it does, and help", function()
    local list, out = offered "''"
    for name, does in run("build/moongrid --help"):gmatch "\n  (%l+) [^\n]-  +(%l[^\n]*)" do
      assert.truthy(has(list, name), name)
      if name ~= "policy" then assert.truthy(out:find(name .. "\t" .. does, 1, true), name) end
    end
    assert.truthy(has(list, "help") and has(list, "--version"))
    offers("p", { "plan", "place", "policy" })
    offers("help do", { "doctor" })
    offers("", list)
  end)

  it("offers each option of a subcommand, as its own message lists them", function()
    for name in run("build/moongrid --help"):gmatch "\n  (%l+) " do
      local _, message = run("build/moongrid " .. name .. " --no-such-option-anywhere")
      local known = {}
      for option in message:match "known: ([%l%-, ]+)":gmatch "[%l-]+" do known[#known + 1] = "--" .. option end
      offers(name .. " --", known)
    end
    offers("plan --col", { "--color" })
  end)

  it("offers files and the recipe of --to where a subcommand takes a checkpoint", function()
    offers("reshard READ", { "README.md" })
    assert.truthy(has(offered "reshard x --to ''", "picotron"))
    offers("reshard x --to picotron tp", { "tp_size=", "tp=" })
    offers("reshard --to picotron --world 4 x tp=", { "tp=1", "tp=2", "tp=4" })
    offers("reshard x --to picotron --names READ", { "README.md" })
  end)

  it("offers the values of an option, which the subcommand takes", function()
    offers("plan --color ''", { "auto", "always", "never" })
    offers("plan --color=a", { "--color=auto", "--color=always" })
    offers("plan --world ''", {})
    for _, option in ipairs { "color", "backend", "carrier", "print" } do
      local list = offered(("run --%s ''"):format(option))
      assert.truthy(#list > 1, option)
      for _, value in ipairs(list) do
        local backend = option == "backend" and "" or "--backend dry"
        local _, err = run(("build/moongrid run picotron %s --world 4 --%s %s"):format(backend, option, value))
        assert.is_nil(err:find("--" .. option .. " is", 1, true), err)
      end
    end
    offers("draw picotron --family d", { "dp" })
    offers("draw -o examples/mo", { "examples/moe.lua" })
    offers("plan --params examples/pic", { "examples/pictures/" })
  end)

  it("offers bundled recipes with their doc, and files", function()
    local _, out = offered "plan picot"
    local info = json.decode((run "build/moongrid recipes picotron --json"))
    assert.equal("picotron\t" .. info.doc .. "\n", out)
    local list = offered "plan ''"
    for name in (run "build/moongrid recipes"):gmatch "\n  ([%w_]+)" do assert.truthy(has(list, name), name) end
    assert.truthy(has(list, "examples/"))
    assert.falsy(has(list, "README.md"))
    offers("plan examples/comp", { "examples/compose.lua" })
    offers("plan 'no*such[file'", {})
  end)

  it("offers the parameters of the recipe on the line under each name, but not again", function()
    offers("plan picotron t", { "tp_size=", "tp=" })
    offers("plan picotron tp=2 t", {})
    offers("plan picotron tp_size=2 t", {})
    offers("plan examples/moe.lua --world 8 e", { "ep=", "etp=" })
    offers("plan no/such/recipe.lua t", {})
    offers("recipes picotron t", {})
  end)

  it("offers the sizes that the recipe takes in the world of the line, with what stands before", function()
    offers("plan picotron --world 12 tp=", { "tp=1", "tp=2", "tp=3", "tp=4", "tp=6", "tp=12" })
    offers("plan picotron --world=12 tp=4 pp=", { "pp=1", "pp=3" })
    offers("plan picotron --world 12 tp=4 pp=3 cp=", { "cp=1" })
    offers("plan picotron --world 12 tp=1", { "tp=1", "tp=12" })
    offers("plan picotron --world 12 tp=5 pp=", { "pp=1", "pp=2", "pp=3", "pp=4", "pp=6", "pp=12" }) -- nothing fits
    offers("run picotron tp=", { "tp=1", "tp=2", "tp=4", "tp=8", "tp=16", "tp=32", "tp=64" })
    local list = offered "plan megatron --world 64 tp=4 ep="
    for _, word in ipairs(list) do
      local _, err, code = run("build/moongrid plan megatron --world 64 tp=4 " .. word)
      assert.equal(0, code, err)
    end
    assert.truthy(#list > 2)
  end)

  it("offers flags, and words of the doc that the recipe takes", function()
    offers("plan megatron use_sharp=", { "use_sharp=true", "use_sharp=false" })
    offers("plan megatron version=", { "version=0.19", "version=0.16", "version=0.17", "version=dev" })
    offers("plan megatron order=t", { "order=tp-cp-ep-dp-pp" })
    offers("plan megatron nccl_communicator_config_path=examples/mo", { "nccl_communicator_config_path=examples/moe.lua" })
    offers("plan megatron no_such=", {})
  end)

  it("offers families, queries, getters and their arguments, and the other side", function()
    offers("explain picotron pp", { "pp", "pp_dp", "pp_size=", "pp=" })
    offers("explain picotron pp pp", { "pp_size=", "pp=" })
    offers("ask megatron get_data_parallel_group with_c", { "with_context_parallel=" })
    offers("ask megatron get_data_parallel_group with_context_parallel=t", { "with_context_parallel=true" })
    offers("policy examples/moe.lua x", {})
    offers("diff picotron tp=2 v", { "vs", "vocab=" })
    offers("diff picotron tp=2 vs v", { "verl", "vllm", "vocab=" })
    offers("diff picotron --world 8 tp=2 vs tp=", { "tp=1", "tp=2", "tp=4", "tp=8" })
    offers("plan picotron v", { "vocab=" })
  end)

  it("says nothing of a line that is wrong", function()
    local broken = support.file "return recipe {"
    for _, line in ipairs { "nosuch ''", "nosuch --", "plan --nosuch x t", "plan " .. broken .. " t", "plan 'a\tb' t", "- -", "''" .. (" x"):rep(300) } do
      offers(line, {})
    end
  end)
end)

describe("the Tab key", function()
  local folder, root
  setup(function()
    folder, root = run "mktemp -d":gsub("\n", ""), io.popen "pwd":read "l"
    run(("cd %s; mkdir there 'my own'; cp %s/examples/moe.lua there; cp there/moe.lua 'my own'"):format(folder, root))
  end)
  teardown(function() run("rm -rf " .. folder) end)

  -- Types these lines into a shell on a terminal, in a folder with there/moe.lua and my own/moe.lua.
  local function typed(shell, lines)
    local file = assert(io.open(folder .. "/typed", "w"))
    file:write(table.concat(lines, "\n"), "\nexit\n")
    file:close()
    return (run(("cd %s && export PATH=%s/build:$PATH HOME=%s TERM=dumb; (cat typed; sleep 1) | timeout 30 script -qec '%s' /dev/null")
      :format(folder, root, folder, shell)))
  end

  -- Each line, completed and run, wrote what the whole line says.
  local lines = {
    ["recipes picotron"] = "recip\tpicot\t",
    ["plan picotron --world 8 tp_size=4 --json"] = "plan picot\t--wor\t8 tp_s\t4 --js\t",
    ["plan there/moe.lua --world 8 etp=2"] = "plan the\tmo\t--world 8 et\t2",
    ["plan picotron --world 8 tp=4 cp=2 pp=1"] = "plan picotron --world 8 tp=4 cp=2 pp=\t",
    ["plan 'my own/moe.lua' --world 8 etp=2 --json"] = "plan my\\ o\tmo\t--world 8 et\t2 --js\t",
    ["plan ~/'my own/moe.lua' --world 8 tp=2 etp=2"] = "plan ~/my\\ o\tmo\t--world 8 tp=2 et\t2",
    ["plan 'my own/moe.lua' --world 8 tp=8 etp=1"] = "plan \"my own/m\t --world 8 tp=8 et\t1",
  }
  local function completes(shell, before)
    local all, n = { before }, 0
    for _, keys in pairs(lines) do
      n = n + 1
      all[#all + 1] = ("moongrid %s > %d"):format(keys, n)
    end
    local seen = typed(shell, all)
    n = 0
    for whole in pairs(lines) do
      n = n + 1
      local want = run(("cd %s && export HOME=%s && %s/build/moongrid %s"):format(folder, folder, root, whole))
      assert.truthy(#want > 100)
      assert.equal(want, (run(("cat %s/%d"):format(folder, n))), whole .. "\n" .. seen)
    end
    run(("rm -f %s/[0-9]"):format(folder))
  end

  local function missing(shell) return select(3, run("command -v script && command -v " .. shell)) ~= 0 end

  it("completes in bash", function()
    if missing "bash" then return pending "no script(1) here" end
    completes("bash --norc --noprofile -i", ". " .. root .. "/scripts/make/complete/moongrid.bash")
  end)

  it("completes in zsh", function()
    if missing "zsh" then return pending "no zsh here" end
    completes("zsh -f -i", ("fpath=(%s/scripts/make/complete $fpath); autoload -U compinit; compinit -u -D"):format(root))
  end)

  it("completes in fish", function()
    if missing "fish" then return pending "no fish here" end
    local function fish(line)
      return (run(("cd %s && PATH=%s/build:$PATH HOME=%s fish --no-config -c 'source %s/scripts/make/complete/moongrid.fish; complete -C \"%s\"'")
        :format(folder, root, folder, root, line)))
    end
    assert.equal("plan\twhat groups a recipe makes\nplace\twhat groups cross on a machine\npolicy\tthe decision of a policy of a recipe\n", fish "moongrid p")
    assert.equal("tp=1\ntp=2\ntp=4\ntp=8\n", fish "moongrid plan picotron --world 8 tp=")
    assert.equal("there/moe.lua\n", fish "moongrid plan there/m")
    for _, word in ipairs { '\\"my own/m', "my\\\\ own/m" } do
      assert.equal("my own/moe.lua\n", fish("moongrid plan " .. word))
    end
    assert.equal("~/my own/moe.lua\n", fish "moongrid plan ~/my\\\\ own/m")
    assert.equal("tp=1\ntp=2\ntp=4\ntp=8\n", fish "moongrid plan ~/there/moe.lua --world 8 tp=")
    assert.equal("etp=\ttensor-parallel size of the experts\n", fish "moongrid plan my\\\\ own/moe.lua --world 8 et")
    assert.equal("", fish "moongrid nosuch p")
  end)
end)
