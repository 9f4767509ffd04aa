-- SPDX-License-Identifier: MIT
--
-- page: write plans as one HTML page that needs no network: page.html with its scripts, and the data as JSON, which
-- page.js reads. The page puts texts of users only into text nodes; characters of markup are escaped in the JSON.

local frame = require "pictures.frame"
local words = require "pictures.words"

-- Write a page to a sink. page = { recipe = title, axes = { { name, values = { text } } }, frames = { Plan|text },
-- machine = function(plan) -> Machine|nil }. `frames` has a plan, or the message that refuses it, for each combination
-- of the axes' values; the last axis varies fastest.
return function(page, put)
  local html = require "pictures.page_html" -- page.html with its scripts
  local head, middle, tail = html:match "^(.-)@TITLE@(.-)@DATA@(.*)$"
  put(head .. words.xml(page.recipe) .. middle .. '{"recipe":')
  words.json(page.recipe, put)
  put ',"axes":'
  words.json(page.axes or {}, put)
  put ',"frames":['
  for i, plan in ipairs(page.frames) do
    if i > 1 then put "," end
    words.json(type(plan) == "string" and { error = plan } or frame(plan, page.machine and page.machine(plan)), put)
  end
  put("]}" .. tail)
end
