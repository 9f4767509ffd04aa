-- SPDX-License-Identifier: MIT
--
-- calls.lua HEADER...: C for calls.c on stdout: for every function that the headers declare a caller whose arguments
-- are taken from the input, and a row in a table. A type that it does not know ends the build, so that a new
-- function cannot be forgotten.

-- Counted or owned objects, which are in pools.
local objects = { grid = 1, family = 1, topology = 1, plan = 1, backend = 1, state = 1, runtime = 1, policy = 1,
  tensor = 1, move = 1, step = 1, step_follower = 1, group = 1, machine_model = 1, losses = 1, loss = 1 }

-- How an argument is drawn, by its type without const.
local inputs = {
  ["mgrid_family *const *"] = "draw_families(z)", ["mgrid_tensor *const *"] = "draw_tensors(z)",
  ["char *const *"] = "draw_names(z)", ["char *"] = "draw_text(z)",
  ["mgrid_dim *"] = "draw_dims(z)", ["mgrid_mode *"] = "draw_modes(z)", ["mgrid_arg *"] = "draw_args(z)",
  ["int64_t *"] = "draw_numbers(z)", ["void *"] = "z",
  ["mgrid_options *"] = "draw_options(z)", ["mgrid_hooks *"] = "draw_hooks(z)", ["mgrid_limits *"] = "draw_limits(z)",
  ["mgrid_site *"] = "draw_site(z)", ["mgrid_error *"] = "draw_failed(z)", ["mgrid_carrier *"] = "draw_carrier(z)",
  ["mgrid_nccl_options *"] = "draw_nccl(z)", ["mgrid_tensor_axis *"] = "draw_axes(z)",
  ["mgrid_move_options *"] = "draw_how_to_move(z)", ["mgrid_backend_options *"] = "draw_backend_options(z)",
  ["mgrid_move_run_options *"] = "draw_how_to_run(z)", ["mgrid_open_options *"] = "draw_opening(z)",
  ["mgrid_function *"] = "draw_function(z)", ["mgrid_step_price_options *"] = "draw_how_to_price(z)",
  ["mgrid_losses_options *"] = "draw_how_to_lose(z)", ["mgrid_recover_options *"] = "draw_how_to_recover(z)",
  ["mgrid_enlarge_options *"] = "draw_how_to_enlarge(z)",
  mgrid_sink = "take_text", mgrid_pick_fn = "pick", mgrid_map_fn = "map", mgrid_piece_fn = "take_piece",
  ["int64_t"] = "draw_number(z)", ["size_t"] = "draw_count(z)", bool = "draw_bool(z)", mgrid_window = "draw_window(z)",
  mgrid_order = "(mgrid_order)below(&z->b, 3)", mgrid_coverage = "(mgrid_coverage)below(&z->b, 4)",
  mgrid_status = "(mgrid_status)draw_number(z)", int = "(int)draw_number(z)", mgrid_way = "(mgrid_way)below(&z->b, 4)",
  mgrid_step_operation = "(mgrid_step_operation)below(&z->b, 13)",
  mgrid_kind = "(mgrid_kind)below(&z->b, 11)",
}

-- Where a call writes.
local outputs = {
  ["mgrid_family **"] = "z->out_families", ["mgrid_tensor **"] = "z->out_tensors",
  ["mgrid_state **"] = "&z->out_state",
  ["mgrid_loss **"] = "&z->out_loss", ["mgrid_move **"] = "&z->out_move",
  ["const char **"] = "z->out_names", ["char *"] = "z->text",
  ["int64_t *"] = "z->out_numbers", ["size_t *"] = "&z->out_size",
  ["bool *"] = "&z->out_bool", ["double *"] = "z->out_doubles", ["mgrid_run *"] = "z->runs",
  ["mgrid_move_descriptor *"] = "z->descriptors", ["void *"] = "z",
  ["mgrid_arg *"] = "&(mgrid_arg)MGRID_ARG_INIT",
  ["int *"] = "&z->out_int", ["mgrid_error *"] = "err",
}
for _, struct in ipairs { "plan_counts", "change", "segment", "plan_checked", "machine", "gpu_memory",
  "resources", "step_call", "step_time",
  "tensor_part", "machine_level", "machine_counts", "move_peer", "move_sums", "held_memory",
  "nccl_window", "loss_sums" } do
  outputs[("mgrid_%s *"):format(struct)] = ("&(mgrid_%s)MGRID_%s_INIT"):format(struct, struct:upper())
end

