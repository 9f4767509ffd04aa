-- SPDX-License-Identifier: MIT
--
-- torch's DeviceMesh on moongrid (tests/golden/layers) and its layouts. Every refusal in their text is provoked and
-- compared whole. Groups, coordinates and meshes are those of the nested list from which a mesh is made.

package.path = "tests/golden/?.lua;lua/?.lua;" .. package.path

local mg = require "moongrid"
local DeviceMesh = require "layers.device_mesh"
local MeshLayout = require "layers.mesh_layout"

local layers = assert(loadfile("tests/lua/layers.lua", "t", _ENV))() -- with busted's names
local messages, groups = layers.messages, layers.groups
local init = DeviceMesh.init_device_mesh

local three = "DeviceMesh(dp=2, cp=2, tp=2)"
local name_rule = "(a letter or _, then letters, digits or _; at most 26)"
local form = " is not (sizes):(strides), as (2,2):(4,1)"
local even = "does not fill 8 places, each once; strides are multiples of smaller ones times their sizes"

-- All layouts of two sizes up to 3 with strides up to 7.
local function each_layout(fn)
  for a = 1, 3 do
    for b = 1, 3 do
      for s = 1, 7 do
        for t = 1, 7 do fn({ a, b }, { s, t }) end
      end
    end
  end
end

-- Are the integers from 0 to n - 1 in the lists, each once, and nothing else?
local function is_partition(lists, n)
  local seen, count = {}, 0
  for _, list in ipairs(lists) do
    for _, place in ipairs(list) do
      if seen[place] or place < 0 or place >= n then return false end
      seen[place], count = true, count + 1
    end
  end
  return count == n
end

