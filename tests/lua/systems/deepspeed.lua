-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe deepspeed for systems_spec.lua, which explains the fields.

local none = (...).none -- as an override: the parameter is left out

return {
  refused = {
    { "an unknown dim", { order = "tp-xx" }, "order 'tp-xx': unknown dim 'xx'; known: tp, sp, cp, ep, dp, pp" },
    { "a dim twice", { order = "tp-dp-TP" }, "order 'tp-dp-TP': dim 'tp' occurs twice; name each once" },
    { "sequence parallelism without a place (pr-070)", { sp = 2 }, "order 'tp-ep-dp-pp' lacks dim 'sp' of size 2, whose place is "
      .. "never guessed; 'sp-tp-ep-dp-pp' would do", would = { { order = "sp-tp-ep-dp-pp" } } },
    { "data without a place", { order = "tp-pp", tp = 2 }, "order 'tp-pp' lacks dim 'dp' of size 4, whose place is "
      .. "never guessed; 'dp-tp-pp' would do", would = { { order = "dp-tp-pp" } } },
    { "sequence and tensor parallelism", { sp = 2, tp = 2, order = "sp-tp-dp-pp" }, "sequence_parallel_size 2 excludes tensor, "
      .. "pipeline and expert parallelism (tp 2, pp 1, ep 1, etp 2); set those to 1, or sp to 1",
      would = { { tp = 1 }, { sp = 1 } } },
    { "sequence and expert parallelism (pr-036)", { sp = 2, ep = 2, order = "sp-ep-dp-pp" }, "sequence_parallel_size 2 excludes "
      .. "tensor, pipeline and expert parallelism (tp 1, pp 1, ep 2, etp 1); set those to 1, or sp to 1", would = { { ep = 1 } } },
    { "interleaving of 1 stage", { vpp = 2 },
      "virtual_pipeline_model_parallel_size 2 needs more than 1 pipeline stage; nearest is pp 2", would = { { pp = 2 } } },
    { "another backend of the pipeline", { pipeline_model_parallel_comm_backend = "gloo" },
      "pipeline_model_parallel_comm_backend 'gloo' is not supported; 'nccl' or 'ucc' would do",
      would = { { pipeline_model_parallel_comm_backend = "nccl" }, { pipeline_model_parallel_comm_backend = "ucc" } } },
    { "levels that do not make cp", { hcp = { 2, 4 }, cp = 4, order = "cp-dp" }, "hierarchical_context_parallel_sizes {2,4}: "
      .. "sizes that multiply to context_parallel_size 4 would do, such as {4}", would = { { hcp = { 4 } } } },
    { "no levels", { hcp = {} }, "hierarchical_context_parallel_sizes {}: sizes that multiply to context_parallel_size 1 "
      .. "would do, such as {1}", would = { { hcp = { 1 } } } },
    { "negative levels", { hcp = { -2, -2 }, cp = 4, order = "cp-dp" }, "hierarchical_context_parallel_sizes {-2,-2}: "
      .. "sizes that multiply to context_parallel_size 4 would do, such as {4}" },
    { "levels beyond 64 bits", { hcp = { 3, 6148914691236517206 }, cp = 2, order = "cp-dp" },
      words = { "hierarchical_context_parallel_sizes", "context_parallel_size 2" } },
    { "a stage there is not", { get_embedding_ranks = { 2 }, pp = 2 },
      "get_embedding_ranks: 2 is not a stage; 0 to 1 would do, or -1",
      would = { { get_embedding_ranks = { 0, 1 } }, { get_embedding_ranks = { -1 } } } },
    { "a stage before the first", { get_position_embedding_ranks = { -3 }, pp = 2 },
      "get_position_embedding_ranks: -3 is not a stage; 0 to 1 would do, or -1" },
    { "no stage at all", { get_embedding_ranks = {}, pp = 2 }, words = { "get_embedding_ranks", "would do" } },
    { "no stage of positions at all", { get_position_embedding_ranks = {}, pp = 2 }, words = { "get_position_embedding_ranks", "would do" } },
    { "a priority that is not a list", { high_priority_stream_groups = 5 },
      "parameter 'high_priority_stream_groups' is a list of names, each once (tp-dp), not 5", would = { { high_priority_stream_groups = { "tp" } } } },
    { "a priority of no family", { high_priority_stream_groups = { "tpx" } }, words = { "high_priority_stream_groups", "'tpx'", "'tp'" } },
    { "a priority of a grid", { high_priority_stream_groups = { "dense" } }, words = { "high_priority_stream_groups", "'dense'" } },
    { "priorities by name", { high_priority_stream_groups = { tp = true } }, words = { "high_priority_stream_groups" } },
    { "options of no family", { nccl_communicator_config = { tpx = { max_ctas = 8 } } },
      words = { "nccl_communicator_config", "'tpx'", "'tp'" } },
    { "options of a grid", { nccl_communicator_config = { dense = { max_ctas = 8 } } }, words = { "nccl_communicator_config", "'dense'" } },
    { "options that are not a table", { nccl_communicator_config = { tp = 5 } }, words = { "nccl_communicator_config", "tp", "5" } },
    { "a negative timeout", { distributed_timeout_minutes = -1 }, words = { "distributed_timeout_minutes", "-1" } },
    { "stages that differ between the grids (pr-087)", { order = "tp-ep-pp-dp", pp = 2, ep = 2 }, "order 'tp-ep-pp-dp' gives "
      .. "dense and expert layers different pipeline groups, so experts would cross stages; an order that ends in pp would do",
      would = { { order = "tp-ep-dp-pp" } } },
    { "instances that do not divide", { instances = 4, ep = 4 }, "num_distributed_optimizer_instances 4 does not divide the "
      .. "data-parallel sizes (dense 8, expert 2); 2 would do", would = { { instances = 2 } } },
    { "instances that differ between the grids", { instances = 2, ep = 2, order = "tp-dp-ep-pp" }, "order 'tp-dp-ep-pp' gives "
      .. "dense and expert layers different ranks in each of 2 optimizer instances; num_distributed_optimizer_instances 1, "
      .. "or dp last but for pp, would do", would = { { instances = 1 }, { order = "tp-ep-dp-pp" } } },
    { "instances without a rule", { instances = 2, cp = 2, tp = 2, order = "dp-tp-cp-pp" }, "order 'dp-tp-cp-pp' gives "
      .. "dense and expert layers different ranks in each of 2 optimizer instances; num_distributed_optimizer_instances 1, "
      .. "or dp last but for pp, would do", would = { { instances = 1 }, { order = "tp-cp-dp-pp" } } },
    { "nodes that do not divide (pr-058)", { devices_per_node = 3 },
      "device_count 3 does not divide the 8 ranks; nearest: device_count 2 or 4, or a world of 6 or 9 ranks",
      would = { { devices_per_node = 2 }, { devices_per_node = 4 } } },
    { "a config whose section is not a table", { config = { tensor_parallel = 5 } },
      "config: tensor_parallel is 5, not a table; {\"autotp_size\":2} would do",
      would = { { config = { tensor_parallel = { autotp_size = 2 } } } } },
    { "a config that contradicts itself", { config = { tensor_parallel = { autotp_size = 2 }, tensor_model_parallel_size = 4 } },
      "config: tensor_parallel.autotp_size is 2, but tensor_model_parallel_size is 4; one of them would do",
      would = { { config = { tensor_parallel = { autotp_size = 2 } } }, { config = { tensor_model_parallel_size = 4 } } } },
    { "context parallelism from a config (pr-083)", { config = { context_parallel_size = 2, order = "cp-dp" } }, "with a config "
      .. "there is no context parallelism (context_parallel_size 2); leave out its sizes, or the config",
      would = { { config = { order = "cp-dp" } }, { config = none, order = "cp-dp", cp = 2 } } },
    { "levels from a config", { config = { hierarchical_context_parallel_sizes = { 2 } } },
      words = { "config", "hierarchical_context_parallel_sizes" }, would = { { config = {} } } },
    { "a size of a config", { config = { tensor_parallel = { autotp_size = 0 } } },
      "config: tensor_parallel.autotp_size is 0; an integer of 1 or more would do",
      would = { { config = { tensor_parallel = { autotp_size = 1 } } } } },
    { "a size of a config that is a word", { config = { tensor_parallel = { autotp_size = "two" } } },
      "config: tensor_parallel.autotp_size is two; an integer of 1 or more would do" },
    { "a section of an earlier revision", { config = { parallelism = { tensor_model_parallel_size = 2 } } },
      "config: section 'parallelism' is of an earlier revision, and nothing reads it; put its keys at the top level",
      would = { { config = { tensor_model_parallel_size = 2 } } } },
    { "a priority that is a number", { nccl_communicator_config = { tp = { is_high_priority_stream = 1 } } },
      "nccl_communicator_config for 'tp': is_high_priority_stream is 1; true or false would do",
      would = { { nccl_communicator_config = { tp = { is_high_priority_stream = true } } } } },
    { "a size that does not divide", { tp = 3 }, "tp 3 does not divide the 8 ranks; nearest: tp 2 or 4, or a world of 6 or 9 ranks" },
    { "a virtual stage that there is not", params = { vpp = 2, pp = 2 }, ask = "virtual_pipeline_model_parallel_rank",
      q = { vp_stage = 5 }, message = "vp_stage is a virtual stage from 0 to 1, not 5" },
    { "NCCL options twice", { nccl_communicator_config = { tp = { max_ctas = 8 } }, nccl_communicator_config_path = "{}" },
      "nccl_communicator_config and nccl_communicator_config_path are both given; one of them would do",
      would = { { nccl_communicator_config = none }, { nccl_communicator_config_path = none } } },
    { "a start from a config without one", { from_config = true },
      "from_config is true, but there is no config; a DeepSpeed config, or the path of one, would do",
      would = { { config = {} }, { from_config = none } } },
    { "a config that is not there", { config = "/nowhere.json" },
      "parameter 'config': cannot open /nowhere.json: No such file or directory" },
    { "a group of nodes without nodes", get = "get_all_to_all_groups", q = { between_nodes = true },
      message = "getter 'get_all_to_all_groups': there is no family 'all_to_all_global' in this plan; it is there with "
        .. "device_count, and more nodes than one" },
    { "a sequence-parallel group without sequence parallelism", get = "get_sequence_parallel_group",
      message = "getter 'get_sequence_parallel_group': there is no such group with these parameters" },
    { "a partial question without context parallel", ask = "data_parallel_rank", q = { partial_data_parallel = true },
      message = "partial_data_parallel needs with_context_parallel; there are no groups without it" },
  },
  layouts = { { tp = 2, pp = 2, ep = 2 }, {}, { sp = 4, order = "sp-dp-pp" }, { cp = 4, hcp = { 2, 2 }, order = "cp-tp-ep-dp-pp" },
              { ep = 4, instances = 2 }, { tp = 2, etp = 1, ep = 2, devices_per_node = 4 },
              { config = { tensor_parallel = { autotp_size = 2 } } }, { pp = 2, vpp = 2 },
              { cp = 2, pp = 2, order = "tp-cp-ep-pp-dp" } },
  asks = { { {}, { with_context_parallel = true, partial_data_parallel = true, partial_expert_data_parallel = true } } },
  values = { tensor_model_parallel_size = { 2 }, pipeline_model_parallel_size = { 2 }, context_parallel_size = { 2, { order = "cp-dp" } },
             virtual_pipeline_model_parallel_size = { 2, { pp = 2 } }, sequence_parallel_size = { 2, { order = "sp-dp" } },
             hierarchical_context_parallel_sizes = { { 2, 2 }, { cp = 4, order = "cp-dp" } }, expert_model_parallel_size = { 2 },
             expert_tensor_parallel_size = { 2 }, num_distributed_optimizer_instances = { 2 }, device_count = { 4 } },
}