-- Arguments of one function, by FUNCTION.PARAMETER or PARAMETER.
local special = {
  world = "draw_world(z)", path = "draw_path(z)", ["mgrid_family_levels.n"] = "below(&z->b, ROOM)",
  ["mgrid_backend_open.name"] = "draw_opened(z)", ["mgrid_runtime_load.recipe"] = "draw_recipe(z)",
  ["mgrid_reload.recipe"] = "draw_recipe(z)", ["mgrid_open.recipe"] = "draw_recipe(z)",
  ["mgrid_runtime_load.text"] = "below(&z->b, 2) ? draw_source(z) : NULL",
  ["mgrid_runtime_load.length"] = "a2 ? z->source : 0",
  ["mgrid_plan_read.length"] = "a0 ? strlen(a0) : draw_count(z)",
  ["mgrid_runtime_plan.file"] = "draw_table(z)",
  ["mgrid_family_table.ranks"] = "draw_ranks(z)",
  ["mgrid_family_table.ngroups"] = "(int64_t)below(&z->b, 6)", ["mgrid_family_table.starts"] = "draw_starts(z)",
  ["mgrid_family_split.outer"] = "z->out_families + 1",
  ["mgrid_family_locate.position"] = "z->out_numbers + 1", ["mgrid_group_shift.dest"] = "z->out_numbers + 1",
  ["mgrid_family_members.cap"] = "below(&z->b, RANKS / 16) * 16", ["mgrid_family_members.out"] = "z->out_ranks",
  ["mgrid_group_ranks.cap"] = "below(&z->b, RANKS / 16) * 16", ["mgrid_group_ranks.out"] = "z->out_ranks",
  ["mgrid_relabel.kept"] = "z->out_numbers + ROOM - 1",
  ["mgrid_machine_parse.text"] = "draw_machine(z)", ["mgrid_machine_open.source"] = "draw_machine(z)",
  ["mgrid_machine_read.length"] = "a0 ? strlen(a0) : draw_count(z)",
  ["mgrid_machine_preset.text"] = "z->out_names + 1", ["mgrid_machine_preset.source"] = "z->out_names + 2",
  ["mgrid_backend_over.carrier"] = "draw_dry(z)", ["mgrid_move_run.from"] = "draw_buffers(z, 0)",
  ["mgrid_move_run.to"] = "draw_buffers(z, 1)",
}

-- NULL is not a failure: the rank may be outside.
local may_be_null = { mgrid_state_submesh = true }

-- Results that stay their owner's.
local borrowed = { mgrid_state_runtime = true, mgrid_state_backend = true }

local function unknown(what, where)
  io.stderr:write(("calls.lua: %s has a %s, which it does not know\n"):format(where, what))
  os.exit(1)
end

local callers, rows = {}, {}
for _, header in ipairs(arg) do
  local text = io.open(header):read("a"):gsub("/%*.-%*/", " "):gsub("\n#[^\n]*", "\n")
  for returns, call, params in text:gmatch "MGRID_API%s+([^;(]-)%s*(mgrid_[%w_]+)(%b())%s*;" do
    local ret = returns:gsub("%s+", " ")
    local body, args = {}, {}
    local function add(format, ...) body[#body + 1] = "  " .. format:format(...) .. "\n" end
    local leaves = call == "mgrid_state_leave" -- frees it, if it succeeds
    local freed = call:match "^mgrid_([a-z_]+)_free$" or leaves
    local made = ret:gsub("^const ", ""):match "^mgrid_([a-z_]+) %*$"
    if not objects[made] then made = nil end -- a struct of a result
    for param in (params:sub(2, -2) .. ","):gmatch "%s*(.-)%s*," do
      local full, name, array = param:match "^(.-)%s*([%w_]+)(%[?%d*%]?)$"
      if param ~= "void" then
        full = full:gsub("%s+", " ")
        local constant = full:find "^const " and not full:find "^const char %*%*"
        local type = constant and full:gsub("^const ", "") or full
        local object = type:match "^mgrid_([a-z_]+) %*$"
        local value = special[call .. "." .. name]
        if not value and array ~= "" then value = "z->text"
        elseif not value and object and objects[object] then
          value = freed and ("take_%s(z)"):format(object) or ("draw_%s(z)"):format(object)
        elseif not value then
          value = special[name] and (type == "char *" or type == "int64_t") and special[name]
            or (constant or not type:find "%*$") and inputs[type] or outputs[type] or inputs[type]
            or unknown(param, call)
        end
        if full:find "%*%*$" then full = full .. "const " end
        if array ~= "" then full = full .. " *" end
        add("%s a%d = %s;", full, #args, value)
        args[#args + 1] = "a" .. #args
      end
    end
    local line = ("%s(%s)"):format(call, table.concat(args, ", "))
    if leaves then add "z->null = !a0;" end -- which is not an error of its own
    add "begin(z);"
    if made then
      add("%smgrid_%s *r = %s;", made == "group" and "const " or "", made, (ret:find "^const " and made ~= "group")
        and ("(mgrid_%s *)%s"):format(made, line) or line)
      local fails = made ~= "group" and not ret:find "^const " and not may_be_null[call] and not borrowed[call]
      add("end(z, %s);", fails and "!r" or "false")
      if borrowed[call] or ret:find "^const " and made ~= "group" and not call:find "_ref$" then
        add("if (r) r = mgrid_%s_ref(r);", made == "machine_model" and "machine" or made) -- borrowed
      end
      add("put_%s(z, r);", made)
    elseif ret == "mgrid_status" then
      add("mgrid_status s = %s;", line)
      add "end(z, s != MGRID_OK);"
      if leaves then add "if (s) put_state(z, a0);" end
    elseif ret == "const char *" then
      add("const char *r = %s;", line)
      add "end(z, false), touch(r);"
    elseif ret == "const char *const *" then
      add("const char *const *r = %s;", line)
      add "end(z, false), touch(*r);"
    else
      add("%s%s;", ret == "void" and "" or "(void)", line)
      add "end(z, false);"
    end
    add "put_outputs(z);"
    callers[#callers + 1] = ("static void call_%s(fuzz *z) {\n  mgrid_error *err = draw_error(z);\n  (void)err;\n%s}\n")
      :format(call, table.concat(body))
    rows[#rows + 1] = ('  { "%s", call_%s },\n'):format(call, call)
  end
end

io.write("/* Made by tests/fuzz/calls.lua; do not edit. */\n", table.concat(callers, "\n"),
  "\nstatic const function functions[] = {\n", table.concat(rows), "};\n")
