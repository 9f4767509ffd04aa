---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of machines: where ranks run. meta.lua has the rest.

---The machine of the plan that is made: that of the host (--machine), or of the recipe's field `machine`. Each level, and
---each rule of domains that cross levels, is a field: machine.node is the family of the nodes, machine.rail that of the
---rails. Raises where there is no machine, or no such level. `machine("node:4 gpu:8", world)` makes another one; in a
---recipe the world may be left out.
---@class moongrid.MachineModel
---@overload fun(text: string, world?: moongrid.World): moongrid.MachineModel
local MachineModel = {} -- luacheck: ignore

---Return whether the machine has a level of that name.
---@param level string
---@return boolean
function MachineModel:has(level) end

---Return the domain of each level that a rank is in, far to near, then those that cross levels.
---@param rank integer
---@return { level: string, domain: integer, crossing: boolean, text: string, link: string }[] text: "node 3 (host3)";
---link: "[400GB/s,3us]", "" if not known
function MachineModel:where(rank) end

---Raise unless the machine has a place for every rank of a world.
---@param world integer number of ranks
function MachineModel:fits(world) end

---Return the most ranks that a node has: a domain of the level `node`, else of the last level but one.
---@return integer
function MachineModel:node_size() end

---Return the domains of a level that have ranks of a world, as `machine.node` does for the world of a recipe.
---@param level string
---@param world integer number of ranks
---@return moongrid.Family
function MachineModel:family(level, world) end
