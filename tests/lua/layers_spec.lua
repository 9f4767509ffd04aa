-- SPDX-License-Identifier: MIT
--
-- The layers over moongrid for stock Lua: HyperCommGrid and ProcessGroupMesh. Every refusal in their text is provoked
-- and compared whole, with the position of the caller. Groups and their order are those of the originals.

package.path = "tests/golden/?.lua;lua/?.lua;" .. package.path

local mg = require "moongrid"
local HyperCommGrid = require "layers.hyper_comm_grid"
local ProcessGroupMesh = require "layers.process_group_mesh"

local layers = assert(loadfile("tests/lua/layers.lua", "t", _ENV))() -- with busted's names
local messages, groups, unprovoked = layers.messages, layers.groups, layers.unprovoked

local options = "(unique, first, lazy, high_priority, timeout, backend, nccl, cartesian, windows, device, parent, single)"
local name_rule = "(a letter or _, then letters, digits or _; at most 31)"

describe("HyperCommGrid", function()
  messages("hyper_comm_grid.lua", "local g = H.new(8, { 2, 4 }, { 'tp', 'dp' }) ", {
    { "a world that is none", "H.new('x', { 8 }, { 'tp' })", "world is string; it is a World or the number of ranks",
      would = { "H.new(8, { 8 }, { 'tp' })", "H.new(mg.world(8), { 8 }, { 'tp' })" } },
    { "a world that is left out", "H.new(nil, { 8 }, { 'tp' })", "world is nil; it is a World or the number of ranks" },
    { "a userdata that is not a world", "H.new(io.stdout, { 8 }, { 'tp' })", words = { "world is ", "it is a World or the number of ranks" } },
    { "a world without ranks", "H.new(0, { 8 }, { 'tp' })", "world: a world has 1 to 2147483647 ranks, not 0" },
    { "half a world", "H.new(8.5, { 8 }, { 'tp' })", words = { "world", "8.5" }, never = { "bad argument" } },
    { "a shape that is not a list", "H.new(8, 8, { 'tp' })", "shape is number; it takes a list" },
    { "names that are not a list", "H.new(8, { 8 }, 'tp')", "dim_names is string; it takes a list" },
    { "more sizes than names (hg-030)", "H.new(8, { 2, 2 }, { 'tp' })",
      "HyperCommGrid: 2 sizes for 1 dim_names; give one size for each name", would = { "H.new(8, { 2, 2 }, { 'tp', 'dp' })" } },
    { "more names than sizes (hg-031)", "H.new(8, { 2, 2 }, { 'tp', 'dp', 'pp' })",
      "HyperCommGrid: 2 sizes for 3 dim_names; give one size for each name" },
    { "an offset behind the world", "H.new(8, { 1 }, { 'tp' }, 8)", "rank_offset is 8; it is 0 to 7 in 8 ranks",
      would = { "H.new(8, { 1 }, { 'tp' }, 0)", "H.new(8, { 1 }, { 'tp' }, 7)" } },
    { "a negative offset (hg-034)", "H.new(8, { 2, 2 }, { 'tp', 'dp' }, -1)", "rank_offset is -1; it is 0 to 7 in 8 ranks" },
    { "half an offset", "H.new(8, { 1 }, { 'tp' }, 1.5)", "rank_offset is 1.5; it is 0 to 7 in 8 ranks" },
    { "an offset that is a table", "H.new(8, { 1 }, { 'tp' }, {})", words = { "rank_offset is ", "it is 0 to 7 in 8 ranks" }, never = { "0x" } },
    { "an unknown backend", "H.new(8, { 8 }, { 'tp' }, 0, 'ucc')", "backend 'ucc' is not known; there are nccl, gloo and mpi",
      would = { "H.new(8, { 8 }, { 'tp' }, 0, 'nccl')", "H.new(8, { 8 }, { 'tp' }, 0, 'gloo')", "H.new(8, { 8 }, { 'tp' }, 0, 'mpi')" } },
    { "a size of 0 (hg-041)", "H.new(8, { 0, 2 }, { 'tp', 'dp' })", "size 0 of dim 'tp' is not a size; sizes are integers of 1 or more",
      would = { "H.new(8, { 1, 2 }, { 'tp', 'dp' })" } },
    { "half a size", "H.new(8, { 2, 2.5 }, { 'tp', 'dp' })", "size 2.5 of dim 'dp' is not a size; sizes are integers of 1 or more" },
    { "a size that is a word", "H.new(8, { '2' }, { 'tp' })", "size 2 of dim 'tp' is not a size; sizes are integers of 1 or more" },
    { "a shape larger than the world (hg-032)", "H.new(8, { 4, 4 }, { 'tp', 'dp' })",
      "shape 4 x 4 is larger than the 8 ranks from rank_offset 0 on; make a size smaller or the world larger",
      would = { "H.new(8, { 4, 2 }, { 'tp', 'dp' })", "H.new(16, { 4, 4 }, { 'tp', 'dp' })" } },
    { "a shape larger than what is left (hg-033)", "H.new(8, { 2, 2 }, { 'tp', 'dp' }, 6)",
      "shape 2 x 2 is larger than the 2 ranks from rank_offset 6 on; make a size smaller or the world larger" },
    { "a shape beyond 64 bits", "H.new(8, { 1 << 40, 1 << 40 }, { 'tp', 'dp' })",
      "shape 1099511627776 x 1099511627776 is larger than the 8 ranks from rank_offset 0 on; make a size smaller or the world larger" },
    { "a name twice (hg-053)", "H.new(8, { 2, 4 }, { 'tp', 'tp' })", "HyperCommGrid: dim 'tp' occurs twice in the grid" },
    { "a name that is none", "H.new(8, { 8 }, { 'a b' })", "HyperCommGrid: 'a b' is not a dim name " .. name_rule },
    { "a view without a name", "g:register_view(5, { 8 }, { 'x' })", "the name of a view is number; it is a string" },
    { "a view that exists (hg-046)", "g:register_view('base', { 4, 2 }, { 'ep', 'edp' })",
      "view 'base' is registered already; choose another name", would = { "g:register_view('other', { 4, 2 }, { 'ep', 'edp' })" } },
    { "a view of another size (hg-043)", "g:register_view('e', { 3, 2 }, { 'ep', 'edp' })",
      "view 'e': ep 3 x edp 2 = 6 does not make the 8 ranks; nearest: ep 4, or a world of 6 ranks", would = { "g:register_view('e', { 4, 2 }, { 'ep', 'edp' })" } },
    { "a view with a size of 0 (hg-051)", "g:register_view('e', { 0, 8 }, { 'ep', 'edp' })",
      "view 'e': dim 'ep' has size 0; sizes are 1 to 2147483647" },
    { "a view with more sizes than names (hg-044)", "g:register_view('e', { 4, 2 }, { 'ep' })",
      "view 'e': 2 sizes for 1 dim_names; give one size for each name" },
    { "a view with a name twice (hg-045)", "g:register_view('e', { 4, 2 }, { 'ep', 'ep' })", "view 'e': dim 'ep' occurs twice in the grid" },
    { "a view whose name is not a name", "g:register_view('a b', { 8 }, { 'x' })",
      "view 'a b' needs another name: 'a b' is not a grid name " .. name_rule },
    { "a view with the name of groups", "g:create_pg 'tp' g:register_view('tp', { 8 }, { 'x' })",
      "view 'tp' needs another name: 'tp' is in the topology already; name yours otherwise" },
    { "a shared dim twice (hg-050)", "g:register_view('e', { 2, 4 }, { 'tp', 'dp' }, { 'tp', 'tp' })",
      "shared dim 'tp' of view 'e' is named twice; name it once", would = { "g:register_view('e', { 2, 4 }, { 'tp', 'dp' }, { 'tp' })" } },
    { "a shared dim that base lacks (hg-048)", "g:register_view('e', { 4, 2 }, { 'ep', 'edp' }, { 'ep' })",
      "shared dim of view 'e', in view 'base': unknown dim 'ep'; known: tp, dp" },
    { "a shared dim that the view lacks (hg-049)", "g:register_view('e', { 2, 4 }, { 'tp', 'edp' }, { 'dp' })",
      "shared dim of view 'e': unknown dim 'dp'; known: tp, edp" },
    { "a shared dim with other groups (hg-047)", "g:register_view('e', { 4, 2 }, { 'tp', 'edp' }, { 'tp' })",
      "shared dim 'tp' of view 'e' has other groups than in 'base': the families are not the same: 4 groups (2:1) x (4:2), 2 groups (4:1) x (2:4)" },
    { "shared dims that are not a list", "g:register_view('e', { 2, 4 }, { 'tp', 'dp' }, 'tp')", "shared_dims is string; it takes a list" },
    { "an unknown dim (hg-036)", "g:create_pg 'pp'", "view 'base': unknown dim 'pp'; known: tp, dp" },
    { "an unknown dim among others (hg-037)", "g:create_pg { 'tp', 'pp' }", "view 'base': unknown dim 'pp'; known: tp, dp" },
    { "a dim of another view (hg-052)", "g:register_view('e', { 4, 2 }, { 'ep', 'edp' }) g:create_pg('tp', { view = 'e' })",
      "view 'e': unknown dim 'tp'; known: ep, edp" },
    { "a dim twice (hg-040)", "g:create_pg { 'tp', 'tp' }", "view 'base': dim 'tp' is named twice" },
    { "dims that are not a list", "g:create_pg(5)", "dims is number; it takes a list" },
    { "a dim that is a number", "g:create_pg { 5 }", words = { "view 'base'", "dim", "number" } },
    { "an unknown view (hg-039)", "g:create_pg('tp', { view = 'x' })", "view 'x' is not registered; there are base",
      would = { "g:create_pg('tp', { view = 'base' })" } },
    { "an unknown view, naming all", "g:register_view('e', { 8 }, { 'x' }) g:create_pg('tp', { view = 'f' })",
      "view 'f' is not registered; there are base, e" },
    { "options that are not a table", "g:create_pg('tp', 'base')", "options are string; write { view = NAME }" },
    { "options of a rule beside view", "g:family('tp', { timeout = 5 })", "unknown option 'timeout'; here is only view" },
    { "an unknown option", "g:create_pg('tp', { timeot = 5 })",
      "options of group 'tp': unknown option 'timeot'; nearest is 'timeout' " .. options },
    { "an option out of range", "g:create_pg('tp', { timeout = -1 })", words = { "options of group 'tp': option 'timeout'", "-1" } },
    { "other options the second time", "g:create_pg 'tp' g:create_pg('tp', { timeout = 5, nccl = { max_ctas = 8 } })",
      "group 'tp' exists with options {}, not {nccl = {max_ctas = 8}, timeout = 5}; use the same, or destroy first",
      would = { "g:create_pg 'tp' g:create_pg 'tp'", "g:create_pg 'tp' g:destroy() g:create_pg('tp', { timeout = 5 })" } },
    { "a name that is taken", "g:create_pg('tp', { group_desc = 'x' }) g:create_pg('dp', { group_desc = 'x' })",
      "give these groups another group_desc: 'x' is in the topology already; name yours otherwise",
      would = { "g:create_pg('tp', { group_desc = 'x' }) g:create_pg('dp', { group_desc = 'y' })" } },
    { "the name of a view", "g:create_pg('tp', { group_desc = 'base' })", "give these groups another group_desc: 'base' is in the topology already; name yours otherwise" },
    { "a name that is none", "g:create_pg('tp', { group_desc = 'a b' })",
      "give these groups another group_desc: 'a b' is not a family name " .. name_rule },
    { "groups that do not exist (hg-038)", "g:get_pg 'tp'", "group 'tp' has not been created; call create_pg first",
      would = { "g:create_pg 'tp' g:get_pg 'tp'" } },
    { "the name of groups that do not exist", "g:name { 'dp', 'tp' }", "group 'tp_dp' has not been created; call create_pg first" },
    { "groups of a view that do not exist", "g:register_view('e', { 8 }, { 'x' }) g:get_pg('x', { view = 'e' })",
      "group 'e_x' has not been created; call create_pg first" },
    { "groups that were forgotten", "g:create_pg 'tp' g:destroy() g:get_pg 'tp'", "group 'tp' has not been created; call create_pg first" },
    { "nobody who asks", "g:is_current_rank_in_grid()", "rank is nil; say which rank of the world asks",
      would = { "g:is_current_rank_in_grid(0)" } },
    { "half a rank", "g:is_current_rank_in_grid(1.5)", "rank is 1.5; say which rank of the world asks" },
    { "a topology that has the names", "g:topology(g:topology())", "choose another prefix: 'base' is in the topology already; name yours otherwise",
      would = { "g:topology(g:topology(), 'second_')" } },
    { "a prefix that is none", "g:topology(nil, 'a b')", "choose another prefix: 'a bbase' is not a grid name " .. name_rule },
    { "a prefix that is a table", "g:topology(nil, {})", words = { "prefix" } },
    { "a topology that is none", "g:topology(5)", words = { "topology" }, never = { "choose another prefix" } },
    { "a topology of another world", "g:topology(mg.topology(mg.world(4)))", words = { "grid 'base' is of a world of 8 ranks, the topology of 4" },
      never = { "choose another prefix" } },
    { "a state that is none", "g:destroy(5)", words = { "state" } },
  })

  describe("groups", function()
    it("are those of the dims, in the grid's order whatever the order of the names", function()
      local grid = HyperCommGrid.new(8, { 2, 2, 2 }, { "tp", "cp", "dp" })
      assert.are.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } }, grid:get_rank_enum "tp")
      assert.are.same({ { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 } }, grid:get_rank_enum "cp")
      assert.are.same({ { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } }, grid:get_rank_enum { "dp" })
      assert.are.same({ { 0, 1, 4, 5 }, { 2, 3, 6, 7 } }, grid:get_rank_enum { "tp", "dp" })
      assert.are.same({ { 0, 1, 4, 5 }, { 2, 3, 6, 7 } }, grid:get_rank_enum { "dp", "tp" })
    end)

    it("are one of all ranks for all dims, and one for each rank for none (hg-021)", function()
      local grid = HyperCommGrid.new(4, { 2, 2 }, { "tp", "dp" })
      assert.are.same({ { 0, 1, 2, 3 } }, grid:get_rank_enum { "dp", "tp" })
      assert.are.same({ { 0 }, { 1 }, { 2 }, { 3 } }, grid:get_rank_enum {})
    end)

    it("lie behind the offset, and leave out the ranks around the grid", function()
      local grid = HyperCommGrid.new(8, { 2, 2 }, { "tp", "dp" }, 3)
      assert.are.same({ { 3, 4 }, { 5, 6 } }, grid:get_rank_enum "tp")
      assert.are.same({ { 3, 5 }, { 4, 6 } }, groups(grid:create_pg "dp"))
      for rank = 0, 7 do
        assert.are.equal(rank >= 3 and rank < 7, grid:is_current_rank_in_grid(rank))
        local state = mg.plan(grid:topology()):dry(rank)
        assert.are.equal(rank >= 3 and rank < 7, state.dp ~= nil)
        assert.are.equal(rank >= 3 and rank < 7, state.base ~= nil)
      end
    end)

    it("count from the start of a window, and name ranks of the world", function()
      local grid = HyperCommGrid.new(mg.world(16):window(8, 8), { 2, 2 }, { "tp", "dp" }, 2)
      assert.are.same({ { 10, 11 }, { 12, 13 } }, grid:get_rank_enum "tp")
      assert.is_true(grid:is_current_rank_in_grid(10))
      assert.is_false(grid:is_current_rank_in_grid(2))
    end)

    it("of 120 ranks agree with the coordinates", function()
      local grid = HyperCommGrid.new(120, { 2, 3, 4, 5 }, { "tp", "cp", "pp", "dp" })
      assert.are.equal(120, grid.size)
      for _, dims in ipairs { { "tp" }, { "cp", "dp" }, { "tp", "cp", "pp" } } do
        local named = {}
        for _, dim in ipairs(dims) do named[dim] = true end
        for _, ranks in ipairs(grid:get_rank_enum(dims)) do
          local first = grid.views.base.grid:coords(ranks[1])
          for i, rank in ipairs(ranks) do
            assert.is_true(i == 1 or rank > ranks[i - 1])
            for dim, at in pairs(grid.views.base.grid:coords(rank)) do
              if not named[dim] then assert.are.equal(first[dim], at) end
            end
          end
        end
      end
    end)

    it("have a name each, and may get a second one", function()
      local grid = HyperCommGrid.new(8, { 2, 4 }, { "tp", "dp" })
      local family = grid:create_pg { "dp", "tp" }
      assert.are.equal("tp_dp", grid:name { "tp", "dp" })
      assert.is_true(rawequal(family, grid:create_pg { "tp", "dp" }))
      assert.is_true(rawequal(family, grid:get_pg { "dp", "tp" }))
      grid:create_pg({ "tp", "dp" }, { group_desc = "all" })
      local plan = mg.plan(grid:topology())
      assert.are.same({ "tp_dp", "all" }, plan.families)
      assert.are.equal("tp_dp", plan:shares "all")
    end)

    it("keep the backend of the grid and their options", function()
      local grid = HyperCommGrid.new(8, { 2, 4 }, { "tp", "dp" }, 0, "gloo")
      assert.are.equal("mpi", grid.backend)
      grid:create_pg "tp"
      grid:create_pg("dp", { backend = "nccl" })
      local text = mg.plan(grid:topology()):text()
      assert.is_truthy(text:find("tp[^\n]*mpi"), text)
      assert.is_truthy(text:find("dp[^\n]*nccl"), text)
    end)

    it("of a view are its own, those of shared dims are the base's", function()
      local grid = HyperCommGrid.new(8, { 2, 2, 2 }, { "tp", "cp", "pp" })
      grid:register_view("expert", { 4, 1, 2 }, { "ep", "edp", "pp" }, { "pp" })
      assert.are.same({ { 0, 1, 2, 3 }, { 4, 5, 6, 7 } }, grid:get_rank_enum("ep", { view = "expert" }))
      assert.is_true(rawequal(grid:create_pg "pp", grid:create_pg("pp", { view = "expert" })))
      grid:create_pg({ "pp", "ep" }, { view = "expert" })
      assert.are.equal("expert_ep_pp", grid:name({ "ep", "pp" }, { view = "expert" }))
      local plan = mg.plan(grid:topology())
      assert.are.same({ "pp", "expert_ep_pp" }, plan.families)
      assert.are.same({ "base", "expert" }, plan.grids)
      plan:rehearse()
    end)

    it("of two grids meet in one topology", function()
      local world = mg.world(8)
      local actor, critic = HyperCommGrid.new(world, { 2, 2 }, { "tp", "dp" }), HyperCommGrid.new(world, { 4 }, { "tp" }, 4)
      actor:create_pg "tp"
      critic:create_pg "tp"
      local plan = mg.plan(critic:topology(actor:topology(nil, "actor_"), "critic_"))
      assert.are.same({ "actor_tp", "critic_tp" }, plan.families)
      assert.are.same({ 4, 5, 6, 7 }, plan:dry(5).critic_tp.ranks)
      assert.is_nil(plan:dry(5).actor_tp)
      plan:rehearse()
    end)

    it("are forgotten by destroy; views stay", function()
      local grid = HyperCommGrid.new(8, { 2, 4 }, { "tp", "dp" })
      grid:register_view("e", { 8 }, { "ep" })
      grid:create_pg("ep", { view = "e" })
      grid:destroy()
      assert.are.equal(0, #grid:topology())
      grid:create_pg("ep", { view = "e" })
      assert.are.equal("e_ep", grid:name("ep", { view = "e" }))
    end)

    it("of a million ranks are rules", function()
      local start = os.clock()
      local grid = HyperCommGrid.new(1 << 20, { 8, 2, 16, 4096 }, { "tp", "cp", "pp", "dp" })
      grid:register_view("e", { 64, 16, 1024 }, { "ep", "pp", "edp" })
      for _, dim in ipairs { "tp", "cp", "pp", "dp" } do grid:create_pg(dim) end
      grid:create_pg({ "ep", "pp" }, { view = "e" })
      assert.are.equal(1048573, mg.plan(grid:topology()):dry(1048573).rank)
      assert.is_true(os.clock() - start < 0.5)
    end)
  end)
