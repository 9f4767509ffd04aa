---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of worlds, grids and families, in recipes and in the module: nothing here runs.
-- meta.lua has what holds for all annotations. Examples show the groups of 8 ranks: `g` is grid(world, "tp-dp-pp", { tp
-- = 2, dp = 2, pp = 2 }), `low` and `high` are grids "x-y" of 2 x 2 over the lower and the upper half of the world.
-- scripts/make/annotations.lua puts the examples into the manual and the site.

-- World -------------------------------------------------------------------------

---The ranks for a grid: a whole world, a window of consecutive ranks of a world, or some ranks in another order.
---`#world` is the number of ranks. Two worlds are equal if they have the same ranks of the same whole world in the same
---order.
---@class moongrid.World
---@field size integer number of ranks, 1 to 2147483647
---@field offset integer the first rank: 0, or that of a window. To read it for ranks in another order is an error; use `rank(0)`
local World = {}

---Return a window: consecutive ranks of this World. If this World is in another order, the window has the ranks at
---consecutive positions, and costs O(size). Families of a window are still families of the whole world.
---@param offset integer position of the first rank, 0 to self.size - 1
---@param size? integer number of ranks, 1 to self.size - offset; default: all from the offset on
---@return moongrid.World
function World:window(offset, size) end

---Return the ranks of this World, or some of them, in another order: that of a list; of a function, which returns the
---rank at a position; or of a family of one group, that of its members. The first rank of the order is at position 0 of
---grids over the result. Raises if a rank is in the order twice or is outside this World. If the order follows a rule
---of modes (every second rank, a transposed grid), families of such grids have rules, too. With any other order they
---are explicit lists, unless the lists are regular. O(size); O(modes) for a family of a grid.
---Example: `grid(world:order { 7, 6, 5, 4, 3, 2, 1, 0 }, "tp-dp", { tp = 2, dp = fill }) "tp"` is `{7,6} {5,4} {3,2} {1,0}`.
---@param ranks integer[]|moongrid.Family|fun(position: integer, size: integer): integer
---@return moongrid.World
function World:order(ranks) end

---@param position integer 0 to size - 1
---@return integer rank at this position
function World:rank(position) end

---Make a family from explicit lists, one for each group. O(members); regular lists become a rule, which costs nothing
---afterwards. Raises if the lists do not match `kind` or contain a rank outside this World, and for a World in another
---order. `groups` may also be a text with the lists as Python prints them: "[[0, 1], [2, 3]]", one list per line,
---tuples, range(0, 8, 2).
---Example: `world:table { { 0, 7, 1 }, { 2, 3, 4, 5, 6 } }` is `{0,7,1} {2,3,4,5,6}`.
---@param groups integer[][]|string ranks of each group, in order; no group is empty
---@param kind? "partition"|"partial"|"cover" each rank of this World is in the lists once (default), at most once, or any number of times
---@return moongrid.Family
function World:table(groups, kind) end

---Make a family from modes, each {size, stride}, the first one fastest: the modes `inside` give the members of a group,
---the modes `index` the first members of the groups. `modes` may also be a text: a rule as `family:explain` returns it,
---"(2:1) x (4:2) + 8", or sizes and strides as in CuTe, "(2,4):(1,8) x 2:4". torch's layouts look the same, but their
---last mode is the fastest: write them from the right. Raises if two members are the same rank, if a rank is outside
---this World, and for a World in another order. O(modes); modes that interleave, as (3:2) x (2:3), become explicit
---lists, O(members).
---Example: `world:modes "(2:4) x (4:1)"` is `{0,4} {1,5} {2,6} {3,7}`.
---@param modes moongrid.Modes|string
---@return moongrid.Family
function World:modes(modes) end

---@class moongrid.Modes
---@field inside? integer[][] each {size, stride}, both 1 or more; default: groups of one rank
---@field index? integer[][] the same for the groups; default: one group
---@field offset? integer the rank at position 0 of group 0, in a window, too, counted from rank 0 of the world; default 0

-- Grid --------------------------------------------------------------------------

---Ordered dims over the ranks of a World, fastest first. `grid.tp` is the size of dim tp, unless a
---method has the same name. `grid "tp"` and `grid("dp", "cp")` are `grid:along(...)`. `#grid` is the
---number of ranks. Two grids are equal if they have the same dims, sizes, and ranks in the same order.
---@class moongrid.Grid
---@overload fun(...: string): moongrid.Family
---@field [string] integer
local Grid = {}

