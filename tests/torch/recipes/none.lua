-- No family at all: a plan that is true to Python nevertheless.
return recipe { build = function(world) return topology(world) end }
