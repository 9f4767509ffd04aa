-- SPDX-License-Identifier: MIT
--
-- nulls.lua HEADER...: C for test_nulls.c on stdout: for every function that the headers declare a caller,
-- which puts NULL in the place of one pointer, and a row in a table. A type that it does not know ends the build,
-- so a new function cannot be forgotten.

-- What a pointer of this type points to in a call that is right; `f` is the fixture.
local inputs = {
  ["mgrid_grid *"] = "f->grid", ["mgrid_family *"] = "f->family", ["mgrid_topology *"] = "f->topology",
  ["mgrid_plan *"] = "f->plan", ["mgrid_backend *"] = "f->backend", ["mgrid_state *"] = "f->state",
  ["mgrid_group *"] = "f->group", ["mgrid_runtime *"] = "f->runtime", ["mgrid_policy *"] = "f->policy",
  ["mgrid_family *const *"] = "f->families", ["char *const *"] = "f->names", ["char *"] = '"tp"',
  ["mgrid_dim *"] = "f->dims", ["mgrid_mode *"] = "f->modes", ["mgrid_arg *"] = "&f->arg",
  ["int64_t *"] = "f->numbers", ["void *"] = "f",
  ["mgrid_options *"] = "&f->options", ["mgrid_hooks *"] = "&f->hooks", ["mgrid_limits *"] = "&f->limits",
  ["mgrid_nccl_options *"] = "&f->nccl", ["mgrid_backend_options *"] = "&f->opened",
  ["mgrid_carrier *"] = "&f->carrier",
  ["mgrid_open_options *"] = "&f->opening", ["mgrid_site *"] = "&f->site",
  ["mgrid_function *"] = "&f->function", ["mgrid_error *"] = "&f->failed",
  ["mgrid_tensor *"] = "f->tensor", ["mgrid_tensor_axis *"] = "&f->axis", ["mgrid_move *"] = "f->move",
  ["mgrid_step_price_options *"] = "&f->pricing",
  ["mgrid_step *"] = "f->step", ["mgrid_step_follower *"] = "f->step_follower",
  ["mgrid_losses *"] = "f->losses", ["mgrid_loss *"] = "f->loss", ["mgrid_losses_options *"] = "&f->losing",
  ["mgrid_recover_options *"] = "&f->recovering",
  ["mgrid_enlarge_options *"] = "&f->enlarging",
  ["mgrid_move_options *"] = "&f->moving", ["mgrid_move_run_options *"] = "&f->running",
  ["mgrid_buffer *"] = "f->buffers", mgrid_piece_fn = "piece",
  ["mgrid_tensor *const *"] = "f->tensors_of", ["mgrid_machine_model *"] = "f->model",
  mgrid_sink = "sink", mgrid_pick_fn = "pick", mgrid_map_fn = "map",
}

-- Where a call writes: its results are 0xa5 before, and something else afterwards, also where it failed.
local outputs = {
  ["mgrid_family **"] = "f->out_families",
  ["mgrid_state **"] = "&f->out_state", ["const char **"] = "f->out_names", ["char *"] = "f->text",
  ["int64_t *"] = "f->out_numbers", ["size_t *"] = "&f->out_size",
  ["bool *"] = "&f->out_bool", ["int *"] = "&f->out_int", ["double *"] = "f->out_doubles", ["void *"] = "f",
  ["mgrid_plan_counts *"] = "&f->counts", ["mgrid_change *"] = "&f->change", ["mgrid_segment *"] = "&f->segment",
  ["mgrid_plan_checked *"] = "&f->checked",
  ["mgrid_machine *"] = "&f->machine", ["mgrid_gpu_memory *"] = "&f->memory",
  ["mgrid_resources *"] = "&f->resources", ["mgrid_error *"] = "err",
  ["mgrid_nccl_window *"] = "&f->window", ["mgrid_held_memory *"] = "&f->held",
  ["mgrid_tensor_part *"] = "&f->part", ["mgrid_run *"] = "f->runs", ["mgrid_move_descriptor *"] = "f->descriptors",
  ["mgrid_move_peer *"] = "&f->peer",
  ["mgrid_step_call *"] = "&f->call", ["mgrid_step_time *"] = "&f->step_time",
  ["mgrid_move_sums *"] = "&f->sums", ["mgrid_tensor **"] = "f->out_tensors",
  ["mgrid_loss_sums *"] = "&f->lost", ["mgrid_loss **"] = "&f->out_loss", ["mgrid_move **"] = "&f->out_move",
  ["mgrid_machine_level *"] = "&f->level", ["mgrid_machine_counts *"] = "&f->crossed",
}

-- Results that are lists, of which nothing is written.
local left = { ["f->list"] = true, ["f->out_names"] = true,
  ["f->out_doubles"] = true, ["f->runs"] = true, ["f->descriptors"] = true, f = true, err = true }

