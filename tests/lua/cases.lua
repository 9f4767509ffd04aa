-- SPDX-License-Identifier: MIT
--
-- Cases of one line for specs of the vocabulary: each is a program "v.lua" that sees the names of a scene. scene()
-- makes these names anew for each case. Loaded with busted's names.

return function(scene)
  local M = {}

  local function run(code) return pcall(assert(load(code, "@v.lua", "t", setmetatable(scene(), { __index = _G })))) end

  -- Each case: { an expression, the values it has ... }
  function M.gives(cases)
    for _, case in ipairs(cases) do
      it(case[1], function()
        local got = table.pack(run("return " .. case[1]))
        assert.are.same(table.pack(true, table.unpack(case, 2, case.n or #case)), got)
      end)
    end
  end

  -- Each case: { statements, the message after the script's own position }
  function M.refuses(cases)
    for _, case in ipairs(cases) do
      it("refuses " .. case[1], function()
        local ok, message = run(case[1])
        assert.is_false(ok)
        assert.are.equal("v.lua:1: " .. case[2], message)
      end)
    end
  end

  return M
end
