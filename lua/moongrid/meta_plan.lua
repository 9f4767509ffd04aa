---@meta moongrid
-- SPDX-License-Identifier: MIT
--
-- Annotations of what a plan tells about its parameters, its communicators, and what NCCL needs for them. meta.lua has the
-- rest.

---@class moongrid.PlanParam
---@field name string
---@field value string as text; `short` has no more digits than read back the same
---@field short string
---@field usual boolean the value is the default
---@field unread boolean build did not read it

---@class moongrid.Plan
local Plan = {} -- luacheck: ignore

---Tell what makes the communicators of a family. needed: it has groups of two or more; made: and its backend is not
---"none"; own: how many groups have a communicator that no earlier family makes; shares: as `Plan:shares`; options: as text.
---@param family string
---@return { needed: boolean, made: boolean, own: integer, shares: string?, options: string }
function Plan:communicators(family) end

---Count the ranks that are in no group.
---@return integer? count nil: the world is too large to tell
---@return string which "6, 8 to 15, ..."
---@return boolean allowed the recipe says that this is meant
function Plan:idle() end

---Name the options of families that a backend does not support.
---@param backend? string makes the families that ask for no other; left out: that which jobs use without NCCL
---@return string options "timeout of 3 families, nccl of 1 family"; "": none
---@return string backend its name
function Plan:unheeded(backend) end

---The machines on which a plan will run, for what NCCL needs.
---@class moongrid.Site
---@field machine_ranks? integer ranks of a machine, 1 to 4096; 8
---@field no_nvls? boolean GPUs of a machine lack NVLink SHARP
---@field min_ctas? integer of NCCL_MIN_CTAS, which overrides that of families
---@field max_ctas? integer of NCCL_MAX_CTAS

---Predict what the NCCL communicators of a rank take, lazy ones included, or the most of any rank (src/comm/README.md).
---@param rank? integer
---@param site? moongrid.Site
---@return moongrid.Resources
function Plan:resources(rank, site) end

---In bytes of GPU memory, but where it says something else.
---@class moongrid.Resources
---@field machine_ranks integer of the site
---@field sampled boolean only some machines of a large world were looked at
---@field communicators integer how many
---@field created integer when they are made
---@field nvls_created integer besides, with NVLink SHARP
---@field ring integer more, when all are first used in rings,
---@field tree integer then in trees,
---@field nvls integer with NVLink SHARP,
---@field p2p integer and for messages between all members
---@field blocks integer SMs that its kernels take at once
---@field nvls_slots integer multicast objects, on the GPUs of a machine
---@field files integer file descriptors of the process

---List the families that share communicators, and what each of them would take of its own.
---@param site? moongrid.Site
---@return { families: string[], created: integer, ring: integer }[]
function Plan:sharing(site) end
