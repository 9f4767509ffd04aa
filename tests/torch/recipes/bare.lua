-- Megatron's groups without those of context parallelism: a mesh over its grid cannot be made.
return recipe {
  base = "megatron",
  build = function(_, _, t)
    t.cp = nil
    return t
  end,
}
