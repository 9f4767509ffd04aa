-- SPDX-License-Identifier: MIT
--
-- annotations.lua: read lua/moongrid/meta*.lua for the references of the manual (man.lua) and of the site (site.lua),
-- and for cookbook_spec, which tests the examples. It returns two functions:
--
-- examples()    the lines "Example: `CODE` is `GROUPS`." of the verbs: { { code =, groups =, verb = "Family:pick" } }
-- fields(CLASS) the fields of a class: { { name =, doc = } }

local function lines_of(file) return io.lines("lua/moongrid/" .. file .. ".lua") end

local function examples()
  local list, open = {}, 1 -- the first example whose function was not read yet
  for _, file in ipairs { "meta_families", "meta" } do
    for line in lines_of(file) do
      local code, groups = line:match "^%-%-%-Example: `(.*)` is `(.*)`%.$"
      local verb = line:match "^function ([%w_.:]+)%("
      if code then
        list[#list + 1] = { code = code, groups = groups }
      elseif verb then
        for i = open, #list do list[i].verb = verb:gsub("^moongrid%.", "") end
        open = #list + 1
      end
    end
  end
  return list
end

local function fields(class)
  local list, inside = {}, false
  for line in lines_of "meta" do
    local opened = line:match "^%-%-%-@class moongrid%.([%w_]+)"
    line = line:gsub("%b<>", "") -- table<string, integer> has a blank
    local name, doc = line:match "^%-%-%-@field ([%w_]+)%?? %S+ (.*)$"
    if opened then
      inside = opened == class
    elseif inside and name then
      list[#list + 1] = { name = name, doc = doc }
    end
  end
  return list
end

return { examples = examples, fields = fields }
