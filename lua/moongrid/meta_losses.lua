---@meta moongrid.losses
-- SPDX-License-Identifier: MIT
--
-- Annotations for lost ranks: plan:lose and plan:losses. meta.lua says which file has the other annotations.

---@class moongrid.Plan
local Plan = {} -- luacheck: ignore

---Return how the job goes on when some ranks are lost (src/survive/README.md). The recipe's policy on_lost decides,
---with the parameters of the plan. Raises for unknown ranks, for ranks given twice, and if the policy fails.
---@param what { ranks: integer[], how?: "replace"|"shrink"|"stop" } ranks: the lost ranks; how: the answer to use instead of
---that of the policy
---@return moongrid.Loss
function Plan:lose(what) end

---Return an object that computes many possible losses faster, because it makes each plan of fewer ranks only once.
---@param options? { how?: "replace"|"shrink"|"stop" }
---@return moongrid.Losses
function Plan:losses(options) end

---Return the ranks that hold the same part of a tensor as `rank`, with `rank` itself. Raises for an unknown tensor or
---rank.
---@param tensor string
---@param rank integer
---@return integer[]? ranks nil if `rank` holds nothing of the tensor
function Plan:holders(tensor, rank) end

---Return the first group of a family whose ranks hold all copies of some part of a tensor: if all ranks of the group
---are lost, the part is lost. Raises for an unknown tensor. O(ranks).
---@param tensor string
---@param family moongrid.Family of the same world, as the nodes of a machine
---@return integer? group nil if there is no such group, or if the tensor has only one copy
---@return integer? rank the first rank that holds such a part
function Plan:together(tensor, family) end

---@class moongrid.Losses
local Losses = {} -- luacheck: ignore

---As `plan:lose`.
---@param ranks integer[]
---@return moongrid.Loss
function Losses:lose(ranks) end

---Return only the sums of a loss, a table whose size does not depend on the world. Raises as `plan:lose`.
---@param ranks integer[]
---@return moongrid.LossSums
function Losses:sums(ranks) end

---The numbers of a moongrid.Loss. `kept`, `made` and `dropped` are those of its field `communicators`; `stay`, `moved`
---and `missing` those of its field `bytes`.
---@class moongrid.LossSums
---@field how "replace"|"shrink"|"stop"
---@field why string the reason to stop; "" if the job goes on
---@field params string[] parameters that changed, "dp=3"
---@field layout integer number of ranks of the new layout
---@field idle integer number of survivors that are in no family of the new layout
---@field kept integer
---@field made integer
---@field dropped integer
---@field stay integer
---@field moved integer
---@field missing integer
---@field uncounted integer number of tensors that only one of the two plans has, or that changed their shape

---How the job goes on after a loss. `tostring` gives the text that `moongrid lose` prints.
---@class moongrid.Loss
---@field how "replace"|"shrink"|"stop"
---@field why string the reason to stop; "" if the job goes on
---@field plan? moongrid.Plan of the survivors; nil after a stop
---@field lost integer[] ascending
---@field layout integer number of ranks of the new layout
---@field old_ranks integer[] the old rank of each rank of the plan, from rank 0 on
---@field idle integer[] old ranks of the survivors that are in no family of the new layout
---@field params string[] parameters that changed, "dp=3"
---@field digest? string of `plan`
---@field communicators { kept: integer, made: integer, dropped: integer, families: table<string, table> } numbers of communicators
---that stay, are made and are dropped, in all and by family
---@field bytes { stay: integer, moved: integer, missing: integer } bytes of tensors that stay where they are, move to another rank,
---or have no copy any more
---@field uncounted integer number of tensors that only one of the two plans has, or that changed their shape
---@field missing { tensor: string, range: string, bytes: integer, holders: integer[] }[] parts of which every copy is lost; `holders`: the lost ranks that held them
