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
---touched: pairs of a group and a domain that has some of its members; members: how many it has, on average.
---O(domains x modes) for a family that follows modes; else O(members).
---@param family moongrid.Family
---@param level string
---@return { inside: integer, crossing: integer, edges: integer, touched: integer, members: number }
function MachineModel:counts(family, level) end

---Return the place of a rank, its host (a domain of the level `node`, else of the last level but one), its slot in the
---host, and the name of the host. Raises if the machine has no such rank.
---@param rank integer
---@return integer place
---@return integer host
---@return integer slot
---@return string? name
function MachineModel:seat(rank) end

---Return the name of a domain.
---@param level string
---@param domain integer
---@return string? name nil: it has none
function MachineModel:domain_name(level, domain) end

---Return the level whose domains NVLink connects, by its name or bandwidth; else that of hosts.
---@return string level
---@return integer? ranks of each domain, one after the other; nil: they differ, or the machine lists places of ranks
function MachineModel:nvlink_level() end

---Return the file of NCCL's topology that the machine was read from.
---@return string? path nil: it was read from another file, or from none
function MachineModel:nccl_topology() end

-- Traffic is a text, what each family sends in a step: "tp = 2 GiB all_reduce x 96; dp = 4 GiB reduce_scatter + 1 GiB send".
-- Rings carry collectives: 2 (n-1)/n of the bytes of an all_reduce of n ranks on each edge, (n-1)/n of an all_gather or
-- reduce_scatter; all_to_all goes by pairs.

---Add up the bytes that groups send between the domains of a level, and what leaves each domain. O(members).
---@param plan moongrid.Plan
---@param level string
---@param traffic string as of `plan.traffic` or `step:traffic()`
---@param families? string[] only what these send
---@return table<string, number> bytes by family, of those that send something
---@return number[] leaving the bytes of each domain with ranks: that of domain d is leaving[d + 1]
function MachineModel:leaving(plan, level, traffic, families) end

---Return what a plan costs on the machine: bytes between the domains of each level but the last, whose domains are places
---(the only level of a machine counts); and `bound`: no order of the ranks has fewer, with the same sizes. `seconds`: of the
---busiest link of each level whose bandwidth is known, added up.
---@param plan moongrid.Plan
---@param traffic? string nil: every family with communicators of its own does an all_reduce of 1 GiB
---@param timed? boolean with seconds; O(members)
---@return { bytes: table<string, number>, bound: table<string, number>, seconds: number? }
function MachineModel:cost(plan, traffic, timed) end

---Return whether there is something to assign: hosts of one size below several domains, and ranks for several hosts.
---@param world integer number of ranks
---@return boolean
function MachineModel:assignable(world) end

---Find hosts for the ranks of a plan, in blocks as many as a host has places: those that send much to each other go below one
---switch. By swaps from several starts, among them the present order, so the result never costs more than that. Raises where
---nothing is to assign.
---@param plan moongrid.Plan
---@param traffic? string as of `cost`
---@return moongrid.MachineModel found the machine with the ranks on these hosts
---@return moongrid.MachineModel sorted ... in the order of places
function MachineModel:assign(plan, traffic) end