---Return the family along the named dims: in a group only these dims vary, in the grid's order, and the other dims
---number the groups. Without names each rank is a group. `grid:along{ "tp", index = {"pp", "dp"} }` chooses both
---orders: the members follow the order of the names, and the groups that of `index`, the first name fastest.
---
---Example: `g "tp"` is `{0,1} {2,3} {4,5} {6,7}`.
---
---Example: `g("tp", "dp")` is `{0,1,2,3} {4,5,6,7}`.
---
---Example: `g()` is `{0} {1} {2} {3} {4} {5} {6} {7}`.
---
---Example: `g("dp", "tp")` is `{0,1,2,3} {4,5,6,7}`.
---@param ... string names of dims, each once; or one table as above
---@return moongrid.Family
---@overload fun(self: moongrid.Grid, dims: moongrid.Along): moongrid.Family
function Grid:along(...) end

---@class moongrid.Along: { [integer]: string }
---@field index? string|string[] the dims that number the groups, fastest first: all that are not named and have a size above 1

---Return the family along all dims except the named ones: the ranks of a group have equal coordinates in the named
---dims. Without names all ranks are one group.
---Example: `g:except "dp"` is `{0,1,4,5} {2,3,6,7}`.
---@param ... string names of dims, each once
---@return moongrid.Family
function Grid:except(...) end

---Like `along`, but the first name varies fastest inside a group.
---Example: `g:ordered("dp", "tp")` is `{0,2,1,3} {4,6,5,7}`.
---@param ... string names of dims, each once; or one table as for `along`
---@return moongrid.Family
function Grid:ordered(...) end

---Return the family along some dims, or along all, for programs that use MPI's Cartesian topologies. It is that of
---`along` with the option `cartesian`. Its MPI communicators have such a topology, even for a group of one rank. In the
---topology the slowest dim of the grid is the first, and MPI keeps the order of ranks. `group:shift` and
---mgrid_mpi_shift return neighbours.
---@param how? { [integer]: string, periods?: table<string, boolean> } names of dims (default: all dims), and in `periods`
---which of these dims are periodic
---@return moongrid.Family
function Grid:cartesian(how) end

---@param rank integer
---@param dim string
---@return integer? coordinate 0 to the dim's size - 1; nil for a rank outside the grid
function Grid:coord(rank, dim) end

---@param rank integer
---@return table<string, integer>? coordinates by name of dim; nil for a rank outside the grid
function Grid:coords(rank) end

---Return the rank at some coordinates. A dim without a coordinate is at 0.
---@param coords table<string, integer> by name of dim, each 0 to size - 1
---@return integer rank
function Grid:rank(coords) end

---@return { [1]: string, [2]: integer }[] dims name and size of each, fastest first
function Grid:dims() end

---Return the grid with one dim split into several, whose sizes multiply to the size of this dim, as in
---`grid:unflatten("dp", "shard-rep", { shard = 2, rep = fill })`. The order may be left out for two dims of which one
---is `fill`; this one is then the slower dim.
---
---Example: `g:unflatten("dp", { a = 1, b = fill }) "b"` is `{0,2} {1,3} {4,6} {5,7}`.
---@param dim string
---@param order string|string[] of the new dims, fastest first, as for `grid(world, order, sizes)`
---@param sizes table<string, integer|lightuserdata>
---@return moongrid.Grid # if the product differs, the error names the nearest sizes
---@overload fun(self: moongrid.Grid, dim: string, sizes: table<string, integer|lightuserdata>): moongrid.Grid
function Grid:unflatten(dim, order, sizes) end

---Return the grid with neighbouring dims merged into one. They keep the grid's order, whatever the order of the names.
---Dims of size 1 between them stay, and come after the new dim.
---Example: `g:flatten("x", "tp", "dp") "x"` is `{0,1,2,3} {4,5,6,7}`.
---@param name string of the new dim
---@param ... string one dim or more, each once
---@return moongrid.Grid
function Grid:flatten(name, ...) end

---@param names table<string, string> by name of a dim: its new name; dims that are not in the table keep their names
---@return moongrid.Grid
function Grid:rename(names) end

---Return the part of the grid at fixed coordinates: a grid of the other dims, over the ranks that have these
---coordinates. Its families leave out the other ranks of the world.
---Example: `g:at { pp = 1 } "tp"` is `{4,5} {6,7}`.
---@param coords table<string, integer> by name of dim, each 0 to size - 1, or -1 to -size from the end
---@return moongrid.Grid
function Grid:at(coords) end

---Return the grid without the named dims that have size 1, for a system whose meshes have only dims above 1.
---@param ... string names of dims, each once; without names: all dims
---@return moongrid.Grid
function Grid:squeeze(...) end

-- Family ------------------------------------------------------------------------

