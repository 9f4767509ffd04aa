---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of machines: where ranks run. meta.lua says which file has the other annotations.

---A machine. In a recipe the global `machine` is the machine of the host (--machine) or, without it, that of the
---recipe's field `machine`. The families of its domains are fields: machine.node has the nodes as groups, machine.rail
---the rails, which cross levels. To read a field if there is no machine, or no such level, is an error.
---`machine("node:4 gpu:8", world)` makes another machine; in a recipe the world may be left out. A machine of
---moongrid.open_machine has no world: use `machine:family`.
---@class moongrid.MachineModel
---@overload fun(text: string, world?: moongrid.World): moongrid.MachineModel
local MachineModel = {} -- luacheck: ignore

---Return whether the machine has a level, or domains that cross levels, of this name.
---@param level string
---@return boolean
function MachineModel:has(level) end

---Return the domains of a rank: one for each level, from far to near, then those that cross levels. Raises if the
---machine has no such rank.
---@param rank integer
---@return { level: string, domain: integer, crossing: boolean, text: string, link: string }[] domains text: "node 3 (host3)";
---link: "[400GB/s,3us]", "" if it is not known
function MachineModel:where(rank) end

---Return the levels of the machine from far to near, then the kinds of domains that cross levels.
---@return moongrid.MachineLevel[]
function MachineModel:levels() end

---@class moongrid.MachineLevel
---@field name string
---@field crossing boolean
---@field domains? integer number of domains; nil: as many as the ranks need. If domains that cross levels differ, some of
---their numbers, 0 to domains - 1, may have no places
---@field places? integer places of one domain, the largest number if they differ, or a bound if those differ that cross
---levels; nil: as many as the ranks need
---@field regular boolean all domains have the same number of places
---@field link string bandwidth and latency as text, "[400GB/s,3us]"; "" if they are not known
---@field bandwidth number bytes a second from one domain to the others; 0 if it is not known
---@field latency number seconds; 0 if it is not known

---Return the machine as a text for `open_machine`, without the names of domains.
---@return string
function MachineModel:text() end

---Return the machine as JSON with the names of domains, for a file that `open_machine` reads.
---@return string
function MachineModel:json() end

---Return what moongrid left out when it read the machine from a file, as "host 'n0' gets no ranks: it is cordoned".
---@return string[]
function MachineModel:notes() end

---Raise unless the machine has a place for every rank of a world.
---@param world integer number of ranks
function MachineModel:fits(world) end

---Compare the nodes of the machine, and their names, with the nodes on which the ranks of a job run. A job on one node
---fits any machine, for trials. Collective.
---@param job moongrid.Job
---@return true? alike nil if the nodes differ, or on failure
---@return string? message
---@return integer? status 100: the nodes differ
function MachineModel:meets(job) end

---Return the number of places of the largest node. Nodes are the domains of the level `node`; without it those of the
---last level but one.
---@return integer
function MachineModel:node_size() end

---Return the family of those domains of a level that have ranks of a world, as `machine.node` in a recipe.
---@param level string
---@param world integer number of ranks
---@return moongrid.Family
function MachineModel:family(level, world) end

---Return for each rank its domain of a level: that of rank r is domains[r + 1]. O(world).
---@param level string
---@param world integer number of ranks
---@return integer[] domains
function MachineModel:domains(level, world) end

---Count how the groups of a family lie in the domains of a level. inside: groups whose members are all in one domain;
---crossing: groups in several domains; edges: pairs of consecutive members that are in two domains (in groups of more
---than two the last and the first member are such a pair, too); touched: for each group the number of domains that have
---members of it, added up; members: members divided by `touched`. O(domains x modes) for a family that follows modes;
---else O(members).
---@param family moongrid.Family
---@param level string
---@return { inside: integer, crossing: integer, edges: integer, touched: integer, members: number }
function MachineModel:counts(family, level) end

---Return the place and the node of a rank (nodes as for `node_size`). Raises if the machine has no such rank.
---@param rank integer
---@return integer place
---@return integer node
---@return integer slot index of the place in the node, from 0
---@return string? name of the node; nil if it has none
function MachineModel:seat(rank) end

---Return the name of a domain.
---@param level string
---@param domain integer
---@return string? name nil if the domain has none
function MachineModel:domain_name(level, domain) end

---Return the level whose domains NVLink connects: "clique" or "nvlink", else the farthest level with the bandwidth of a
---place; if no bandwidth is known, the level of nodes.
---@return string level
---@return integer? ranks number of consecutive ranks of each domain; nil if domains differ, or the machine lists the places of
---ranks
function MachineModel:nvlink_level() end

---Return the file of NCCL's topology from which the machine was read.
---@return string? path nil if it was read from another file, or from none
function MachineModel:nccl_topology() end

-- Traffic is a text that says what each family sends in a step: "tp = 2 GiB all_reduce x 96; dp = 4 GiB reduce_scatter
-- + 1 GiB send". Collectives are counted as rings: an all_reduce of n ranks puts 2 (n-1)/n of its bytes on each edge of
-- the ring, an all_gather or reduce_scatter (n-1)/n. An all_to_all sends between all pairs.

---Add up the bytes that groups send between the domains of a level. O(members).
---@param plan moongrid.Plan
---@param level string
---@param traffic string as `plan.traffic`, or as `step:traffic()` returns it
---@param families? string[] count only these families
---@return table<string, number> bytes by family, without families that send nothing
---@return number[] leaving the bytes that leave each domain that has ranks: leaving[d + 1] is for domain d
function MachineModel:leaving(plan, level, traffic, families) end

---Return the cost of a plan on the machine. `bytes`, by level: the bytes between the domains of the level. The last
---level, whose domains are places, is left out unless it is the only one. `bound`, by level: with the same sizes no
---order of the ranks sends fewer bytes. `seconds`: the times of the busiest links of all levels whose bandwidth is
---known, added up.
---@param plan moongrid.Plan
---@param traffic? string nil: every family with communicators of its own does an all_reduce of 1 GiB
---@param timed? boolean also compute `seconds`, O(members)
---@return { bytes: table<string, number>, bound: table<string, number>, seconds: number? }
function MachineModel:cost(plan, traffic, timed) end

---Return whether `assign` can work: the machine has nodes of one size, which are in several domains of another level,
---and the ranks need several nodes.
---@param world integer number of ranks
---@return boolean
function MachineModel:assignable(world) end

---Assign nodes to the ranks of a plan. Consecutive ranks that fill a node stay together; ranks that send much to each
---other get nodes below one switch. The search improves several orders of the nodes by swaps. If each node now has
---consecutive ranks, the present order is one of these, so the result never costs more. Raises if not `assignable`.
---@param plan moongrid.Plan
---@param traffic? string as for `cost`
---@return moongrid.MachineModel found the machine with the ranks on the assigned nodes
---@return moongrid.MachineModel sorted the machine with the ranks on nodes in the order of places
function MachineModel:assign(plan, traffic) end