end)

describe("ProcessGroupMesh", function()
  messages("process_group_mesh.lua", "local m = M.new(8, { 2, 2, 2 }) ", {
    { "a world that is none", "M.new('x', { 8 })", "world is string; it is a World or the number of ranks",
      would = { "M.new(8, { 8 })", "M.new(mg.world(8), { 8 })" } },
    { "a world without ranks", "M.new(0, { 8 })", "world: a world has 1 to 2147483647 ranks, not 0" },
    { "a userdata that is not a world", "M.new(io.stdout, { 8 })", words = { "world is ", "it is a World or the number of ranks" } },
    { "a size that is not a list", "M.new(8, 8)", "size is not a list; it needs the size of each axis", would = { "M.new(8, { 8 })" } },
    { "no size", "M.new(8, {})", "size is not a list; it needs the size of each axis" },
    { "sizes of a smaller world (cm-026)", "M.new(8, { 2, 2 })",
      "ProcessGroupMesh: axis_1 2 x axis_0 2 = 4 does not make the 8 ranks; nearest: axis_1 4, or a world of 4 ranks",
      would = { "M.new(8, { 2, 4 })", "M.new(4, { 2, 2 })" } },
    { "sizes of another world (cm-027)", "M.new(6, { 2, 4 })",
      "ProcessGroupMesh: axis_1 4 x axis_0 2 = 8 does not make the 6 ranks; nearest: axis_1 3, or a world of 8 ranks",
      would = { "M.new(6, { 2, 3 })", "M.new(8, { 2, 4 })" } },
    { "a size of 0 (cm-031)", "M.new(2, { 0, 2 })", "ProcessGroupMesh: dim 'axis_0' has size 0; sizes are 1 to 2147483647" },
    { "negative sizes", "M.new(8, { -2, -4 })", "ProcessGroupMesh: dim 'axis_1' has size -4; sizes are 1 to 2147483647" },
    { "half a size", "M.new(8, { 2.5 })", "ProcessGroupMesh: the size of dim 'axis_0' is 2.5, a float, not an integer or fill; a // b and math.floor(x) are integers" },
    { "two sizes to infer", "M.new(8, { mg.fill, mg.fill })",
      "ProcessGroupMesh: dims 'axis_1' and 'axis_0' are both to be inferred; only one can be", would = { "M.new(8, { 2, mg.fill })" } },
    { "a negative axis (cm-024)", "m:create_group_along_axis(-1)", "axis holds -1; it takes integers from 0 to 2",
      would = { "m:create_group_along_axis(0)", "m:create_group_along_axis(2)" } },
    { "an axis too large (cm-028)", "m:create_group_along_axis(5)", "axis holds 5; it takes integers from 0 to 2" },
    { "an axis too large, asked for", "m:get_group_along_axis { 0, 3 }", "axis holds 3; it takes integers from 0 to 2" },
    { "half an axis", "m:create_group_along_axis(1.5)", "axis holds 1.5; it takes integers from 0 to 2" },
    { "an axis by name", "m:create_group_along_axis { 'dp' }", "axis holds string; it takes integers from 0 to 2" },
    { "an axis that is not a list", "m:create_group_along_axis 'dp'", "axis is string; it takes a list of integers" },
    { "an axis twice (cm-032)", "m:create_group_along_axis { 0, 0 }", "axis holds 0 twice; name it once, ranks are in a group once",
      would = { "m:create_group_along_axis { 0 }" } },
    { "indices that are not a list", "m:create_group_along_axis(0, 1)", "indices_at_axis of axis 0 is number; it takes a list of integers",
      would = { "m:create_group_along_axis(0, { 1 })" } },
    { "an index too large (cm-029)", "m:create_group_along_axis(0, { 0, 5 })", "indices_at_axis of axis 0 holds 5; it takes integers from 0 to 1",
      would = { "m:create_group_along_axis(0, { 0, 1 })" } },
    { "an index twice", "m:create_group_along_axis(0, { 1, 1 })",
      "indices_at_axis of axis 0 holds 1 twice; name it once, ranks are in a group once" },
    { "lists for one axis (cm-030)", "m:create_group_along_axis(0, { { 0, 1 } })",
      "indices_at_axis of axis 0 holds table; it takes integers from 0 to 1" },
    { "an empty list of indices", "m:create_group_along_axis(0, {})", "indices_at_axis of axis 0 is empty; leave it out for all",
      would = { "m:create_group_along_axis(0)" } },
    { "fewer index lists than axes (cm-033)", "m:create_group_along_axis({ 0, 1 }, { { 0 } })",
      "1 index lists for 2 axes; give one list for each axis", would = { "m:create_group_along_axis({ 0, 1 }, { { 0 }, { 1 } })" } },
    { "indices of several axes that are not a list", "m:create_group_along_axis({ 0, 1 }, 5)", words = { "indices_at_axis", "number" } },
    { "an unknown backend", "m:create_group_along_axis(0, nil, 'ucc')", "backend 'ucc' is not known; there are nccl, gloo and mpi",
      would = { "m:create_group_along_axis(0, nil, 'nccl')", "m:create_group_along_axis(0, nil, 'gloo')" } },
    { "a rank outside", "m:get_group { 0, 8 }", "ranks_in_group holds 8; it takes integers from 0 to 7", would = { "m:get_group { 0, 7 }" } },
    { "a rank twice", "m:get_group { 0, 0 }", "ranks_in_group holds 0 twice; name it once, ranks are in a group once" },
    { "no ranks", "m:get_group {}", words = { "ranks_in_group", "empty" } },
    { "ranks that are not a list", "m:get_group(5)", "ranks_in_group is number; it takes a list of integers" },
    { "a rank before the window", "M.new(mg.world(8):window(4, 4), { 4 }):get_group { 3, 4 }", words = { "ranks_in_group", "3", "4 to 7" } },
    { "groups that are none", "m:name(5)", "5 was not created by this mesh, or destroyed; pass what its methods return" },
    { "groups of somebody else", "m:name(m.grid 'axis_0')",
      "Family of 4 groups of 2: (2:4) x (4:1) was not created by this mesh, or destroyed; pass what its methods return",
      would = { "m:name(m:create_group_along_axis(0))" } },
    { "groups that were forgotten", "local f = m:create_group_along_axis(0) m:destroy_mesh_process_groups() m:name(f)",
      "Family of 4 groups of 2: (2:4) x (4:1) was not created by this mesh, or destroyed; pass what its methods return" },
    { "the group of a rank outside", "m:get_ranks_in_group(m:create_group_along_axis(0), 8)", "axis_0: rank 8 is out of range (0 to 7)" },
    { "the group of nobody", "m:get_ranks_in_group(m:create_group_along_axis(0))", words = { "rank is nil" }, never = { "bad argument" } },
    { "the group of a word", "m:get_ranks_in_group(m:create_group_along_axis(0), 'x')", words = { "rank is x" }, never = { "bad argument" } },
    { "coordinates with fewer lists than axes", "M.get_coords_along_axis({ 0, 0 }, { 0, 1 }, { { 0 } })",
      "1 index lists for 2 axes; give one list for each axis", would = { "M.get_coords_along_axis({ 0, 0 }, { 0, 1 }, { { 0 }, { 1 } })" } },
    { "coordinates without lists", "M.get_coords_along_axis({ 0, 0 }, 0)", "0 index lists for 1 axes; give one list for each axis" },
    { "coordinates of an axis too large", "M.get_coords_along_axis({ 0, 0 }, 2, { 0 })", "axis holds 2; it takes integers from 0 to 1" },
    { "coordinates along an axis twice", "M.get_coords_along_axis({ 0, 0 }, { 0, 0 }, { { 0 }, { 1 } })",
      "axis holds 0 twice; name it once, ranks are in a group once" },
    { "coordinates of lists that are none", "M.get_coords_along_axis({ 0, 0 }, { 0 }, { 5 })", words = { "indices_at_axis", "number" } },
    { "coordinates of nothing", "M.get_coords_along_axis()", words = { "axis is nil" } },
    { "coordinates from a base that is none", "M.get_coords_along_axis(5, 0, { 0 })", words = { "base_coord is number" } },
    { "the coordinate of nobody", "m:coordinate()", "rank is nil; say which rank of the world asks", would = { "m:coordinate(0)" } },
    { "the coordinate of a word", "m:coordinate 'x'", "rank is x; say which rank of the world asks" },
    { "a coordinate of a dim too large", "m:coordinate(0, 3)", "dim holds 3; it takes integers from 0 to 2", would = { "m:coordinate(0, 2)" } },
    { "the size of a dim too large", "m:size(3)", "dim holds 3; it takes integers from 0 to 2", would = { "m:size(2)" } },
    { "the size of a dim by name", "m:size 'dp'", "dim holds string; it takes integers from 0 to 2" },
    { "a coordinate outside", "M.ravel({ 0, 2 }, { 2, 2 })", "coordinate 2 of axis 1 is not in 0 to 1; mode wrap or clip brings it there",
      would = { "M.ravel({ 0, 2 }, { 2, 2 }, 'wrap')", "M.ravel({ 0, 2 }, { 2, 2 }, 'clip')" } },
    { "a negative coordinate", "M.ravel({ -1, 0 }, { 2, 2 })", "coordinate -1 of axis 0 is not in 0 to 1; mode wrap or clip brings it there",
      would = { "M.ravel({ -1, 0 }, { 2, 2 }, 'wrap')", "M.ravel({ -1, 0 }, { 2, 2 }, 'clip')" } },
    { "half a coordinate", "M.ravel({ 0, 0.5 }, { 2, 2 })", words = { "coordinate 0.5 of axis 1" }, never = { "wrap or clip brings it there" } },
    { "half a coordinate, clipped", "M.ravel({ 0, 0.5 }, { 2, 2 }, 'clip')", words = { "coordinate 0.5 of axis 1" },
      never = { "wrap or clip brings it there" } },
    { "a coordinate that is a word, wrapped", "M.ravel({ 0, 'x' }, { 2, 2 }, 'wrap')", words = { "coordinate x of axis 1" } },
    { "a coordinate that is a word, clipped", "M.ravel({ 0, 'x' }, { 2, 2 }, 'clip')", words = { "coordinate x of axis 1" } },
    { "an axis of size 0, wrapped", "M.ravel({ 0, 1 }, { 2, 0 }, 'wrap')", words = { "shape" } },
    { "an axis of size 0, clipped", "M.ravel({ 0 }, { 0 }, 'clip')", words = { "shape" }, never = { "0 to -1" } },
    { "coordinates that are not a list", "M.ravel(5, { 2 })", words = { "coord" } },
    { "more axes than coordinates", "M.ravel({ 0 }, { 2, 2 })", "1 coordinates for 2 axes; give one for each",
      would = { "M.ravel({ 0, 0 }, { 2, 2 })" } },
    { "another mode", "M.ravel({ 0 }, { 2 }, 'fold')", "mode is fold; it is raise, wrap or clip",
      would = { "M.ravel({ 0 }, { 2 }, 'raise')", "M.ravel({ 0 }, { 2 }, 'wrap')", "M.ravel({ 0 }, { 2 }, 'clip')" } },
    { "a rank behind the mesh", "M.unravel(8, { 2, 2, 2 })", words = { "rank 8 is outside a mesh of 2 x 2 x 2" },
      would = { "M.unravel(7, { 2, 2, 2 })" } },
    { "a rank before the mesh", "M.unravel(-1, { 2, 2, 2 })", words = { "rank -1 is outside a mesh of 2 x 2 x 2" } },
    { "a rank that is a word", "M.unravel('x', { 2 })", "rank is x; it is an integer from 0", would = { "M.unravel(0, { 2 })" } },
    { "a shape with a 0", "M.unravel(0, { 0 })", words = { "shape" } },
    { "a shape that is not a list", "M.unravel(0, 5)", words = { "shape" } },
    { "a topology that has the names", "m:topology(m:topology())", "choose another prefix: 'mesh' is in the topology already; name yours otherwise",
      would = { "m:topology(m:topology(), 'second_')" } },
    { "a prefix that is none", "m:topology(nil, 'a b')", "choose another prefix: 'a bmesh' is not a grid name " .. name_rule },
    { "a topology that is none", "m:topology(5)", words = { "topology" }, never = { "choose another prefix" } },
    { "a topology of another world", "m:topology(mg.topology(mg.world(4)))", words = { "grid 'mesh' is of a world of 8 ranks, the topology of 4" },
      never = { "choose another prefix" } },
    { "a state that is none", "m:destroy_mesh_process_groups(5)", words = { "state" } },
  })

  describe("groups", function()
    local function mesh() return ProcessGroupMesh.new(16, { 2, 4, 2 }) end

    it("lie along axes, the last one fastest, and ascend whatever the order of the axes", function()
      local m = mesh()
      assert.are.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 8, 9 }, { 10, 11 }, { 12, 13 }, { 14, 15 } },
        groups(m:create_group_along_axis(2)))
      assert.are.same({ { 0, 2, 4, 6 }, { 1, 3, 5, 7 }, { 8, 10, 12, 14 }, { 9, 11, 13, 15 } }, groups(m:create_group_along_axis(1)))
      assert.are.same({ { 0, 1, 8, 9 }, { 2, 3, 10, 11 }, { 4, 5, 12, 13 }, { 6, 7, 14, 15 } }, groups(m:create_group_along_axis { 2, 0 }))
      assert.are.equal(16, #m:create_group_along_axis {})
      assert.are.equal(1, #m:create_group_along_axis { 0, 1, 2 })
    end)

    it("with indices hold the ranks there, which ascend", function()
      local m = mesh()
      local ends = m:create_group_along_axis(1, { 3, 0 })
      assert.are.same({ { 0, 6 }, { 1, 7 }, { 8, 14 }, { 9, 15 } }, groups(ends))
      assert.are.same({ { 0, 1, 6, 7 }, { 8, 9, 14, 15 } }, groups(m:create_group_along_axis({ 2, 1 }, { { 0, 1 }, { 3, 0 } })))
      assert.are.same({ 1, 7 }, m:get_ranks_in_group(ends, 7))
      assert.is_nil(m:get_ranks_in_group(ends, 2))
    end)

    it("with all indices are those without", function()
      local m = mesh()
      assert.is_true(rawequal(m:create_group_along_axis(1), m:create_group_along_axis(1, { 2, 0, 3, 1 })))
      assert.is_true(rawequal(m:create_group_along_axis { 1 }, m:get_group_along_axis(1)))
    end)

    it("of equal ranks are one, also of another axis (cm-007)", function()
      local m = ProcessGroupMesh.new(4, { 1, 4, 1 })
      assert.is_true(rawequal(m:create_group_along_axis(1), m:create_group_along_axis { 0, 1 }))
      assert.is_true(rawequal(m:create_group_along_axis(1), m:get_group { 3, 2, 1, 0 }))
      assert.are.equal(1, #m:topology())
    end)

    it("of another backend are others", function()
      local m = mesh()
      local device, host = m:create_group_along_axis(0), m:create_group_along_axis(0, nil, "gloo")
      assert.are_not.equal(m:name(device), m:name(host))
      assert.is_true(rawequal(host, m:create_group_along_axis(0, nil, "mpi")))
      assert.is_nil(mg.plan(m:topology()):shares(m:name(host)))
    end)

    it("have names in the topology, which a state answers to", function()
      local m = mesh()
      local pp, ends = m:create_group_along_axis(1), m:create_group_along_axis(1, { 0, 3 })
      m:create_group_along_axis { 2, 0 }
      local plan = mg.plan(m:topology())
      assert.are.same({ "axis_1", m:name(ends), "axis_0_2" }, plan.families)
      assert.are.equal("axis_1", m:name(pp))
      assert.are.same({ 0, 6 }, plan:dry(6)[m:name(ends)].ranks)
      assert.is_nil(plan:dry(4)[m:name(ends)])
      assert.are.same({ axis_0 = 0, axis_1 = 3, axis_2 = 0 }, plan:dry(6).mesh)
      plan:rehearse()
    end)

    it("of some ranks ascend, once", function()
      local m = mesh()
      local some = m:get_group { 9, 2, 5 }
      assert.are.same({ { 2, 5, 9 } }, groups(some))
      assert.is_true(rawequal(some, m:get_group { 5, 9, 2 }))
    end)

    it("in a window name ranks of the world", function()
      local m = ProcessGroupMesh.new(mg.world(8):window(4, 4), { 2, 2 })
      assert.are.same({ { 4, 6 }, { 5, 7 } }, groups(m:create_group_along_axis(0)))
      assert.are.same({ { 4, 7 } }, groups(m:get_group { 7, 4 }))
      assert.is_nil(m:coordinate(3))
      assert.are.same({ 1, 0 }, m:coordinate(6))
    end)

    it("are forgotten by destroy", function()
      local m = mesh()
      m:create_group_along_axis(0)
      m:destroy_mesh_process_groups()
      assert.are.equal(0, #m:topology())
      assert.are.equal("axis_0", m:name(m:create_group_along_axis(0)))
    end)

    it("of a million ranks are rules", function()
      local start = os.clock()
      local m = ProcessGroupMesh.new(1 << 20, { 4096, 16, 16 })
      for axis = 0, 2 do m:create_group_along_axis(axis) end
      m:create_group_along_axis({ 0, 2 }, { { 0, 4095 }, { 0 } })
      assert.are.same({ 4095, 15, 15 }, m:coordinate((1 << 20) - 1))
      mg.plan(m:topology())
      assert.is_true(os.clock() - start < 0.5)
    end)
  end)

  describe("coordinates", function()
    it("go to ranks and back", function()
      local m = ProcessGroupMesh.new(24, { 2, 3, 4 })
      assert.are.same({ 2, 3, 4 }, m:size())
      assert.are.equal(3, m:size(1))
      for rank = 0, 23 do
        local coord = m:coordinate(rank)
        assert.are.same(coord, ProcessGroupMesh.unravel(rank, m.shape))
        assert.are.equal(rank, ProcessGroupMesh.ravel(coord, m.shape))
        for axis = 0, 2 do assert.are.equal(coord[axis + 1], m:coordinate(rank, axis)) end
      end
      assert.is_nil(m:coordinate(24))
    end)

    it("outside wrap around or are clipped", function()
      assert.are.equal(5, ProcessGroupMesh.ravel({ 3, -1 }, { 2, 3 }, "wrap"))
      assert.are.equal(3, ProcessGroupMesh.ravel({ 3, -1 }, { 2, 3 }, "clip"))
    end)

    it("vary along axes, the last of the list fastest", function()
      assert.are.same({ { 0, 7, 0 }, { 1, 7, 0 } }, ProcessGroupMesh.get_coords_along_axis({ 5, 7, 0 }, 0, { 0, 1 }))
      assert.are.same({ { 0, 7, 2 }, { 1, 7, 2 }, { 0, 7, 0 }, { 1, 7, 0 } },
        ProcessGroupMesh.get_coords_along_axis({ 5, 7, 9 }, { 2, 0 }, { { 2, 0 }, { 0, 1 } }))
    end)
  end)
end)

it("the helpers of layers refuse in every place of their text that does", function()
  assert.are.equal("", (unprovoked "layer.lua"))
end)