---All groups made by one rule; a group is an ordered list of ranks. `#family` is the number of groups,
---`for group, ranks in pairs(family)` visits them. Two families are equal if they have the same groups in the same
---order, with the same order of members, whatever their options. For families of grids this compares the rules, at any
---world size. `twin`, `lists` and `with` keep the options of the family; the results of other methods have no options.
---@class moongrid.Family
---@field count integer number of groups
---@field size integer? ranks in each group; nil if groups differ in size
---@field largest integer ranks in the largest group; 0 without groups
---@field low integer? the lowest rank that is in a group; nil without groups
---@field high integer? the highest rank that is in a group; nil without groups
---@field coverage "partition"|"partial"|"cover" each rank of the world is in one group, in at most one, or maybe in several
local Family = {}

---Cut every group into runs of k positions. In a family of a grid the runs must follow a rule; for another k this
---raises and names sizes that fit. `table = true` allows every divisor of the group size, and also groups that differ
---in size, for which the result has explicit lists, O(world). The runs of a group follow each other. With `by = "row"`
---the first runs of all groups come first, then the second runs.
---Example: `(g("tp", "dp"):split(2))` is `{0,1} {2,3} {4,5} {6,7}`.
---Example: `select(2, g("tp", "dp"):split(2))` is `{0,2} {1,3} {4,6} {5,7}`.
---Example: `(g("tp", "dp"):split(2, { by = "row" }))` is `{0,1} {4,5} {2,3} {6,7}`.
---@param k integer ranks of an inner group, a divisor of the group size
---@param how? { table?: boolean, by?: "row" }
---@return moongrid.Family inner the runs
---@return moongrid.Family outer for each group, the ranks at equal positions of its runs
function Family:split(k, how) end

---Split repeatedly. Return one family for each size, the innermost first.
---Example: `select(3, g("tp", "dp", "pp"):levels { 2, 2, 2 })` is `{0,4} {1,5} {2,6} {3,7}`.
---@param sizes integer[] at most 32; their product is the group size
---@return moongrid.Family ...
function Family:levels(sizes) end

---Cut every group into segments: sizes[1] ranks, then sizes[2], and so on. The segments of a group follow each other.
---O(sizes) in any world. If segments change from step to step, use `Group:segment`.
---Example: `g("tp", "dp"):segments { 3, 1 }` is `{0,1,2} {3} {4,5,6} {7}`.
---@param sizes integer[] 1 or more; they sum to the group size, or one is `fill` and takes the rest
---@return moongrid.Family
function Family:segments(sizes) end

---Return the same groups in another order: group i of the result is group order[i + 1] of this family. O(groups). If
---the order steps through the groups regularly, the result keeps a rule; else it has explicit lists, O(members).
---`"first"` orders the groups by their first members, O(dims) for a family with a rule.
---Example: `g "tp":renumber { 3, 2, 1, 0 }` is `{6,7} {4,5} {2,3} {0,1}`.
---@param order integer[]|fun(group: integer): integer each group once, from 0
---@return moongrid.Family
---@overload fun(self: moongrid.Family, order: "first"): moongrid.Family
function Family:renumber(order) end

---Return the groups whose ranks are all at some coordinates of a grid, in their order: `g "tp":where { pp = 0 }` has
---the groups of the first stage, as has `g:at { pp = 0 } "tp"`. The grid is the one from which the family was made,
---also after other operations. For a union, a zip or a table name the grid: `f:where(g, { pp = 0 })`. Raises if there
---is no such group, for example if the dim varies inside the groups. O(dims) for a family with a rule and a grid over a
---window; else O(members). With a function, return the groups for which the function returns true, O(members):
---`f:where(function(ranks) return ranks[1] % 16 == 0 end)`.
---Example: `g "tp":where { pp = 1 }` is `{4,5} {6,7}`.
---Example: `g "tp":where(function(ranks) return ranks[1] % 4 == 0 end)` is `{0,1} {4,5}`.
---@param coords table<string, integer> by name of dim, each 0 to size - 1, or -1 to -size from the end
---@return moongrid.Family
---@overload fun(self: moongrid.Family, grid: moongrid.Grid, coords: table<string, integer>): moongrid.Family
---@overload fun(self: moongrid.Family, keep: fun(ranks: integer[], group: integer): boolean?): moongrid.Family
function Family:where(coords) end

---Return in every group only the ranks at some positions, in the order given; a position that is given twice counts
---once. A function is called once per group size, and returns one position, several, or a list. Its result must depend
---only on the size.
---Example: `g("tp", "pp"):pick(0, -1)` is `{0,5} {2,7}`.
---Example: `g("tp", "dp"):pick(function(size) return size // 2 end)` is `{2} {6}`.
---@param ... integer 0 to size - 1, or -1 to -size from the end; or one list of them, or a function
---@return moongrid.Family
---@overload fun(self: moongrid.Family, positions: integer[]): moongrid.Family
---@overload fun(self: moongrid.Family, choose: fun(size: integer): integer|integer[], ...): moongrid.Family
function Family:pick(...) end