local numbers = { ["int64_t"] = "1", ["size_t"] = "1", bool = "false", mgrid_window = "mgrid_world(8)",
  mgrid_order = "MGRID_GRID_ORDER", mgrid_coverage = "MGRID_COVER", mgrid_status = "MGRID_OK", int = "0",
  mgrid_way = "MGRID_STAYS", mgrid_step_operation = "MGRID_STEP_BARRIER", mgrid_kind = "MGRID_IS_INTEGER" }

-- Arguments that are right for one function alone, by FUNCTION.PARAMETER.
local special = {
  ["mgrid_family_select.groups"] = "f->two", ["mgrid_family_renumber.n"] = "4", ["mgrid_family_locate.nth"] = "0",
  ["mgrid_topology_concurrent.n"] = "2", ["mgrid_grid_new.n"] = "2",
  ["mgrid_tensor_new.type"] = '"bf16"', ["mgrid_tensor_new.on"] = "NULL", ["mgrid_topology_add_tensor.name"] = '"more"',
  ["mgrid_plan_tensor.name"] = '"w"', ["mgrid_tensor_local.name"] = '"w"', ["mgrid_tensor_runs.name"] = '"w"',
  ["mgrid_losses_new.args"] = "f->settings", ["mgrid_loss_digest.out"] = "f->text",
  ["mgrid_loss_move.tensors"] = "f->tensors", ["mgrid_state_least.number"] = "f->list",
  ["mgrid_plan_why.b"] = "2", ["mgrid_tensor_runs.axis"] = "0", ["mgrid_move_peers.i"] = "0",
  ["mgrid_relabel.pieces"] = "8", ["mgrid_relabel.out"] = "f->list",
  ["mgrid_move_new.rank"] = "3", ["mgrid_move_new.tensors"] = "f->tensors",
  ["mgrid_state_move.tensors"] = "f->tensors", ["mgrid_move_new.to"] = "f->after",
  ["mgrid_backend_open.name"] = '"none of that name"', ["mgrid_family_parse.text"] = '"(2:1) x (4:2)"',
  ["mgrid_runtime_load.recipe"] = '"picotron"',
  ["mgrid_open.recipe"] = '"picotron"', ["mgrid_open.args"] = "f->settings", ["mgrid_reload.recipe"] = '"picotron"',
  ["mgrid_runtime_plan.args"] = "f->settings", ["mgrid_runtime_plan.file"] = "NULL",
  ["mgrid_runtime_load.text"] = "NULL", ["mgrid_runtime_load.length"] = "0",
  ["mgrid_reload.args"] = "f->settings",
  ["mgrid_runtime_ask.query"] = '"world_size"', ["mgrid_runtime_ask.answer"] = "&f->value",
  ["mgrid_policy_new.name"] = '"one"', ["mgrid_topology_add.name"] = '"more"',
  ["mgrid_topology_add_grid.name"] = '"more"', ["mgrid_runtime_plan.world"] = "8",
  ["mgrid_runtime_plan_values.world"] = "8", ["mgrid_backend_dry.world"] = "8",
  ["mgrid_machine_parse.text"] = '"node:2 gpu:4"', ["mgrid_machine_family.level"] = '"node"',
  ["mgrid_machine_open.source"] = '"node:2 gpu:4"', ["mgrid_machine_read.text"] = '"n0 slots=4"',
  ["mgrid_machine_read.length"] = "10",
  ["mgrid_machine_count.level"] = '"node"', ["mgrid_machine_family.world"] = "8",
  ["mgrid_machine_preset.text"] = "f->out_names + 1", ["mgrid_machine_preset.source"] = "f->out_names + 2",
  ["mgrid_plan_digest.out"] = "f->text", ["mgrid_step_digest.out"] = "f->text",
  ["mgrid_step_new.file"] = "NULL", ["mgrid_state_coord.grid"] = '"grid"', ["mgrid_state_submesh.grid"] = '"grid"',
  ["mgrid_plan_grid.name"] = '"grid"', ["mgrid_materialize.name"] = '"other"', ["mgrid_state_join.name"] = '"other"',
  ["mgrid_state_grow.name"] = '"other"', ["mgrid_group_window.name"] = '"kv"', ["mgrid_family_levels.sizes"] = "f->two",
  ["mgrid_family_segments.sizes"] = "f->two", ["mgrid_group_segment.sizes"] = "f->two",
  ["mgrid_family_split.outer"] = "f->out_families + 1",
  ["mgrid_policy_result.path"] = '"one"', ["mgrid_policy_result.result"] = "&f->value",
  ["mgrid_family_locate.position"] = "f->out_numbers + 1",
  ["mgrid_family_table.starts"] = "f->starts", ["mgrid_family_table.ranks"] = "f->ranks",
  ["mgrid_family_members.out"] = "f->list",
  ["mgrid_group_ranks.out"] = "f->list",
}

-- What frees the result of a call: most have a function of their name.
local frees = { mgrid_step_follower = 1, mgrid_machine_model = "mgrid_machine_free",
  mgrid_grid = 1, mgrid_family = 1, mgrid_topology = 1, mgrid_plan = 1, mgrid_backend = 1,
  mgrid_state = 1, mgrid_tensor = 1, mgrid_move = 1, mgrid_step = 1, mgrid_losses = 1, mgrid_loss = 1,
  mgrid_runtime = 1, mgrid_policy = 1 }

