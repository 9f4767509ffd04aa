---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of machines: where ranks run. meta.lua has the rest.

---A machine. In a recipe the global `machine` is that of the host (--machine), else of the recipe's field `machine`.
---Each level, and each rule of domains that cross levels, is a field: machine.node is the family of the nodes,
---machine.rail that of the rails. Raises if there is no machine, or no such level. `machine("node:4 gpu:8", world)`
---makes another machine; in a recipe the world may be left out.
---@class moongrid.MachineModel
---@overload fun(text: string, world?: moongrid.World): moongrid.MachineModel
local MachineModel = {} -- luacheck: ignore

---Return whether the machine has a level of that name.
---@param level string
---@return boolean
function MachineModel:has(level) end

---Return the domains of a rank, one for each level, far to near, then those that cross levels. Raises if the machine
---has no such rank.
---@param rank integer
---@return { level: string, domain: integer, crossing: boolean, text: string, link: string }[] text: "node 3 (host3)";
---link: "[400GB/s,3us]", "" if unknown
function MachineModel:where(rank) end

---Return its levels, far to near, then those that cross levels.
---@return moongrid.MachineLevel[]
function MachineModel:levels() end

---@class moongrid.MachineLevel
---@field name string
---@field crossing boolean
---@field domains? integer nil: as many as the ranks need
---@field places? integer of one domain, the most if they differ; nil: as many as the ranks need
---@field regular boolean all domains have the same number of places
---@field link string "[400GB/s,3us]", "" if not known
---@field bandwidth number bytes a second of one domain to the others; 0: not known
---@field latency number seconds; 0: not known

---Return the machine as a text for `open_machine`, without the names of domains.
---@return string
function MachineModel:text() end

---Return the machine as JSON with the names of domains, for a file that `open_machine` reads.
---@return string
function MachineModel:json() end

---Return notes on what the reader of its file left out, as "host 'n0' gets no ranks: it is cordoned".
---@return string[]
function MachineModel:notes() end

---Raise unless the machine has a place for every rank of a world.
---@param world integer number of ranks
function MachineModel:fits(world) end

---Compare the machine with the nodes on which the ranks of a job run, and their names. A job on one node fits any
---machine, for trials. Collective.
---@param job moongrid.Job
---@return true? alike nil if they differ, or on failure
---@return string? message
---@return integer? status 100: they differ
function MachineModel:meets(job) end

---Return the largest number of places of a node: a domain of the level `node`, else of the last level but one.
---@return integer
function MachineModel:node_size() end

---Return the domains of a level that have ranks of a world, as `machine.node` does for the world of a recipe.
---@param level string
---@param world integer number of ranks
---@return moongrid.Family
function MachineModel:family(level, world) end

---Return a list of the ranks' domains of a level: that of rank r is domains[r + 1]. O(world).
---@param level string
---@param world integer number of ranks
---@return integer[] domains
function MachineModel:domains(level, world) end

---Count how the groups of a family lie in the domains of a level. inside: groups in one domain; crossing: groups in
---several; edges: pairs of consecutive members (in groups of more than two also the last and the first) in two domains;
---touched: pairs of a group and a domain that has members of it; members: the mean number of members in such a pair.
---O(domains x modes) for a family that follows modes; else O(members).
---@param family moongrid.Family
---@param level string
---@return { inside: integer, crossing: integer, edges: integer, touched: integer, members: number }
function MachineModel:counts(family, level) end

---Return the place of a rank, its node (a domain of the level `node`, else of the last level but one), its slot in the
---node, and the name of the node. Raises if the machine has no such rank.
---@param rank integer
---@return integer place
---@return integer node
---@return integer slot
---@return string? name
function MachineModel:seat(rank) end

---Return the name of a domain.
---@param level string
---@param domain integer
---@return string? name nil: it has none
function MachineModel:domain_name(level, domain) end

---Return the level whose domains NVLink connects, recognized by its name or bandwidth; else the level of nodes.
---@return string level
---@return integer? ranks consecutive ranks of each domain; nil: their numbers differ, or the machine lists places of ranks
function MachineModel:nvlink_level() end

---Return the file of NCCL's topology that the machine was read from.
---@return string? path nil: it was read from another file, or from none
function MachineModel:nccl_topology() end

-- Traffic is a text that says what each family sends in a step: "tp = 2 GiB all_reduce x 96; dp = 4 GiB reduce_scatter +
-- 1 GiB send". Collectives run in rings: an all_reduce of n ranks puts 2 (n-1)/n of its bytes on each edge, an all_gather
-- or reduce_scatter (n-1)/n. An all_to_all sends between all pairs.

---Add up the bytes that groups send between the domains of a level, and what leaves each domain. O(members).
---@param plan moongrid.Plan
---@param level string
---@param traffic string as of `plan.traffic` or `step:traffic()`
---@param families? string[] count only these families
---@return table<string, number> bytes by family, without families that send nothing
---@return number[] leaving the bytes that leave each domain with ranks: for domain d leaving[d + 1]
function MachineModel:leaving(plan, level, traffic, families) end

---Return the cost of a plan on the machine: `bytes` between the domains of each level except the last, whose domains
---are places (if there is only one level, it counts); `bound`, below which no order of the ranks can be with the same
---sizes; and `seconds`, the sum of the times of the busiest links of all levels whose bandwidth is known.
---@param plan moongrid.Plan
---@param traffic? string nil: every family with communicators of its own does an all_reduce of 1 GiB
---@param timed? boolean compute seconds, too; O(members)
---@return { bytes: table<string, number>, bound: table<string, number>, seconds: number? }
function MachineModel:cost(plan, traffic, timed) end

---Return whether nodes can be assigned: the machine has nodes of one size below several domains, and the ranks need
---several nodes.
---@param world integer number of ranks
---@return boolean
function MachineModel:assignable(world) end

---Assign nodes to the ranks of a plan, in blocks of a node's places, so that blocks that send much to each other are
---below one switch. This improves several starts by swaps. The present order is among them, so the result never costs
---more. Raises if nodes cannot be assigned.
---@param plan moongrid.Plan
---@param traffic? string as of `cost`
---@return moongrid.MachineModel found the machine with the ranks on the assigned nodes
---@return moongrid.MachineModel sorted the machine with the ranks on nodes in the order of places
function MachineModel:assign(plan, traffic) end