---Join n consecutive groups into one: the members of the first, then those of the second, and so on. If it joins groups
---of several families of a union, the result has explicit lists, O(members).
---Example: `g "tp":bundle(2)` is `{0,1,2,3} {4,5,6,7}`.
---@param n integer a divisor of the number of groups
---@return moongrid.Family
function Family:bundle(n) end

---Return all pairs of neighbours of every group, as pipeline stages need; the same as `neighbours(1, wrap)`. A ring of
---two ranks is one pair.
---Example: `g("tp", "dp"):pairs()` is `{0,1} {1,2} {2,3} {4,5} {5,6} {6,7}`.
---Example: `g("tp", "dp"):pairs "wrap"` is `{0,1} {1,2} {2,3} {3,0} {4,5} {5,6} {6,7} {7,4}`.
---Example: `g "tp":pairs "wrap"` is `{0,1} {2,3} {4,5} {6,7}`.
---@param wrap? "wrap"|boolean|{ wrap?: boolean } also pair the last with the first
---@return moongrid.Family cover a rank may be in two pairs
function Family:pairs(wrap) end

---Return pairs: the ranks at positions i and i + step of every group, each pair once. A group of one rank has no pair.
---Example: `g("tp", "dp"):neighbours(2)` is `{0,2} {1,3} {4,6} {5,7}`.
---@param step? integer 1 (default) to size - 1
---@param wrap? "wrap"|boolean|{ wrap?: boolean } also make the pairs that go around the end
---@return moongrid.Family cover a rank may be in two pairs
function Family:neighbours(step, wrap) end

---Replace every group by the list that a function returns for it. The new groups must share no ranks. The result always
---has explicit lists, O(world).
---Example: `g "tp":map(function(ranks) return { ranks[2], ranks[1] } end)` is `{1,0} {3,2} {5,4} {7,6}`.
---@param fn fun(ranks: integer[], group: integer): integer[]
---@return moongrid.Family
function Family:map(fn) end

---Return the groups without these ranks, in the same order; empty groups are left out. Ranks that are in
---no group change nothing. O(members). If the result follows a rule, it has that rule, not lists.
---Example: `g "tp":without { 2, 3, 6 }` is `{0,1} {4,5} {7}`.
---@param ranks integer[] 0 to world - 1
---@return moongrid.Family
function Family:without(ranks) end

---Return the same groups as explicit lists, O(world), for operations that need lists.
---@return moongrid.Family
function Family:lists() end

---Return the same groups with communicators of their own. `options` are added as by `with`.
---@param options? moongrid.Options
---@return moongrid.Family
function Family:twin(options) end

---Return the same groups with these options added to those that the family has. The family itself does not change.
---@param options moongrid.Options
---@return moongrid.Family
function Family:with(options) end

---Return the ranks of a group as a new list, which `print` shows as `{0, 8, 16}`.
---@param group integer 0 to count - 1
---@return integer[] ranks
function Family:ranks(group) end

---Return one member, and how many members the group has. O(modes), while `ranks` lists all members.
---@param group integer 0 to count - 1
---@param position integer 0 to size - 1, or -1 to -size from the end
---@return integer rank
---@return integer size of the group
function Family:member(group, position) end

---Return the modes of a family that follows a rule, as `world:modes` takes them; nil if it is made of lists or of
---other families.
---@return moongrid.Modes?
function Family:modes() end

---Return the rule that makes the groups, first as the text of a plan has it, then in words.
---@return string rule
---@return string words
function Family:explain() end

---Return the group and position of a rank. O(modes) at any world size.
---@param rank integer of the world
---@param nth? integer which of the rank's groups, from 0 (default); only in a cover has a rank more than one
---@return integer? group nil if the rank has no such group
---@return integer? position
---@overload fun(self: moongrid.Family, rank: integer, which: "all"): integer[][] {group, position} of each
function Family:locate(rank, nth) end

---Iterate over all groups: `for group, ranks in family:groups() do`. With numbers of groups, each once, return the
---family of these groups in this order: `f:groups { 0, 3 }`, `f:groups(-1)`. If the numbers step regularly, the result
---keeps a rule; else it has explicit lists of these groups. `where` chooses groups by coordinates, or by a function.
---Example: `g "tp":groups { 0, -1 }` is `{0,1} {6,7}`.
---@return fun(family: moongrid.Family, group?: integer): integer?, integer[]?
---@return moongrid.Family
---@overload fun(self: moongrid.Family, groups: integer[]): moongrid.Family 0 to count - 1, or -1 to -count from the end
---@overload fun(self: moongrid.Family, ...: integer): moongrid.Family
function Family:groups() end
