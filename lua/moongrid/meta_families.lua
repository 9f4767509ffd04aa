---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations for editors (LuaCATS) of worlds, grids and families, in recipes and in the module: nothing here runs.
-- meta.lua has the rules for all annotations. Examples show the groups of 8 ranks: `g` is grid(world, "tp-dp-pp", { tp
-- = 2, dp = 2, pp = 2 }), `low` and `high` are grids "x-y" of 2 x 2 over the lower and the upper half of the world.
-- scripts/make/annotations.lua puts the examples into the manual and the site.

-- World -------------------------------------------------------------------------

---The ranks for a grid: a whole world, a window of consecutive ranks of a world, or some ranks in another order.
---`#world` is the number of ranks. Two worlds are equal if they have the same ranks in the same order.
---@class moongrid.World
---@field size integer number of ranks, 1 to 2147483647
---@field offset integer the first rank, 0 unless this is a window; raises for ranks in another order: use `rank(0)`
local World = {}

---Return a window: consecutive ranks of this world or window. If this world is in another order, the window has
---consecutive positions of it, and costs O(size). The result still belongs to the whole world.
---@param offset integer first position, counted from the start of this window; 0 to size - 1
---@param size? integer number of ranks, 1 to size - offset; default: all that follow
---@return moongrid.World
function World:window(offset, size) end

---Return the ranks of this World, or some of them, in another order. Position 0 of a grid over the result is the first
---rank of the list; coordinates, families and plans use this order. A function returns the rank at each position. A
---family gives the order by the members of its one group. Raises if a rank occurs twice or is outside this World. An
---order that follows a rule of modes (every second rank, a transposed grid) costs nothing afterwards. With any other
---order, families along dims of the grid are explicit lists unless they are regular. O(size); O(modes) for a family of
---a grid.
---Example: `grid(world:order { 7, 6, 5, 4, 3, 2, 1, 0 }, "tp-dp", { tp = 2, dp = fill }) "tp"` is `{7,6} {5,4} {3,2} {1,0}`.
---@param ranks integer[]|moongrid.Family|fun(position: integer, size: integer): integer
---@return moongrid.World
function World:order(ranks) end

---@param position integer 0 to size - 1
---@return integer rank at this position
function World:rank(position) end

---Make a family from explicit lists, group by group. O(members); regular lists become a rule and cost
---nothing afterwards. Raises if the lists do not match `kind`, or contain a rank outside this window.
---Raises for a World in another order. A text may have the lists as Python prints them:
---"[[0, 1], [2, 3]]", one list per line, tuples, range(0, 8, 2).
---Example: `world:table { { 0, 7, 1 }, { 2, 3, 4, 5, 6 } }` is `{0,7,1} {2,3,4,5,6}`.
---@param groups integer[][]|string ranks of each group, in order; no group is empty
---@param kind? "partition"|"partial"|"cover" each rank once (default), at most once, or any number of times
---@return moongrid.Family
function World:table(groups, kind) end

---Make a family from its modes, each {size, stride}, the first one fastest: `inside` gives the members of a group,
---`index` the groups. A text also works: tostring of a family of modes, "(2:1) x (4:2) + 8", or CuTe's sizes
---and strides, "(2,4):(1,8) x 2:4". torch's layouts look the same, but their last mode is the fastest: write
---them from the right. Raises if two members are the same rank, or a rank is outside this window. O(modes);
---modes that interleave, as (3:2) x (2:3), become explicit lists, O(members).
---Example: `world:modes "(2:4) x (4:1)"` is `{0,4} {1,5} {2,6} {3,7}`.
---@param modes moongrid.Modes|string
---@return moongrid.Family
function World:modes(modes) end

---@class moongrid.Modes
---@field inside? integer[][] {size, stride} each, 1 or more; default: groups of one rank
---@field index? integer[][] the same for the groups; default: one group
---@field offset? integer the rank at position 0 of group 0, a rank of the world even in a window; default 0

-- Grid --------------------------------------------------------------------------

