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

---Return the domain of each level that a rank is in, far to near, then those that cross levels. Raises if the machine
---has no such rank.
---@param rank integer
---@return { level: string, domain: integer, crossing: boolean, text: string, link: string }[] text: "node 3 (host3)";
---link: "[400GB/s,3us]", "" if not known
function MachineModel:where(rank) end

---Return its levels, far to near, then those that cross levels.
---@return moongrid.MachineLevel[]
function MachineModel:levels() end

---@class moongrid.MachineLevel
---@field name string
---@field crossing boolean
---@field domains? integer nil: as many as the ranks need
---@field places? integer of one domain, the most if they differ; nil: as many as the ranks need
---@field regular boolean all domains have as many places
---@field link string "[400GB/s,3us]", "" if not known
---@field bandwidth number bytes a second of one domain to the others; 0: not known
---@field latency number seconds; 0: not known

---Return the text of which `open_machine` makes it again, without the names of domains.
---@return string
function MachineModel:text() end

---Return it as JSON with the names of domains, a file for `open_machine`.
---@return string
function MachineModel:json() end

---Return what the reader of its file left out, as "host 'n0' gets no ranks: it is cordoned".
---@return string[]
function MachineModel:notes() end

---Raise unless the machine has a place for every rank of a world.
---@param world integer number of ranks
function MachineModel:fits(world) end

---Compare with where the ranks of a job run: ranks of one host, and names of hosts. A job on one host is a trial of any
---machine. Collective.
---@param job moongrid.Job
---@return true? alike nil if they differ, or on failure
---@return string? message
---@return integer? status 100: they differ
function MachineModel:meets(job) end

---Return the most ranks that a node has: a domain of the level `node`, else of the last level but one.
---@return integer
function MachineModel:node_size() end

---Return the domains of a level that have ranks of a world, as `machine.node` does for the world of a recipe.
---@param level string
---@param world integer number of ranks
---@return moongrid.Family
function MachineModel:family(level, world) end

---Return the domain of a level that each of the first ranks is in: that of rank r is domains[r + 1]. O(world).
---@param level string
---@param world integer number of ranks
---@return integer[] domains
function MachineModel:domains(level, world) end

---Count how the groups of a family lie in the domains of a level. inside: groups in one domain; crossing: in several;
---edges: pairs in two domains, of consecutive members, and of the last and the first in a group of more than two;
---touched: pairs of a group and a domain that has some of its members. O(domains x modes) for a family that follows
---modes; else O(members).
---@param family moongrid.Family
---@param level string
---@return { inside: integer, crossing: integer, edges: integer, touched: integer }
function MachineModel:counts(family, level) end