describe("DeviceMesh", function()
  -- before each case: three dims of 2, what they were made with, and a layout
  local given = "local k = { mesh_dim_names = { 'dp', 'cp', 'tp' } } local m = D.init_device_mesh(8, { 2, 2, 2 }, k) "
    .. "local l = L.new '(2,2):(8,1)' "
  messages("device_mesh.lua mesh_root.lua mesh_layout.lua", given, {
    { "a world that is none", "D.init_device_mesh('cuda', { 8 })", "world is string; it is a World or the number of ranks",
      would = { "D.init_device_mesh(8, { 8 })", "D.init_device_mesh(mg.world(8), { 8 })" } },
    { "a world without ranks", "D.init_device_mesh(0, { 8 })", "world: a world has 1 to 2147483647 ranks, not 0" },
    { "a shape that is not a list", "D.init_device_mesh(8, 8)", "mesh_shape is number; it takes a list of sizes" },
    { "a shape without dims", "D.init_device_mesh(8, {})", "mesh_shape is empty; it takes the size of each dim" },
    { "a size of 0", "D.init_device_mesh(8, { 0 })", "size 0 of dim 0 is not a size; sizes are integers of 1 or more" },
    { "a size that is left to others", "D.init_device_mesh(8, { 2, -1 })", "size -1 of dim 1 is not a size; sizes are integers of 1 or more" },
    { "a shape larger than the world", "D.init_device_mesh(8, { 3, 4 })",
      "mesh_shape 3 x 4 is larger than the world of 8 ranks; make a size smaller or the world larger",
      would = { "D.init_device_mesh(8, { 2, 4 })", "D.init_device_mesh(12, { 3, 4 })" } },
    { "a shape beyond 64 bits", "D.init_device_mesh(8, { 1 << 40, 1 << 40 })",
      "mesh_shape 1099511627776 x 1099511627776 is larger than the world of 8 ranks; make a size smaller or the world larger" },
    { "names by position", "D.init_device_mesh(8, { 8 }, { 'dp' })", "unknown argument '1'; here are mesh_dim_names, backend_override",
      would = { "D.init_device_mesh(8, { 8 }, { mesh_dim_names = { 'dp' } })" } },
    { "keyword arguments that are none", "D.init_device_mesh(8, { 8 }, 'dp')", "the last argument is string; it takes a table of keyword arguments" },
    { "fewer names than dims", "D.init_device_mesh(8, { 2, 4 }, { mesh_dim_names = { 'dp' } })",
      "1 mesh_dim_names for 2 dims; give one name for each dim", would = { "D.init_device_mesh(8, { 2, 4 }, { mesh_dim_names = { 'dp', 'tp' } })" } },
    { "names that are not a list", "D.init_device_mesh(8, { 8 }, { mesh_dim_names = 'dp' })", "mesh_dim_names is string; it takes a list of names" },
    { "a name twice", "D.init_device_mesh(8, { 2, 4 }, { mesh_dim_names = { 'dp', 'dp' } })",
      "dim 'dp' occurs twice in a mesh; give one of them another name" },
    { "a name that is none", "D.init_device_mesh(8, { 8 }, { mesh_dim_names = { 'a b' } })", "'a b' is not a dim name " .. name_rule },
    { "a name that is a number", "D.init_device_mesh(8, { 8 }, { mesh_dim_names = { 5 } })", "'5' is not a dim name " .. name_rule },
    { "a name that is too long", "D.init_device_mesh(8, { 8 }, { mesh_dim_names = { ('x'):rep(27) } })",
      "'" .. ("x"):rep(27) .. "' is not a dim name " .. name_rule, would = { "D.init_device_mesh(8, { 8 }, { mesh_dim_names = { ('x'):rep(26) } })" } },
    { "backends that are not a table", "D.init_device_mesh(8, { 8 }, { backend_override = 'gloo' })", "backend_override is string; it takes a table by dim",
      would = { "D.init_device_mesh(8, { 8 }, { backend_override = { [0] = 'gloo' } })" } },
    { "a backend of no dim", "k.backend_override = { pp = 'gloo' } D.init_device_mesh(8, { 2, 2, 2 }, k)",
      "backend_override has 'pp'; it takes names of mesh_dim_names, or 0 to 2",
      would = { "k.backend_override = { tp = 'gloo', [0] = 'nccl' } D.init_device_mesh(8, { 2, 2, 2 }, k)" } },
    { "a backend of a dim behind the last", "D.init_device_mesh(8, { 8 }, { backend_override = { [1] = 'gloo' } })",
      "backend_override has '1'; it takes names of mesh_dim_names, or 0 to 0" },
    { "two backends of a dim", "k.backend_override = { tp = 'gloo', [2] = 'nccl' } D.init_device_mesh(8, { 2, 2, 2 }, k)",
      "backend_override has dim 2 by name and by number; give one of them" },
    { "an unknown backend", "m:_flatten('x', 'ucc')", "backend 'ucc' is not known; there are nccl, gloo and mpi",
      would = { "m:_flatten('x', 'nccl')", "m:_flatten('x', 'gloo')", "m:_flatten('x', 'mpi')", "m:_flatten('x', 'fake')" } },
    { "options of a backend that are none", "m:_flatten('x', { 'nccl', 5 })", "the options of a backend is number; it takes a table" },
    { "an unknown option of a backend", "m:_flatten('x', { 'nccl', { timeot = 5 } })",
      words = { "backend_override: unknown option 'timeot'; nearest is 'timeout'" }, would = { "m:_flatten('x', { 'nccl', { timeout = 5 } })" } },

    { "no ranks and no layout", "D.new(8)", "give either the ranks of a mesh, or _layout" },
    { "ranks and a layout", "D.new(8, { 0, 1 }, { _layout = { '8:1' } })", "give either the ranks of a mesh, or _layout",
      would = { "D.new(8, { 0, 1 })", "D.new(8, nil, { _layout = { '8:1' } })" } },
    { "ranks that are not a list", "D.new(8, 8)", "mesh is number; it takes a list of ranks, nested for several dims" },
    { "a list without ranks", "D.new(8, {})", "size 0 of mesh is not a size; sizes are integers of 1 or more" },
    { "an empty row", "D.new(8, { {}, { 0 } })", "size 0 of mesh is not a size; sizes are integers of 1 or more" },
    { "a ragged list", "D.new(8, { { 0, 1 }, { 2 } })", "mesh is ragged; lists of one depth are all as long as the first of them",
      would = { "D.new(8, { { 0, 1 }, { 2, 3 } })" } },
    { "ranks beside rows", "D.new(8, { { 0 }, 1 })", "mesh is ragged; lists of one depth are all as long as the first of them" },
    { "rows beside ranks", "D.new(8, { 0, { 1 } })", "mesh is ragged; lists of one depth are all as long as the first of them" },
    { "a rank outside (tm-074)", "D.new(4, { { 0, 1 }, { 2, 9 } })", words = { "mesh: rank 9", "out of range; ranks are 0 to 3" } },
    { "consecutive ranks outside", "D.new(4, { 2, 3, 4 })", words = { "mesh: rank 4", "out of range; ranks are 0 to 3" } },
    { "a rank before a window", "D.new(mg.world(8):window(4, 4), { 3, 4 })", words = { "mesh: rank 3", "4 to 7" } },
    { "a rank in two rows (tm-073)", "D.new(8, { { 0, 1 }, { 1, 2 } })", words = { "mesh: rank 1 occurs twice" } },
    { "ranks that are words", "D.new(8, { 'a', 'b' })", words = { "mesh", "string" } },
    { "groups in ascending order", "D.new(8, { 1, 0 }, { preserve_rank_order = false })",
      "preserve_rank_order is false; groups keep the order of the mesh here, so leave it out or sort the mesh",
      would = { "D.new(8, { 1, 0 }, { preserve_rank_order = true })", "D.new(8, { 1, 0 })" } },
    { "an argument of torch that is not known", "D.new(8, { 0 }, { _rank = 0 })",
      "unknown argument '_rank'; here are mesh_dim_names, backend_override, preserve_rank_order, _layout, _rank_map" },
    { "layouts that are not a list", "D.new(8, nil, { _layout = '8:1' })", "_layout is string; it takes a list of layouts" },
    { "no layout", "D.new(8, nil, { _layout = {} })", "_layout is empty; it takes a layout for each dim" },
    { "layouts that overlap (tm-084)", "D.new(8, nil, { _layout = { '(2):(1)', '(2):(1)' } })", "layout (2,2):(1,1) " .. even,
      would = { "D.new(8, nil, { _layout = { '(2):(2)', '(2):(1)' } })" } },
    { "a layout that is too large", "D.new(8, nil, { _layout = { '16:1' } })", "layout (16):(1) " .. even },
    { "a layout with a remainder", "D.new(8, nil, { _layout = { '3:1' } })", "layout (3):(1) " .. even,
      would = { "D.new(9, nil, { _layout = { '3:1' } })", "D.new(8, nil, { _layout = { '3:1' }, _rank_map = { 5, 4, 3, 2, 1, 0 } })" } },

    { "a family that is none", "D.from_group(5, 8)", "group is number; it takes a family, or a list of them",
      would = { "D.from_group(m:get_group 'tp', 8)", "D.from_group({ m:get_group 'tp' }, 8)" } },
    { "several families without a mesh (tm-080)", "D.from_group({ m:get_group 'dp', m:get_group 'tp' }, 8)",
      "2 families and no mesh; pass the mesh whose dims have these groups",
      would = { "D.from_group({ m:get_group 'dp', m:get_group 'tp' }, 8, m('dp', 'tp'))" } },
    { "no family", "D.from_group({}, 8)", "0 families and no mesh; pass the mesh whose dims have these groups" },
    { "fewer families than dims", "D.from_group(m:get_group 'dp', 8, m)", "1 families for a mesh of 3 dims; pass one for each dim",
      would = { "D.from_group(m:get_all_groups(), 8, m)" } },
    { "groups that are not those of the mesh (tm-079)", "D.from_group(m:get_group 'tp', 8, { 0, 1 })",
      words = { "dim 0 of the mesh does not have these groups: ", "Family of 4 groups of 2: (2:1) x (4:2)" },
      would = { "D.from_group(mg.world(8):table({ { 0, 1 } }, 'partial'), 8, { 0, 1 })" } },
    { "groups of several sizes", "D.from_group(mg.world(3):table { { 0 }, { 1, 2 } }, 3)",
      words = { "groups of a mesh are of equal size and share no rank; these are not: Family" } },
    { "groups that share ranks", "D.from_group(m:_flatten():get_group():pairs(), 8)",
      words = { "groups of a mesh are of equal size and share no rank; these are not: Family" } },
    { "groups of another world", "D.from_group(m:get_group 'tp', 4)", words = { "of a world of 8 ranks, the topology of 4" } },
    { "too many names for groups", "D.from_group(m:get_group 'tp', 8, nil, { mesh_dim_names = { 'a', 'b' } })",
      "2 mesh_dim_names for 1 dims; give one name for each dim" },

    { "a slice by an unknown name (tm-022)", "m 'zz'", "'zz' is not a dim of " .. three .. "; there are dp, cp, tp" },
    { "a slice of a slice by a dim it lacks (tm-024)", "m 'tp' 'dp'", "'dp' is not a dim of DeviceMesh(tp=2); there are tp" },
    { "a slice of a slice by what was flattened", "m:_flatten 'all' m('dp', 'cp') 'all'",
      "'all' is not a dim of DeviceMesh(dp=2, cp=2); there are dp, cp", would = { "m:_flatten 'all' m 'all'" } },
    { "a slice by number", "m(0)", "'0' is not a dim of " .. three .. "; there are dp, cp, tp" },
    { "a slice without names", "m()", "a slice of " .. three .. " without names; there are dp, cp, tp" },
    { "a slice of a mesh without names (tm-023)", "D.init_device_mesh(8, { 2, 4 }) 'dp'",
      "DeviceMesh(2, 4) has no mesh_dim_names; slices are made by name" },
    { "a slice by a dim twice (tm-021)", "m('dp', 'dp')", "dim 'dp' occurs twice in a mesh; give one of them another name" },
    { "a slice that goes fast to slow (tm-020)", "m('cp', 'dp')",
      "dims cp, dp are not slow to fast; write them in the mesh's order, or use _concatenate",
      would = { "m('dp', 'cp')", "D._concatenate { m 'cp', m 'dp' }" } },
    { "a slice by a dim and what it is part of (tm-040)", "m('dp', 'cp'):_flatten 'fsdp' m('fsdp', 'cp')",
      "dims fsdp, cp overlap; a slice has each rank once", would = { "m('dp', 'cp'):_flatten 'fsdp' m('fsdp', 'tp')" } },

    { "to flatten a mesh without names (tm-041)", "D.init_device_mesh(8, { 2, 4 }):_flatten()",
      "DeviceMesh(2, 4) has no mesh_dim_names; what is flattened has names" },
    { "to flatten under the name of a dim (tm-037)", "m('dp', 'cp'):_flatten 'tp'",
      "'tp' is a dim of " .. three .. " already; choose another mesh_dim_name", would = { "m('dp', 'cp'):_flatten()" } },
    { "to flatten other dims under a name (tm-036)", "m('dp', 'cp'):_flatten 'x' m('cp', 'tp'):_flatten 'x'",
      "'x' was flattened before, with layout (4):(2) and options {}; choose another mesh_dim_name",
      would = { "m('dp', 'cp'):_flatten 'x' m('dp', 'cp'):_flatten 'x' m('cp', 'tp'):_flatten 'y'" } },
    { "to flatten with other options under a name", "m:_flatten('x', 'gloo') m:_flatten 'x'",
      "'x' was flattened before, with layout (8):(1) and options {backend = mpi}; choose another mesh_dim_name",
      would = { "m:_flatten('x', 'gloo') m:_flatten('x', 'mpi')" } },
    { "to flatten one dim with a backend under its name", "m 'tp':_flatten(nil, 'gloo')",
      "'tp' has its groups already; leave backend_override out, or choose another name",
      would = { "m 'tp':_flatten()", "m 'tp':_flatten('tp_cpu', 'gloo')" } },
    { "to flatten under a name that is none", "m:_flatten(5)", "'5' is not a dim name " .. name_rule },

    { "to unflatten to another size (tm-052)", "m:_unflatten('tp', { 3, 2 }, { 'a', 'b' })",
      "3 x 2 does not meet the boundaries of layout (2):(1); use its sizes, divisors or products of them" },
    { "to unflatten to fewer ranks", "m:_flatten 'x':_unflatten(0, { 2, 2 }, { 'a', 'b' })", "2 x 2 leaves places of layout (8):(1) out; their product is 8" },
    { "to unflatten across boundaries (tm-085)",
      "D.init_device_mesh(12, { 2, 2, 3 }, k)('dp', 'tp'):_flatten 'x':_unflatten(0, { 3, 2 }, { 'p', 'q' })",
      "3 x 2 does not meet the boundaries of layout (2,3):(6,1); use its sizes, divisors or products of them",
      would = { "D.init_device_mesh(12, { 2, 2, 3 }, k)('dp', 'tp'):_flatten 'x':_unflatten(0, { 2, 3 }, { 'p', 'q' })" } },
    { "to unflatten an unknown dim (tm-053)", "m:_unflatten('zz', { 2 }, { 'a' })", "'zz' is not a dim of " .. three .. "; there are dp, cp, tp" },
    { "to unflatten a dim behind the last (tm-054)", "m:_unflatten(3, { 2 }, { 'a' })", "3 is not a dim of " .. three .. "; dims are 0 to 2" },
    { "to unflatten with fewer names than sizes (tm-055)", "m:_unflatten('tp', { 2, 1 }, { 'a' })",
      "1 mesh_dim_names for 2 dims; give one name for each dim" },
    { "to unflatten without names", "m:_unflatten('tp', { 2, 1 })",
      "dims would have names in part; give mesh_dim_names, as the other dims of " .. three },
    { "to unflatten with names where there are none", "D.init_device_mesh(8, { 2, 4 }):_unflatten(1, { 2, 2 }, { 'a', 'b' })",
      "dims would have names in part; leave out mesh_dim_names, as the other dims of DeviceMesh(2, 4)",
      would = { "D.init_device_mesh(8, { 2, 4 }):_unflatten(1, { 2, 2 })" } },
    { "to unflatten to a name twice (tm-056)", "m:_unflatten('tp', { 2, 1 }, { 'a', 'a' })",
      "dim 'a' occurs twice in a mesh; give one of them another name" },
    { "to unflatten to the name of another dim (tm-057)", "m:_unflatten('tp', { 2, 1 }, { 'dp', 'tp' })",
      "dim 'dp' occurs twice in a mesh; give one of them another name", would = { "m:_unflatten('tp', { 2, 1 }, { 'ep', 'tp' })" } },
    { "to unflatten to sizes that are not a list", "m:_unflatten('tp', 2, { 'a' })", "mesh_sizes is number; it takes a list of sizes" },
    { "to unflatten to a size of 0", "m:_unflatten('tp', { 0, 2 }, { 'a', 'b' })",
      "size 0 of a part of layout (2):(1) is not a size; sizes are integers of 1 or more" },
    { "to unflatten with a backend of an old dim", "m:_unflatten('tp', { 2, 1 }, { 'a', 'b' }, { dp = 'gloo' })",
      "backend_override has 'dp'; it takes names of mesh_dim_names, or 0 to 1" },

    { "to concatenate a value that is not a list", "D._concatenate(m)", "device_mesh_list is nil; it takes a DeviceMesh" },
    { "to concatenate names", "D._concatenate { 'dp', 'tp' }", "device_mesh_list is string; it takes a DeviceMesh",
      would = { "D._concatenate { m 'dp', m 'tp' }" } },
    { "to concatenate a mesh without names", "D._concatenate { m, D.init_device_mesh(8, { 8 }) }",
      "DeviceMesh(8) has no mesh_dim_names; what is concatenated has names" },
    { "to concatenate meshes that overlap (tm-064)", "D._concatenate { m 'cp', m('dp', 'cp'):_flatten() }",
      "dims cp, dp_cp overlap; a mesh has each rank once" },
    { "to concatenate a dim twice", "D._concatenate { m('dp', 'cp'), m('cp', 'tp') }", "dim 'cp' occurs twice in a mesh; give one of them another name" },
    { "to concatenate meshes over other ranks (tm-066)",
      "D._concatenate { m 'dp', D.new(8, { 4, 5, 6, 7, 0, 1, 2, 3 }, { mesh_dim_names = { 'b' } }) }",
      "DeviceMesh(dp=2) and DeviceMesh(b=8) are not over the same ranks in one order; make them of one mesh" },
    { "to concatenate meshes over other windows", "D._concatenate { m 'dp', D.new(8, { 0, 1 }, { mesh_dim_names = { 'b' } }) }",
      "DeviceMesh(dp=2) and DeviceMesh(b=2) are not over the same ranks in one order; make them of one mesh" },

    { "no dim of several", "m:get_group()", three .. " has 3 dims; say which one", would = { "m 'tp':get_group()" } },
    { "an unknown dim", "m:get_group 'sp'", "'sp' is not a dim of " .. three .. "; there are dp, cp, tp" },
    { "an unknown dim, naming what was flattened", "m:_flatten 'all' m:get_group 'sp'", "'sp' is not a dim of " .. three .. "; there are dp, cp, tp, all" },
    { "a negative dim", "m:size(-1)", "-1 is not a dim of " .. three .. "; dims are 0 to 2" },
    { "a name in a mesh without names", "D.init_device_mesh(8, { 2, 4 }):name 'dp'", "dp is not a dim of DeviceMesh(2, 4); dims are 0 to 1" },
    { "nobody who asks", "m:get_coordinate()", "rank is nil; say which rank of the world asks", would = { "m:get_coordinate(0)" } },
    { "a name in the place of the rank", "m:get_local_rank 'tp'", "rank is tp; say which rank of the world asks", would = { "m:get_local_rank(0, 'tp')" } },
    { "a rank outside that asks", "m:get_local_rank(8, 'tp')", "mesh_tp: rank 8 is out of range (0 to 7)" },
    { "nobody who asks for one mesh of several", "m 'tp':mesh()", "rank is nil; say which rank of the world asks", would = { "m:mesh()", "m 'tp':mesh(3)" } },
    { "a rank outside that asks for one mesh of several", "m 'tp':mesh(8)", "mesh: rank 8 is out of range (0 to 7)" },

    { "a topology that has the names", "m:topology(m:topology())", "choose another prefix: 'mesh_dp' is in the topology already; name yours otherwise",
      would = { "m:topology(m:topology(), 'second_')" } },
    { "a prefix that is a table", "m:topology(nil, {})", "prefix is table; it takes a string" },
    { "a topology that is none", "m:topology(5)", "into is number; it takes a topology" },

    { "a layout of another text", "L.new '2x2'", "layout '2x2'" .. form, would = { "L.new '2:1'", "L.new '(2,):(1,)'", "L.new '(2, 3):(6, 1)'", "L.new '():()'" } },
    { "a word for a size", "L.new '(2,x):(1,2)'", "layout '(2,x):(1,2)'" .. form },
    { "a size that is not a list", "L.new(2, 1)", "sizes of a layout is number; it takes a list of sizes", would = { "L.new({ 2 }, { 1 })" } },
    { "strides that are not a list", "L.new({ 2 }, 1)", "strides of a layout is number; it takes a list of strides", would = { "L.new { 2 }" } },
    { "half a size, without strides", "L.new { 2.5, 2 }", "size 2.5 of a layout is not a size; sizes are integers of 1 or more" },
    { "groups of a layout that leaves places out", "L.new '(2,2,2):(1,12,4)':family(mg.world(24))",
      "layout (2,2,2):(1,12,4) does not fill 24 places, each once; strides are multiples of smaller ones times their sizes",
      would = { "L.new '(2,2,2):(1,8,4)':family(mg.world(16))" } },
    { "more sizes than strides", "L.new '(2,2):1'", "2 sizes and 1 strides in a layout; give one stride for each size", would = { "L.new '(2,2):(2,1)'" } },
    { "a layout with a size of 0", "L.new '0:1'", "size 0 of a layout is not a size; sizes are integers of 1 or more" },
    { "a stride of 0", "L.new '2:0'", "stride 0 of a layout is none; strides are 1 to 2147483647" },
    { "half a stride", "L.new({ 2 }, { 1.5 })", "stride 1.5 of a layout is none; strides are 1 to 2147483647" },
    { "too many places", "L.new({ 1 << 40, 1 << 40 }, { 1, 1 })", "a layout has more than 2147483647 places" },
    { "the complement of what overlaps", "L.new '(4,2):(1,1)':complement(16)",
      "layout (4,2):(1,1) has no complement; each stride must be at least the next smaller one times its size", would = { "l:complement(16)" } },
    { "the complement to no places", "l:complement(0)", "size 0 of the places to fill is not a size; sizes are integers of 1 or more" },
    { "a cut across boundaries", "L.new '(2,3):(6,1)':composition { 3, 2 }",
      "3 x 2 does not meet the boundaries of layout (2,3):(6,1); use its sizes, divisors or products of them",
      would = { "L.new '(2,3):(6,1)':composition { 2, 3 }", "L.new '(2,3):(6,1)':composition { 6 }" } },
    { "a cut with too many parts", "l:composition { 2, 2, 2 }",
      "2 x 2 x 2 does not meet the boundaries of layout (2,2):(8,1); use its sizes, divisors or products of them" },
    { "a cut with too few parts", "l:composition { 2 }", "2 leaves places of layout (2,2):(8,1) out; their product is 4" },
    { "a cut that is not a list", "l:composition(2)", "sizes is number; it takes a list of sizes" },
    { "a part of 0", "l:composition { 0 }", "size 0 of a part of layout (2,2):(8,1) is not a size; sizes are integers of 1 or more" },
  })

  describe("groups", function()
    local names = { mesh_dim_names = { "dp", "cp", "tp" } }

    it("are those of the dims, the last one fastest", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      assert.are.same({ { 0, 4 }, { 1, 5 }, { 2, 6 }, { 3, 7 } }, groups(mesh:get_group "dp"))
      assert.are.same({ { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 } }, groups(mesh:get_group(1)))
      assert.are.same({ { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 } }, mesh:_get_all_submeshes "tp")
      assert.are.equal(3, #mesh:get_all_groups())
    end)

    it("and coordinates and meshes are those of the nested list, whatever its ranks", function()
      math.randomseed(12)
      for _ = 1, 50 do
        local shape, n = {}, 1
        for i = 1, math.random(1, 3) do shape[i], n = math.random(1, 3), n end
        for _, size in ipairs(shape) do n = n * size end
        local world = n + math.random(0, 3)
        local order, ranks, place_of = {}, {}, {}
        for rank = 0, world - 1 do table.insert(order, math.random(1, #order + 1), rank) end
        if math.random() < 0.3 then table.sort(order) end
        table.move(order, 1, n, 1, ranks)
        for place, rank in ipairs(ranks) do place_of[rank] = place - 1 end
        local next_rank = 0
        local function nest(depth)
          if depth > #shape then
            next_rank = next_rank + 1
            return ranks[next_rank]
          end
          local rows = {}
          for i = 1, shape[depth] do rows[i] = nest(depth + 1) end
          return rows
        end
        local list = nest(1)
        local mesh = DeviceMesh.new(world, list)
        assert.are.same(shape, mesh.shape)
        assert.are.equal(n, mesh:size())
        assert.are.same(list, mesh:mesh())
        mg.plan(mesh:topology()):rehearse()
        for rank = 0, world - 1 do
          local at = mesh:get_coordinate(rank)
          assert.are.equal(place_of[rank] ~= nil, at ~= nil)
          local part, place = list, 0
          for dim, size in ipairs(at and shape or {}) do
            part, place = part[at[dim] + 1], place * size + at[dim]
            assert.are.equal(at[dim], mesh:get_local_rank(rank, dim - 1))
            local group, position = mesh:get_group(dim - 1):locate(rank)
            assert.are.equal(at[dim], position)
            assert.are.equal(size, #mesh:get_group(dim - 1):ranks(group))
          end
          if at then
            assert.are.equal(rank, part)
            assert.are.equal(place_of[rank], place)
          end
        end
      end
    end)

    it("of a slice are those of its dims, and nothing new is created", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      local slice = mesh("dp", "tp")
      assert.are.equal(3, #mesh:topology())
      assert.is_true(rawequal(mesh:get_group "tp", slice:get_group "tp"))
      assert.are.same({ "dp", "tp" }, slice.mesh_dim_names)
      assert.are.same({ { 2, 3 }, { 6, 7 } }, slice:mesh(7))
      assert.are.same({ 1, 1 }, slice:get_coordinate(7))
      assert.is_true(rawequal(mesh, mesh("dp", "cp", "tp")))
      assert.are.equal("DeviceMesh(dp=2, tp=2)", tostring(slice))
      assert.are.equal("(2):(4)", tostring(slice._layout[1]))
    end)

    it("that are flattened need not be neighbours, and are known by name", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      local flat = mesh("dp", "tp"):_flatten()
      assert.are.same({ { 0, 1, 4, 5 }, { 2, 3, 6, 7 } }, groups(flat:get_group()))
      assert.is_true(rawequal(flat, mesh("dp", "tp"):_flatten "dp_tp"))
      assert.is_true(rawequal(flat:get_group(), mesh "cp":get_group "dp_tp"))
      assert.are.equal("mesh_dp_tp", mesh "dp_tp":name())
      assert.is_true(rawequal(mesh, mesh:_flatten "all".root.mesh))
      assert.is_true(rawequal(flat, flat:_flatten()))
      assert.are.equal("(2,2):(4,1)", tostring(flat._layout[1]))
    end)

    it("that exist under another name share their communicators (tm-042)", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      mesh "tp":_flatten "sp"
      local plan = mg.plan(mesh:topology())
      assert.are.same({ "mesh_dp", "mesh_cp", "mesh_tp", "mesh_sp" }, plan.families)
      assert.are.equal("mesh_tp", plan:shares "mesh_sp")
    end)

    it("of several meshes of one name are numbered, where they differ", function()
      local world = init(32, { 32 }, { mesh_dim_names = { "world" } })
      local data = world:_unflatten(0, { 2, 8, 2 }, { "pp", "batch", "tp" })
      local dense = world:_unflatten("world", { 2, 16, 1 }, { "pp", "fsdp", "tp" })
      assert.are.equal("mesh_pp", dense:name "pp")
      assert.are.same({ "mesh_tp", "mesh_tp_1" }, { data:name "tp", dense:name "tp" })
      assert.are.same({ "mesh_world", "mesh_pp", "mesh_batch", "mesh_tp", "mesh_fsdp", "mesh_tp_1" }, mg.plan(world:topology()).families)
    end)

    it("of what is put together are those of the parts, in any order", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      local cat = DeviceMesh._concatenate { mesh "tp", mesh "dp" }
      assert.is_true(rawequal(mesh:get_group "dp", cat:get_group "dp"))
      assert.are.same({ { 2, 6 }, { 3, 7 } }, cat:mesh(2))
      assert.are.same({ { 0, 4, 1, 5 }, { 2, 6, 3, 7 } }, groups(cat:_flatten():get_group()))
      local other = init(8, { 4, 2 }, { mesh_dim_names = { "a", "b" }, backend_override = { b = "gloo" } })
      local both = DeviceMesh._concatenate { mesh "dp", other "b" }
      assert.are.equal("mesh_b", both:name "b")
      assert.is_truthy(mg.plan(mesh:topology()):text():find "mesh_b[^\n]*mpi")
    end)

    it("that exist make meshes, one for each group", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      local from = DeviceMesh.from_group(mesh:get_group "dp", 8, nil, { mesh_dim_names = { "d" } })
      assert.are.same({ 3, 7 }, from:mesh(7))
      assert.are.equal("(2):(1)", tostring(from._layout[1]))
      local some = DeviceMesh.from_group(mg.world(6):table({ { 5, 3, 1 } }, "partial"), 6)
      assert.are.same({ 2 }, some:get_coordinate(1))
      assert.is_nil(some:get_coordinate(0))
      assert.is_nil(some:mesh(0))
      local both = DeviceMesh.from_group({ mesh:get_group "dp", mesh:get_group "tp" }, 8, mesh("dp", "tp"), { mesh_dim_names = { "x", "y" } })
      assert.are.same({ { 2, 3 }, { 6, 7 } }, both:mesh(3))
      assert.are.same({ { 0, 1, 4, 5 }, { 2, 3, 6, 7 } }, groups(both:_flatten():get_group()))
      local t = both:topology(mesh:topology(), "from_")
      assert.are.equal("mesh_tp", mg.plan(t):shares "from_mesh_y")
    end)

    it("have the backends and options that are asked for", function()
      local mesh = init(8, { 2, 2, 2 }, { mesh_dim_names = { "dp", "cp", "tp" }, backend_override = {
        dp = "gloo", [1] = { "nccl", { is_high_priority_stream = true, config = { max_ctas = 4 } } }, tp = "fake" } })
      local text = mg.plan(mesh:topology()):text()
      assert.is_truthy(text:find("mesh_dp[^\n]*backend=mpi"), text)
      assert.is_truthy(text:find("mesh_cp[^\n]*high_priority"), text)
      assert.is_truthy(text:find("mesh_cp[^\n]*max_ctas=4"), text)
      assert.is_truthy(text:find("mesh_tp[^\n]*backend=none"), text)
      mesh:_flatten("x", { backend = "mpi", timeout = 5 })
      text = mg.plan(mesh:topology()):text()
      assert.is_truthy(text:find("mesh_x[^\n]*backend=mpi") and text:find("mesh_x[^\n]*timeout_us=5000000"), text)
    end)

    it("are left as they were by a refusal", function()
      local mesh = init(8, { 2, 2, 2 }, names)
      assert.is_false(pcall(mesh._unflatten, mesh, "tp", { 1, 2 }, { "a", "b" }, { b = { timeout = -1 } }))
      assert.is_false(pcall(mesh._flatten, mesh, "x", { timeout = -1 }))
      assert.are.equal(3, #mesh:topology())
      assert.is_false(pcall(mesh, "x"))
    end)

    it("in a window name ranks of the world, outside of it nobody has any", function()
      local window = mg.world(8):window(4, 4)
      local mesh = init(window, { 2, 2 }, { mesh_dim_names = { "dp", "tp" } })
      assert.are.same({ { 4, 5 }, { 6, 7 } }, mesh:mesh())
      assert.are.same({ 1, 0 }, mesh:get_coordinate(6))
      assert.is_nil(mesh:get_coordinate(3))
      assert.is_nil(mesh "tp":mesh(3))
      assert.are.same({ { 7, 5 }, { 6, 4 } }, DeviceMesh.new(window, { { 7, 5 }, { 6, 4 } }):mesh())
    end)

    it("of a million ranks are rules", function()
      local start = os.clock()
      local mesh = init(1 << 20, { 4096, 16, 16 }, names)
      mesh("dp", "tp"):_flatten()
      mesh:_unflatten("dp", { 64, 64 }, { "a", "b" })
      assert.are.same({ 4095, 15, 15 }, mesh:get_coordinate((1 << 20) - 1))
      mg.plan(mesh:topology())
      assert.is_true(os.clock() - start < 0.5)
    end)
  end)
end)

describe("MeshLayout", function()
  it("has the text that it is made of, without sizes of 1 and with runs joined", function()
    for text, want in pairs { ["2:1"] = "(2):(1)", ["(2,2):(2,1)"] = "(4):(1)", ["(2,1,3):(6,5,1)"] = "(2,3):(6,1)", ["1:7"] = "():()" } do
      assert.are.equal(want, tostring(MeshLayout.new(text)))
      assert.are.equal(MeshLayout.new(want), MeshLayout.new(text))
    end
  end)

  it("has the places of its sizes and strides, and knows whether copies of it fill others evenly", function()
    each_layout(function(sizes, strides)
      local layout, places, seen, ascend, twice = MeshLayout.new(sizes, strides), {}, {}, true, false
      for i = 0, sizes[1] - 1 do
        for j = 0, sizes[2] - 1 do
          local place = i * strides[1] + j * strides[2]
          ascend = ascend and (#places == 0 or place >= places[#places])
          twice, seen[place] = twice or seen[place] ~= nil, true
          places[#places + 1] = place
        end
      end
      assert.are.same(places, layout:all_ranks_from_zero())
      assert.are.equal(#places, layout:numel())
      for n = 1, 36 do
        if layout:check_orthogonal(n) then
          assert.is_true(is_partition(layout:global_ranks(n), n))
          assert.are.same(layout:global_ranks(n), groups(layout:family(mg.world(n))))
        end
      end
      if twice then assert.is_false(layout:check_orthogonal()) end
      if not ascend then assert.is_false(layout:check_sorted() and layout:check_orthogonal()) end
    end)
  end)

  it("lays places side by side where there are no strides, as torch does", function()
    assert.are.equal("(5):(1)", tostring(MeshLayout.new { 1, 5, 1 }))
    assert.are.equal(MeshLayout.new({ 2, 3 }, { 3, 1 }), MeshLayout.new { 2, 3 })
    assert.are.equal("():()", tostring(MeshLayout.new {}))
  end)

  it("has a complement also where groups leave places out, as torch has", function()
    local layout = MeshLayout.new({ 2, 2, 2 }, { 1, 12, 4 })
    assert.is_false(layout:check_orthogonal())
    assert.are.equal("(2):(2)", tostring(layout:complement(16)))
    assert.are.same({ { 0, 4, 12, 16, 1, 5, 13, 17 }, { 2, 6, 14, 18, 3, 7, 15, 19 } }, layout:global_ranks(16))
  end)

  it("is cut into parts that make it again", function()
    local layout = MeshLayout.new "(2,12):(24,1)"
    for _, sizes in ipairs { { 24 }, { 2, 12 }, { 2, 3, 4 }, { 6, 4 }, { 1, 2, 1, 12 }, { 2, 2, 2, 3 } } do
      local parts = layout:composition(sizes)
      for i, part in ipairs(parts) do assert.are.equal(sizes[i], part:numel()) end
      assert.are.equal(layout, MeshLayout.join(parts))
    end
  end)
end)