---Ordered dims over the ranks of a World, fastest first. `grid.tp` is the size of dim tp, unless a
---method has the same name. `grid "tp"` and `grid("dp", "cp")` are `grid:along(...)`. `#grid` is the
---number of ranks. Two grids are equal if they have the same dims, sizes, and ranks in the same order.
---@class moongrid.Grid
---@overload fun(...: string): moongrid.Family
---@field [string] integer
local Grid = {}

---Return the family of the named dims. They vary inside a group, always in the grid's order; the groups are numbered by
---the other dims. Without names each rank is a group. A table may also order the groups:
---`grid:along{ "tp", index = {"pp", "dp"} }`. Then members and groups follow the written order, the first name fastest.
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
---@field index? string|string[] the dims that number the groups: all others that are larger than 1

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

---Return the family of some dims, or of all, for programs that use MPI's Cartesian topologies. It is `along` with the
---option `cartesian`. Its MPI communicators have such a topology, even for a group of one rank. Their dims are in MPI's
---order, the reverse of the grid's, and MPI keeps the order of ranks. `group:shift` and mgrid_mpi_shift return
---neighbours.
---@param how? { [integer]: string, periods?: table<string, boolean> } names of dims (default: all);
---which of them are periodic
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

---Return the grid with one dim split into several; the product of their sizes is its size:
---`grid:unflatten("dp", "shard-rep", { shard = 2, rep = fill })`. Without an order give two dims, of which the slower
---one is `fill`.
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

---@param names table<string, string> the new name of a dim; others keep theirs
---@return moongrid.Grid
function Grid:rename(names) end

---Return the part of the grid at fixed coordinates: a grid of the other dims, over the ranks that have these
---coordinates. Its families leave out the other ranks of the world.
---Example: `g:at { pp = 1 } "tp"` is `{4,5} {6,7}`.
---@param coords table<string, integer> by name of dim, each 0 to size - 1, or -1 to -size from the end
---@return moongrid.Grid
function Grid:at(coords) end

---Return the grid without the named dims that have size 1, for a system whose meshes have only dims above 1.
---@param ... string names of dims, each once; none: all dims
---@return moongrid.Grid
function Grid:squeeze(...) end

-- Family ------------------------------------------------------------------------

---All groups made by one rule; a group is an ordered list of ranks. `#family` is the number of groups,
---`for group, ranks in pairs(family)` visits them. Two families are equal if they have the same groups in the same
---order, with the same order of members. For families of grids this compares the rules, at any world size. Equality
---ignores options (`with`). Only `twin`, `lists` and `with` return a family that keeps the options.
---@class moongrid.Family
---@field count integer number of groups
---@field size integer? ranks in each group; nil if groups differ
---@field largest integer ranks in the largest group; 0 without groups
---@field low integer? the lowest rank that is in a group; nil without groups
---@field high integer? the highest such rank
---@field coverage "partition"|"partial"|"cover" each rank of the world is in one group, in at most one, or maybe in several
local Family = {}

---Cut every group into runs of k positions. For a family of a grid, k must meet a boundary of its rule, else this
---raises and names the possible sizes. `table = true` cuts anyway, without a rule (and makes explicit lists,
---O(world), if groups differ in size). The runs of a group follow each other. With `by = "row"` the first runs of all
---groups come first, then the second runs, as in a matrix with a row for each run.
---Example: `(g("tp", "dp"):split(2))` is `{0,1} {2,3} {4,5} {6,7}`.
---Example: `select(2, g("tp", "dp"):split(2))` is `{0,2} {1,3} {4,6} {5,7}`.
---Example: `(g("tp", "dp"):split(2, { by = "row" }))` is `{0,1} {4,5} {2,3} {6,7}`.
---@param k integer ranks of an inner group, a divisor of the group size
---@param how? { table?: boolean, by?: "row" }
---@return moongrid.Family inner the runs
---@return moongrid.Family outer the ranks at equal positions of the runs
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
---"first" counts groups by their first members: O(dims) for a family with a rule.
---Example: `g "tp":renumber { 3, 2, 1, 0 }` is `{6,7} {4,5} {2,3} {0,1}`.
---@param order integer[]|fun(group: integer): integer each group once, from 0
---@return moongrid.Family
---@overload fun(self: moongrid.Family, order: "first"): moongrid.Family
function Family:renumber(order) end

