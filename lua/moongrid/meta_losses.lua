---@meta moongrid.losses
-- SPDX-License-Identifier: MIT
--
-- Annotations for lost ranks: plan:lose and plan:losses. meta.lua has the rest.

---@class moongrid.Plan
local Plan = {} -- luacheck: ignore

---Return how the job goes on when these ranks are lost (src/survive/README.md). The recipe of the plan decides, with
---the parameters of the plan. Raises for unknown ranks, ranks given twice, and a policy on_lost that fails.
---@param what { ranks: integer[], how?: "replace"|"shrink"|"stop" } `how` instead of asking the policy
---@return moongrid.Loss
function Plan:lose(what) end

---Return an object that computes many possible losses faster: it makes each plan of fewer ranks only once.
---@param options? { how?: "replace"|"shrink"|"stop" }
---@return moongrid.Losses
function Plan:losses(options) end

---Return the ranks that hold the same part of a tensor as this one, which is among them; nil if it holds nothing.
---Raises for an unknown tensor or rank.
---@param tensor string
---@param rank integer
---@return integer[]?
function Plan:holders(tensor, rank) end

---Return the first group of a family that has all copies of some part of a tensor, and the first rank with such a part;
---nil if there is no such group, or if there is only one copy. If all ranks of the group are lost, the part is lost.
---Raises for an unknown tensor. O(ranks).
---@param tensor string
---@param family moongrid.Family of the same world, as the nodes of a machine
---@return integer? group
---@return integer? rank
function Plan:together(tensor, family) end

---@class moongrid.Losses
local Losses = {} -- luacheck: ignore

---As `plan:lose`.
---@param ranks integer[]
---@return moongrid.Loss
function Losses:lose(ranks) end

---Return only the sums of a loss, whose size does not depend on the world. Raises as `plan:lose`.
---@param ranks integer[]
---@return moongrid.LossSums
function Losses:sums(ranks) end

---The sums of a loss. kept, made, dropped: communicators; stay, moved, missing: bytes; all as in moongrid.Loss.
---@class moongrid.LossSums
---@field how "replace"|"shrink"|"stop"
---@field why string the reason of a stop
---@field params string[]
---@field layout integer
---@field idle integer how many ranks
---@field kept integer
---@field made integer
---@field dropped integer
---@field stay integer
---@field moved integer
---@field missing integer
---@field uncounted integer

---`tostring` gives the text that `moongrid lose` prints.
---@class moongrid.Loss
---@field how "replace"|"shrink"|"stop"
---@field why string the reason of a stop
---@field plan? moongrid.Plan of the survivors; nil after a stop
---@field lost integer[] ascending
---@field layout integer ranks of the new layout
---@field old_ranks integer[] the old rank of each rank of the plan, from rank 0 on
---@field idle integer[] survivors in no family of the new layout, by old rank
---@field params string[] parameters that changed, "dp=3"
---@field digest? string of the plan
---@field communicators { kept: integer, made: integer, dropped: integer, families: table<string, table> }
---@field bytes { stay: integer, moved: integer, missing: integer }
---@field uncounted integer number of tensors that only one of the two plans has, or that changed their shape
---@field missing { tensor: string, range: string, bytes: integer, holders: integer[] }[] parts without a copy
