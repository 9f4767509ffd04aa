-- SPDX-License-Identifier: MIT
--
-- Shared by the specs of the layers: messages(files, before, cases) makes tests of refusals, which are compared
-- whole, with the position of the caller; unprovoked(file) lists the refusals that no case has provoked so far;
-- groups(family) lists all groups.
--
--   files   of tests/golden/layers, with blanks between them: every refusal in their text has to have its case
--   before  Lua text before each case, in which H, M, D, L and J are the layers
--   cases   { what is refused, Lua text, message?; words = or never = in the message, would = texts that pass }

local mg = require "moongrid"
local HyperCommGrid = require "layers.hyper_comm_grid"
local ProcessGroupMesh = require "layers.process_group_mesh"
local DeviceMesh = require "layers.device_mesh"
local MeshLayout = require "layers.mesh_layout"
local mesh_utils = require "layers.jax_mesh"

local M = {}

local folder = "tests/golden/layers/"

-- The formats of the refusals of layers (not of moongrid) while a function runs.
local function formats_of(fn)
  local said = {}
  debug.sethook(function()
    local called = debug.getinfo(2, "Su")
    if not called.isvararg or called.source:sub(1, #folder + 1) ~= "@" .. folder then return end
    local _, format = debug.getlocal(2, -1)
    if type(format) == "string" then said[format] = true end
  end, "c")
  fn()
  debug.sethook()
  return said
end

-- The message that a program "s.lua" of one line gets; nil if it succeeds.
local function refusal(text)
  local ok, said = pcall(assert(load("local H, M, D, L, J, mg = ... " .. text, "@s.lua")),
    HyperCommGrid, ProcessGroupMesh, DeviceMesh, MeshLayout, mesh_utils, mg)
  if ok then return nil end
  return said
end

local provoked = {} -- formats, by all cases of all layers

-- The formats of a file that no case has provoked; how many formats it has.
function M.unprovoked(file)
  local missing, n = {}, 0
  local text <close> = assert(io.open(folder .. file))
  for format in text:read("a"):gmatch 'refuse%(%s*"([^"]+)"' do
    n = n + 1
    if not provoked[format] then missing[#missing + 1] = format end
  end
  return table.concat(missing, "\n"), n
end

function M.messages(files, before, cases)
  for _, case in ipairs(cases) do
    it("refuses " .. case[1], function()
      local said = refusal(before .. case[2])
      assert.is_truthy(said, "accepted")
      if case[3] then assert.are.equal("s.lua:1: " .. case[3], said) end
      assert.are.equal("s.lua:1: ", said:sub(1, 9), "the position is not the caller's: " .. said)
      for _, word in ipairs(case.words or {}) do
        assert.is_truthy(said:find(word, 1, true), ("'%s' lacks: %s"):format(said, word))
      end
      for _, word in ipairs(case.never or {}) do
        assert.is_nil(said:find(word, 1, true), ("'%s' has: %s"):format(said, word))
      end
    end)
    if case.would then
      it("refuses " .. case[1] .. ", and takes what it suggests", function()
        for _, text in ipairs(case.would) do assert.is_nil(refusal(before .. text)) end
      end)
    end
  end

  it("refuses in every place of its text that does", function()
    local said = formats_of(function()
      for _, case in ipairs(cases) do refusal(before .. case[2]) end
    end)
    for format in pairs(said) do provoked[format] = true end
    local all = 0
    for file in files:gmatch "%S+" do
      local missing, n = M.unprovoked(file)
      assert.are.equal("", missing)
      all = all + n
    end
    assert.is_true(all > 0)
  end)
end

-- All groups of a family.
function M.groups(family)
  local lists = {}
  for group, ranks in pairs(family) do lists[group + 1] = ranks end
  return lists
end

return M
