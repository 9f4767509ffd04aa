-- SPDX-License-Identifier: MIT
--
-- Cases of the recipe deepspeed_topology for systems_spec.lua, which explains the fields.

local none = (...).none -- as an override: the parameter is left out

return {
  refused = {
    { "two ways to say it", { axes = "pipe-data", dims = { 2, 4 }, num_pp = 4 }, words = { "axes", "dims", "num_pp 4" },
      would = { { num_pp = none }, { axes = none, dims = none } } },
    { "axes that are not names", { axes = 5, dims = { 8 } }, "parameter 'axes' is a list of names, each once (tp-dp), not 5",
      would = { { axes = "pipe-data-model", dims = { 2, 2, 2 } } } },
    { "axes that are a list of numbers", { axes = { 5 }, dims = { 8 } }, words = { "axes", "5" } },
    { "dims without axes", { dims = { 8 } }, "axes is missing; names such as pipe-data-model would do",
      would = { { axes = "pipe-data-model", dims = { 2, 2, 2 } } } },
    { "axes without dims", { axes = "pipe-data" }, "dims has 0 sizes for the 2 axes pipe-data; a size for each would do",
      would = { { dims = { 2, 4 } } } },
    { "more dims than axes", { axes = { "pipe", "data" }, dims = { 2, 2, 2 } },
      "dims has 3 sizes for the 2 axes pipe-data; a size for each would do", would = { { dims = { 2, 4 } } } },
    { "another topology", { topology = "PipeTopology" }, "topology 'PipeTopology' is unknown; PipeDataParallelTopology or "
      .. "PipeModelDataParallelTopology would do", would = { { topology = "PipeDataParallelTopology" },
                                                             { topology = "PipeModelDataParallelTopology" } } },
    { "a model axis of a topology without one", { topology = "PipeDataParallelTopology", num_mp = 2 },
      "num_mp 2: topology PipeDataParallelTopology has no model axis; PipeModelDataParallelTopology would do",
      would = { { topology = "PipeModelDataParallelTopology" } } },
    { "an axis twice", { axes = "pipe-data-pipe", dims = { 2, 2, 2 } }, "parameter 'axes' is a list of names, each once (tp-dp), not 'pipe-data-pipe'",
      would = { { axes = "pipe-data-model" } } },
    { "an axis of size 0 (dt-049)", { axes = "pipe-data-model", dims = { 2, 0, 2 } },
      "dims: axis 'data' has size 0; 1 or more would do" },
    { "no data (dt-044)", { axes = "pipe-model", dims = { 4, 2 } }, "axes pipe-model: the groups of a pipeline need axis 'data'; "
      .. "'data-pipe-model' would do, with its size 1, or grid=false", would = { { axes = "data-pipe-model", dims = { 1, 4, 2 } }, { grid = false } } },
    { "another world (dt-045)", { axes = "pipe-data", dims = { 4, 3 } },
      "data 3 x pipe 4 = 12 does not make the 8 ranks; nearest: data 2, or a world of 12 ranks", would = { { dims = { 4, 2 } } } },
    { "another world of stages (dt-047)", { num_pp = 2, num_dp = 2 },
      "data 2 x pipe 2 = 4 does not make the 8 ranks; nearest: data 4, or a world of 4 ranks", would = { { num_dp = 4 } } },
    { "a question without its coordinate", ask = "axis_list", q = { axis = "data" },
      message = "idx is missing; a coordinate such as 0 would do" },
  },
  layouts = { { num_pp = 2, num_mp = 2 }, {}, { pp = 4 }, { topology = "PipeModelDataParallelTopology", tp = 4 }, { mp = 1, pp = 8 },
              { grid = false } },
  asks = { { { axis = "pipe", idx = 1 } }, rank = { { pipe = 1, data = 0, model = 1 } }, filter_match = { { pipe = 1 }, {} },
           stage_to_global = { { stage_id = 1 }, { stage_id = 0, data = 1 } }, rank_repr = { {}, { omit_axes = { "data" } } } },
  values = { num_pp = { 2 }, num_mp = { 2 }, num_dp = { 8 } },
}