local borrowed = { mgrid_state_runtime = true, mgrid_state_backend = true }

local function unknown(what, where)
  io.stderr:write(("nulls.lua: %s has a %s, which it does not know\n"):format(where, what))
  os.exit(1)
end

local callers, rows = {}, {}

local lists = { ["mgrid_family *const *"] = "families", ["mgrid_tensor *const *"] = "tensors",
  ["char *const *"] = "names" }

-- The expression of an argument, whether it is a pointer, whether its object must be there, what it writes.
local function argument(call, ret_type, name, is_array)
  local key = call .. "." .. name
  local constant = ret_type:find "^const " and not ret_type:find "^const char %*%*"
  local type = constant and ret_type:gsub("^const ", "") or ret_type
  if numbers[type] then return { value = special[key] or numbers[type] } end
  if is_array then return { value = special[key], pointer = true } end
  local object = frees[type:match "^(mgrid_[a-z_]+) %*$" or ""] or type == "mgrid_group *"
  local value = special[key] or ((constant or object) and inputs[type]) or (not constant and outputs[type])
    or inputs[type] or unknown(type .. name, call)
  -- a struct has been set by its INIT macro, so a failed call may leave it
  local writes = not constant and not object and not left[value] and not type:find "^mgrid_[a-z_]+ %*$"
    and (outputs[type] == value or type:find "%*%*$")
  local list = lists[type]
  return { value = value, pointer = true, list = list, object = object, writes = writes and value,
    error = value == "err" }
end

for _, header in ipairs(arg) do
  local text = io.open(header):read("a"):gsub("/%*.-%*/", " "):gsub("\n#[^\n]*", "\n")
  for returns, call, params in text:gmatch "MGRID_API%s+([^;(]-)%s*(mgrid_[%w_]+)(%b())%s*;" do
    local args, places, n = {}, {}, 0
    local writes = {}
    for param in (params:sub(2, -2) .. ","):gmatch "%s*(.-)%s*," do
      local type, name, array = param:match "^(.-)%s*([%w_]+)(%[?%d*%]?)$"
      if param ~= "void" then
        type = type:gsub("%s+", " ")
        local a = argument(call, type, name, array ~= "")
        local place = a.value
        if a.pointer then
          n = n + 1
          place = ("null == %d ? NULL : %s"):format(n, a.value)
          places[n] = ('{ "%s", %s, %s }'):format(name, a.object and "true" or "false", a.error and "true" or "false")
          if a.list then -- and a list of NULLs
            n = n + 1
            place = ("null == %d ? f->nothing_%s : %s"):format(n, a.list, place)
            places[n] = ('{ "%s[0]", %s, false }'):format(name, a.list ~= "names" and "true" or "false")
          end
          if a.writes then writes[#writes + 1] = ("(null != %d && !is_set(%s))"):format(n, a.writes) end
        end
        args[#args + 1] = place
      end
    end
    local ret = returns:gsub("%s+", " ")
    local freed = call:match "^mgrid_([a-z_]+)_free$"
    local made = ret:match "^(mgrid_[a-z_]+) %*$"
    local line = ("%s(%s)"):format(call, table.concat(args, ", "))
    local body = {}
    local function add(format, ...) body[#body + 1] = "  " .. format:format(...) .. ";\n" end
    if freed == "state" or call == "mgrid_state_leave" then
      add "if (null != 1) mgrid_policy_free(f->policy), f->policy = NULL"
    end
    if made and frees[made] and not borrowed[call] then
      add("%s *r = %s", made, line)
      add "a.made = true, a.failed = !r"
      add("%s(r)", type(frees[made]) == "string" and frees[made] or made .. "_free")
    elseif ret == "mgrid_status" then
      add("a.is_status = true, a.status = %s", line)
      add "a.failed = a.status != MGRID_OK"
    else
      add(ret == "void" and "%s" or "(void)%s", line)
    end
    if #writes > 0 then add("a.unset = a.failed && (%s)", table.concat(writes, " || ")) end
    if freed then add("if (null != 1) f->%s = NULL", freed == "machine" and "model" or freed) end
    if call == "mgrid_state_leave" then add "if (!a.failed) f->state = NULL" end
    callers[#callers + 1] = ("static answer call_%s(fixture *f, int null, mgrid_error *err) {\n"):format(call)
      .. "  answer a = { .failed = false };\n  (void)f, (void)null, (void)err;\n" .. table.concat(body)
      .. "  return a;\n}\n"
    if n == 0 then places[1] = "{ NULL, false, false }" end
    rows[#rows + 1] = ('  { "%s", call_%s, %d, { %s } },\n'):format(call, call, n, table.concat(places, ", "))
  end
end

io.write("/* Made by tests/c/nulls.lua; do not edit. */\n", table.concat(callers, "\n"),
  "\nstatic const function functions[] = {\n", table.concat(rows), "};\n")