---Return the groups whose ranks are all at some coordinates of a grid, in their order: `g "tp":where { pp = 0 }` is tp
---of the first stage, as is `g:at { pp = 0 } "tp"`. By default this is the grid that the family comes from, even after
---other operations. For a union, a zip or a table name the grid: `f:where(g, { pp = 0 })`. Raises if there is no such
---group, for example if the dim varies inside the groups. O(dims) for a family with a rule and a grid over a window;
---else O(members).
---With a function, keep the groups for which it returns true, O(members):
---`f:where(function(ranks) return ranks[1] % 16 == 0 end)`.
---Example: `g "tp":where { pp = 1 }` is `{4,5} {6,7}`.
---Example: `g "tp":where(function(ranks) return ranks[1] % 4 == 0 end)` is `{0,1} {4,5}`.
---@param coords table<string, integer> by name of dim, each 0 to size - 1, or -1 to -size from the end
---@return moongrid.Family
---@overload fun(self: moongrid.Family, grid: moongrid.Grid, coords: table<string, integer>): moongrid.Family
---@overload fun(self: moongrid.Family, keep: fun(ranks: integer[], group: integer): boolean?): moongrid.Family
function Family:where(coords) end

---Keep some positions of every group, in the order given, each once. The result leaves out the other
---ranks. A function is called once per group size; its result must depend only on that size.
---Example: `g("tp", "pp"):pick(0, -1)` is `{0,5} {2,7}`.
---Example: `g("tp", "dp"):pick(function(size) return size // 2 end)` is `{2} {6}`.
---@param ... integer 0 to size - 1, or -1 to -size from the end; or one list of them, or a function
---@return moongrid.Family
---@overload fun(self: moongrid.Family, positions: integer[]): moongrid.Family
---@overload fun(self: moongrid.Family, choose: fun(size: integer): integer|integer[], ...): moongrid.Family
function Family:pick(...) end

---Join n consecutive groups into one: the members of the first, then those of the second, and so on. If a bundle joins
---groups of several families of a union, it is a list, O(members).
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

---Apply a function to every group; the resulting groups must be disjoint. Unlike the other
---operations this makes explicit lists: O(world).
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

---Return the same groups as explicit lists, O(world): for operations that need them.
---@return moongrid.Family
function Family:lists() end

---Return the same groups with separate communicators; options are added, as by `with`.
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

---Return the rule that makes the groups, as the text of a plan has it, and the same rule in words.
---@return string rule
---@return string words
function Family:explain() end

---Return the group and position of a rank. O(modes) at any world size.
---@param rank integer of the world
---@param nth? integer which of the rank's groups, from 0 (default); only a cover has more than one
---@return integer? group nil if there is none
---@return integer? position
---@overload fun(self: moongrid.Family, rank: integer, which: "all"): integer[][] {group, position} of each
function Family:locate(rank, nth) end

---Iterate over all groups: `for group, ranks in family:groups() do`. With numbers of groups, return the family of these
---groups in this order, each once: `f:groups { 0, 3 }`, `f:groups(-1)`. If the numbers step regularly, the result keeps
---a rule; else it has explicit lists, O(their members). `where` chooses by coordinates, or by a function.
---Example: `g "tp":groups { 0, -1 }` is `{0,1} {6,7}`.
---@return fun(family: moongrid.Family, group?: integer): integer?, integer[]?
---@return moongrid.Family
---@overload fun(self: moongrid.Family, groups: integer[]): moongrid.Family 0 to count - 1, or -1 to -count from the end
---@overload fun(self: moongrid.Family, ...: integer): moongrid.Family
function Family:groups() end
