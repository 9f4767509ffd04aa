-- Tests of layout.lua at several sizes. Run them in the folder of layout.lua: busted --lua=lua5.4 layout_spec.lua

local mg = require "moongrid"

describe("layout.lua", function()
  local layout = mg.load "layout.lua"

  it("has these groups on 8 ranks", function()
    local plan = layout:plan(8, { tp = 2, pp = 2 })
    assert.same({ 4, 5 }, plan:family "tp":ranks(2)) -- the ranks of group 2
    assert.same({ 0, 4 }, plan:family "pp":ranks(0))
  end)

  for _, world in ipairs { 8, 64, 4096 } do
    it("keeps its laws on " .. world .. " ranks", function()
      local plan = layout:plan(world, { tp = 4, pp = 2 })
      plan:check()
      local machine = mg.open_machine("node:" .. world // 8 .. " gpu:8")
      for _, law in ipairs { "covers(dp)", "within(tp, machine.node)" } do assert(plan:law(law, machine)) end
    end)
  end

  it("refuses a size that does not fit", function()
    assert.error_matches(function() layout:plan(8, { tp = 3 }) end, "tp 3 does not divide the 8 ranks")
  end)
end)
