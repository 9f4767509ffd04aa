-- SPDX-License-Identifier: MIT
--
-- Return the set of the words of a Lua program, { word = true }. Words in its strings and comments are left out.

local text = ...
local words, at = {}, 1

-- If a long string, [[ ... ]], begins at `from`, return the position of its last byte (without ]], that of the text),
-- else nil.
local function long_bracket(from)
  local level = string.match(text, "^%[(=*)%[", from)
  if not level then return nil end
  return select(2, string.find(text, "]" .. level .. "]", from, true)) or #text
end

while at <= #text do
  local comment = string.find(text, "^%-%-", at)
  local quote = string.match(text, "^[\"']", at)
  local last = long_bracket(comment and at + 2 or at)
  if comment then
    last = last or select(2, string.find(text, "^[^\n]*", at))
  elseif quote then
    last = at
    repeat last = string.find(text, "[\\\n" .. quote .. "]", last + 1) or #text
      local escaped = string.find(text, "^\\", last)
      last = escaped and last + 1 or last
    until not escaped
  elseif not last then
    local word = string.match(text, "^[%a_][%w_]*", at)
    if word then words[word] = true end
    last = at + #(word or string.match(text, "^%d[%w_.]*", at) or " ") - 1
  end
  at = last + 1
end

return words
