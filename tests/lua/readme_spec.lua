-- SPDX-License-Identifier: MIT
--
-- The examples in the READMEs and the pages beside them work as they stand: every block of C is compiled and run on
-- four ranks, every block of Lua is run. (tests/torch has those of Python, tutorial_spec the tutorials.)

local support = dofile "tests/lua/support.lua"
local run = support.run

-- The blocks of a README: { { language, text, line }, ... }.
local function blocks(path)
  local list, open, n = {}, nil, 0
  for line in io.lines(path) do
    n = n + 1
    local fence = line:match "^```(%w*)"
    if fence and open then
      open.text = table.concat(open, "\n") .. "\n"
      list[#list + 1], open = open, nil
    elseif fence then
      open = { language = fence, line = n }
    elseif open then
      open[#open + 1] = line
    end
  end
  assert(not open, path .. " has a block without an end")
  return list
end

-- A recipe with the fields that a block shows.
local function recipe_with(fields)
  return ([[
    return recipe {
      params = { tp = 2 },
      build = function(world, p)
        local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
        t.tp, t.dp = g "tp", g "dp"
        return t
      end,
      %s
    }]]):format(fields)
end

-- A trainer whose lines are those of the README, one block after the other.
local function trainer_with(parts, ending)
  local includes, lines = {}, {}
  for line in table.concat(parts):gmatch "[^\n]*\n" do
    table.insert(line:find "^#include" and includes or lines, line)
  end
  return table.concat(includes) .. [[
    #include <stdio.h>
    #include <stdlib.h>

    static void give_up(const char *why) { fprintf(stderr, "%s\n", why), exit(1); }

    int main(int argc, char **argv) {
      float    gradients[2] = { 1, 2 };
      int      n = 2, rank;
      MPI_Comm comm = MPI_COMM_WORLD;
      MPI_Init(&argc, &argv);
      MPI_Comm_rank(comm, &rank);
    ]] .. table.concat(lines) .. [[
      if (e.status) give_up(e.message);
      if (rank == 0) printf("%g\n", gradients[0]);
    ]] .. ending .. [[
      MPI_Finalize();
      return 0;
    }
    ]]
end

-- The pages with C, what their programs free at the end, and what rank 0 prints: sums over the two ranks of dp, and on the
-- second page a decision, 64 by two.
local programs = {
  ["README.md"] = { "", "2\n" },
  ["src/embedding.md"] = { [[
      if (rank == 0) printf("%d\n", (int)count.as.integer);
      mgrid_policy_free(p);
      mgrid_state_free(state);
      mgrid_backend_free(mpi);
      mgrid_plan_free(plan);
      mgrid_runtime_free(rt);
    ]], "2\n32\n" },
}

-- The pages whose C is quoted from files.
local quotes = {
  ["examples/trainer/README.md"] = { "examples/trainer/main.c", "examples/trainer/job.c" },
  ["src/survive/joining.md"] = { "examples/joining.c" },
}

-- How a block of Lua is run, by what it begins with: a command line for the file that has `text`.
local kinds = {
  { "^return recipe ", "build/moongrid check %s --world 8,64", function(text) return text end },
  { "^policy = ", "build/moongrid check %s --world 8,64", recipe_with },
  { "^  getters = ", "build/moongrid check %s --world 8,64", recipe_with },
  { "^build = ", "build/moongrid check %s --world 8,64", function(text) -- with the function of the host
    return "local function rack_of(rank) return rank // 4 end\nreturn recipe {\n" .. text .. "}\n"
  end },
  { '^local line = require "command', "d=$(mktemp -d); cp -r lua $d; cp %s $d/lua/command/sizes.lua; MOONGRID_LUA=$d/lua "
    .. "build/moongrid sizes megatron --world 16 tp=2 --least 4; code=$?; rm -r $d; exit $code", function(text) return text end },
  { '^local mg = require "moongrid"', "scripts/launch 4 lua5.4 %s", function(text) return text end },
}

local env = "export LUA_CPATH_5_4='build/?.so;;' LUA_PATH_5_4='lua/?.lua;;'; "

describe("what a README shows", function()
  local c, lua = {}, 0
  for path in run("scripts/files '*.md'"):gmatch "[^\n]+" do
    local own = path:find "^examples/tutorial/" -- tutorial_spec runs these
    for _, block in ipairs(own and {} or blocks(path)) do
      local where = ("%s:%d"):format(path, block.line)
      if block.language == "c" then
        c[path] = c[path] or {}
        table.insert(c[path], block.text)
      elseif block.language == "lua" then
        lua = lua + 1
        it("works: " .. where, function()
          local known = false
          for _, kind in ipairs(kinds) do
            if block.text:find(kind[1]) then
              known = true
              local file = support.file(kind[3](block.text))
              local out, err, code = run(env .. kind[2]:format(file))
              assert.equal(0, code, out .. err)
            end
          end
          assert.is_true(known, "readme_spec does not know how to run this block")
        end)
      end
    end
  end

  it("has Lua and C in it", function()
    assert.is_true(lua >= 4)
    for path in pairs(c) do assert.truthy(programs[path] or quotes[path], "readme_spec does not know how to run the C of " .. path) end
    for path in pairs(programs) do assert.truthy(c[path], path) end
  end)

  for path, files in pairs(quotes) do
    it("is in the files: the C of " .. path, function()
      local source = {}
      for i, file in ipairs(files) do source[i] = assert(io.open(file)):read "a" end
      source = table.concat(source)
      for _, text in ipairs(c[path]) do
        for part in (text .. "\n\n"):gmatch "(.-)\n\n" do assert.truthy(source:find(part, 1, true), part) end
      end
    end)
  end

  for path, program in pairs(programs) do
    it("compiles, and runs on four ranks: the C of " .. path, function()
      if select(3, run "scripts/mpi --module") ~= 0 then return pending "no MPI here" end
      local layout
      for _, block in ipairs(blocks "src/embedding.md") do
        if block.text:find "^policy = " then layout = recipe_with(block.text) end
      end
      local folder = run "mktemp -d":gsub("\n", "")
      local function write(name, text)
        local file = assert(io.open(folder .. "/" .. name, "w"))
        file:write(text)
        file:close()
      end
      write("layout.lua", layout)
      write("trainer.c", trainer_with(c[path], program[1]))
      local root = run "pwd":gsub("\n", "")
      local _, err, code = run(("cc -std=c11 -Wall -Wextra -Wpedantic -Werror %s/trainer.c -o %s/trainer -I%s/src -L%s/build "
        .. "-lmoongrid_mpi -lmoongrid -Wl,-rpath,%s/build $(pkg-config --cflags --libs "
        .. "$(scripts/mpi --module))"):format(folder, folder, root, root, root))
      assert.equal("", err)
      assert.equal(0, code)
      local out
      out, err, code = run(("cd %s && %s/scripts/launch 4 ./trainer tp=2"):format(folder, root))
      run("rm -r " .. folder)
      assert.equal(program[2], out, err)
      assert.equal(0, code)
    end)
  end
end)

describe("the pages", function()
  local pages = {}
  for path in run("scripts/files '*.md'"):gmatch "[^\n]+" do
    local file = assert(io.open(path))
    pages[path] = file:read "a"
    file:close()
  end

  local function plain(text) return (("\n" .. text):gsub("\n```.-\n```", "")) end

  -- The anchors of a page, as GitHub makes them of its headings.
  local function anchors(text)
    local list = {}
    for heading in plain(text):gmatch "\n#+ ([^\n]*)" do
      list[heading:gsub("%[([^%]]*)%]%([^)]*%)", "%1"):lower():gsub("[^%w%-_ ]", ""):gsub(" ", "-")] = true
    end
    return list
  end

  it("link what is there, and headings that are there", function()
    local dead = {}
    for path, text in pairs(pages) do
      for link in plain(text):gmatch "%]%(([^)%s]+)%)" do
        local file, anchor = link:match "^([^#]*)#?(.*)$"
        local to = file == "" and path or (path:match "^.*/" or "") .. file
        while to:find "[^/]+/%.%./" do to = to:gsub("[^/]+/%.%./", "", 1) end
        local there = link:find "^%a+:" or io.open(to)
        if not there or (anchor ~= "" and pages[to] and not anchors(pages[to])[anchor]) then dead[#dead + 1] = path .. ": " .. link end
      end
    end
    table.sort(dead)
    assert.same({}, dead)
  end)

  it("are in the menu of the site, so none is shown as its source", function()
    local file = assert(io.open "scripts/release/site.lua")
    local menu = file:read "a"
    file:close()
    for path in pairs(pages) do
      local there = path:find "^%.github/" or menu:find('"' .. path .. '"', 1, true) -- a forge shows those
      assert.truthy(there, path .. " is not in scripts/release/site.lua")
    end
  end)

  it("make a site, in which each link leads somewhere", function()
    local folder = run "mktemp -d":gsub("\n", "")
    local _, err, code = run("lua5.4 scripts/release/site.lua " .. folder)
    local verbs = run("cat " .. folder .. "/docs/reference/verbs.md")
    run("rm -r " .. folder)
    assert.are.same({ "", 0 }, { err, code })
    assert.truthy(verbs:find('| `g "tp"` | `{0,1} {2,3} {4,5} {6,7}` | `Grid:along` |', 1, true), verbs)
    assert.truthy(verbs:find("| `timeout` | seconds", 1, true), verbs)
  end)

  it("have at most 45,000 words", function()
    local words = 0
    for _, text in pairs(pages) do words = words + select(2, text:gsub("%S+", "")) end
    assert.is_true(words <= 45000, words .. " words")
  end)

  it("say of everything public whether it stays", function()
    local promised, preview = pages["src/stability.md"]:match "\n## Promised\n(.-)\n## Preview\n(.-)\n## "
    local marked = {}
    for command in run "build/moongrid --help":gmatch "\n  (%l+)[^\n]+%(preview%)" do
      local of_step = command == "step" and "The price of a step" or "`" .. command .. "`" -- of step the price alone is
      assert.truthy(preview:find(of_step, 1, true), command)
      marked[#marked + 1] = command
    end
    assert.same({ "step", "calibrate", "blame" }, marked)
    assert.truthy(run "cat src/moongrid_step.h":find("price, a preview (src/stability.md)", 1, true))
    for module in run "ls src/python/moongrid":gmatch "([^\n]+)%.py\n" do
      local name = "moongrid" .. (module:find "^_" and "" or "." .. module)
      assert.truthy(promised:find("`" .. name .. "`", 1, true), name)
    end
  end)

  it("have every field of plan --json", function()
    local said = {}
    for name in pages["src/command/plan-json.md"]:gmatch "`%.?([%l%d_]+)`" do said[name] = true end
    local named = { params = 1, grids = 1, families = 1, tensors = 1, options = 1, by_family = 1, coords = 1 } -- have names as keys
    local closed = { rules = 1, params = 1, options = 1, coords = 1, by_family = 1 }
    local function walk(object, where, names)
      for key, one in pairs(object) do
        local path = where .. "." .. key
        if type(key) == "string" and not names then assert.is_true(said[key], path .. " is not on the page") end
        if type(one) == "table" and not closed[key] then walk(one, path, named[key]) end
      end
    end
    local recipe = support.file [[
      return recipe {
        params = { tp = 2 }, spares = 2, machine = "node:2 gpu:6", traffic = { tp = "2 GiB all_reduce" },
        concurrent = { "tp", "dp" },
        build = function(world, p)
          local g, t = grid(world, "tp-dp", { tp = p.tp, dp = fill }), topology(world)
          t.g = g
          for _, dim in ipairs { "tp", "dp" } do t[dim] = g(dim) end
          t.both, t.ring = g("tp", "dp"), g "dp":pairs "wrap"
          t.w = tensor { type = "bf16", axes = { { "layer", 3 } }, cut = { layer = "dp" } }
          within(t.tp, machine.node)
          return t
        end,
      }]]
    for _, line in ipairs { recipe .. " --world 12", "megatron --world 8 tp=2", "examples/fsdp_tp.lua --world 8 --rank 1" } do
      local out, err, code = run("build/moongrid plan " .. line .. " --json")
      assert.equal(0, code, err)
      walk(require "dkjson".decode(out), "plan")
    end
  end)
end)
