-- SPDX-License-Identifier: MIT
--
-- playground: return a function that answers the requests of the playground's page with JSON. A request has
--   name, text       of the recipe; world; params = { "tp=2" }
--   laws             further laws to check, { "within(tp, mp)" }
--   other            another recipe to compare the plan with: name, text, world, params
-- The answer is { declared, frame, groups, laws, diff }, or if the recipe is refused { error, declared } with error =
-- { message, line, column }. If the request has one of these fields, a plan has another answer:
--   prove            true: { step, laws }, the proof of the step and the check of the whole plan, which take longer
--   give             "json", "svg" or "text": { text }, the plan or its picture
--   complete         a line up to the cursor: { words }, completions for the last plan that was drawn
-- groups, laws, step and diff are panes. A pane is { badge, kind, cards }; a card is { title, about, kind, rows }, with
-- its family or law; a row is { label, words, kind, part }. kind is "good", "bad", "changed" or "code"; part is the
-- length of a bar, 0 to 1.

local explain = require "pictures.explain"
local frame = require "pictures.frame"
local moongrid = require "moongrid"
local reports = require "pictures.reports"
local words = require "pictures.words"

local DRAWN, SAMPLE = 1024, 256 -- of a world of more than DRAWN ranks, only up to SAMPLE ranks are drawn
local CHECKED = 1 << 18       -- the most members of a plan that is checked here
local COLUMNS, LINES = 110, 400 -- the most columns for the groups of a family; the most lines of a diff

local last -- { recipe, plan, declared } of the last plan that was drawn, for completion

-- Return a message without its beginning "playground.lua:LINE: ", the place in this file that called the module.
local function said(message) return (tostring(message):gsub("^[^:]*playground[^:]*:%-?%d+: ", "")) end

local function line_of(text, number)
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    number = number - 1
    if number == 0 then return line end
  end
end

-- Return { message, line, column } for an error of a recipe: its text, and the line of the recipe that it names. An
-- error of Lua's parser also has the column of the wrong token, counted after the indentation of the line. `side` has
-- the name and the text of the recipe.
local function problem(side, message)
  message = said(message)
  local line, rest = message:match("^" .. side.name:gsub("%p", "%%%0") .. ":(%d+): (.*)$")
  local first, shown, blanks = (rest or message):match "^(.-)\n  (.-)\n  ( *)%^"
  local number, column = math.tointeger(tonumber(line)), first and #blanks
  if number and first then -- the parser shows only the end of a long line before the token
    local code = (line_of(side.text, number) or ""):match "^%s*(.*)"
    local at = code:find(shown:sub(1, column), 1, true)
    if at then column = at - 1 + column end
  end
  return { message = first or rest or message, line = number, column = column }
end

-- Return the declarations of a recipe, with the shortest name of each parameter.
local function declared(loaded)
  local info, params = loaded:info(), {}
  for i, param in ipairs(info.params) do
    local short = param.name
    for _, alias in ipairs(param.aliases) do
      if #alias < #short then short = alias end
    end
    params[i] = { name = short, long = param.name, kind = param.kind, default = param.default, doc = param.doc,
                  choices = param.choices }
  end
  return { doc = info.doc, params = params }
end

-- Return the plan of a side, which is the request or its `other`; its recipe; and the declarations of the recipe. If
-- the recipe is refused return nil, the problem, and the declarations.
local function plan_of(side)
  local known
  local done, plan, loaded = pcall(function()
    local recipe = moongrid.load(side.name, { text = side.text, lines = true })
    known = declared(recipe)
    return recipe:plan(side.world, side.params or {}), recipe
  end)
  if done then return plan, loaded, known end
  return nil, problem(side, plan), known
end

-- Panes ------------------------------------------------------------------------------------------------------------

local CODE = { groups = true, rule = true, ["made by"] = true }

-- Return the pane of groups: the lines of `moongrid explain`, with a card for each family.
local function groups_of(plan, side)
  local cards, text = {}, {}
  explain(plan, {
    families = #plan.families > 0 and plan.families or nil, columns = COLUMNS,
    writer = { put = function(piece) text[#text + 1] = piece end, fold = math.maxinteger, on = "", off = "",
               shown = words.shown },
    read = function(file) return file == side.name and side.text or nil end,
  })
  for line in table.concat(text):gmatch "[^\n]+" do
    local name, about = line:match "^(%S+): (.*)$"
    local rows, label = #cards > 0 and cards[#cards].rows, line:sub(1, 14):match "^ *(.-) *$"
    if name then
      cards[#cards + 1] = { title = name, family = name, about = about, rows = {} }
    elseif rows then
      rows[#rows + 1] = { label = label, words = line:sub(16), kind = CODE[label] and "code" or nil }
    end
  end
  return { badge = tostring(#cards), cards = cards }
end

-- Return the card of a law. `held` is nil if the law was not checked.
local function law_card(law, held, why)
  local mark, kind = "?", nil
  if held ~= nil then mark, kind = held and "\u{2713}" or "\u{2717}", held and "good" or "bad" end
  return { title = mark .. " " .. law, about = why, kind = kind }
end

local function laws_pane(cards)
  local broken = 0
  for _, card in ipairs(cards) do broken = broken + (card.kind == "bad" and 1 or 0) end
  local whole = broken == 0
  return { badge = whole and tostring(#cards) or broken .. " broken", kind = whole and "good" or "bad", cards = cards }
end

-- Return the cards of the laws that the recipe claims and of the laws of the request.
local function law_cards(plan, asked)
  local cards, done, of_recipe = {}, pcall(function() return plan.laws end)
  for _, law in ipairs(done and of_recipe or {}) do cards[#cards + 1] = law_card(law, true, "in the recipe") end
  for _, law in ipairs(asked or {}) do
    local known, held, why = pcall(plan.law, plan, law)
    if not known then held, why = false, said(held) end
    cards[#cards + 1] = law_card(law, held, why)
    cards[#cards].law = law
  end
  return cards
end

-- Return the pane of laws. Its first card tells of the check of the whole plan, which is made if the plan has at most
-- CHECKED members.
local function checked(plan, asked)
  local n, cards = 0, law_cards(plan, asked)
  for _, name in ipairs(plan.families) do n = n + plan:family(name).count * plan:family(name).largest end
  local held, why = nil, ("%d members are too many for a page; use moongrid check"):format(n)
  if n <= CHECKED then
    held, why = pcall(plan.check, plan)
    why = held and ("%d members"):format(n) or said(why)
  end
  table.insert(cards, 1, law_card("positions, partitions, schedule", held, why))
  return laws_pane(cards)
end

-- Return rows with bars for a list of { name, value }; say(value) returns the text of a value.
local function bars(list, say)
  local rows, most = {}, 0
  for _, one in ipairs(list) do most = math.max(most, one[2]) end
  for i, one in ipairs(list) do
    rows[i] = { label = one[1], words = say(one), part = most > 0 and one[2] / most or 0.0 }
  end
  return rows
end

local function calls_text(sum)
  return ("%s in %d call%s"):format(reports.bytes(sum[2]), sum[3], reports.plural(sum[3]))
end

-- Return the cards of a step: its time, if the plan has a machine; for each family, the bytes of the rank that sends
-- the most over it; and the memory of the rank that needs the most.
local function step_cards(plan, step)
  local cards, sums = {}, step:sums()
  local priced, price = pcall(step.price, step)
  if plan.machine ~= "" and priced then
    local parts = {}
    for i, name in ipairs { "compute", "exposed", "bubble", "hidden" } do parts[i] = { name, price[name] } end
    cards[1] = { title = reports.seconds(price.seconds) .. " a step", about = "on " .. price.machine,
                 rows = bars(parts, function(one) return reports.seconds(one[2]) end) }
  end
  local families, memory = {}, {}
  for _, name in ipairs(plan.families) do
    local sum = sums.families[name]
    if sum then families[#families + 1] = { name, sum.bytes, sum.calls } end
  end
  for i, name in ipairs(words.keys(sums.memory.by)) do memory[i] = { name, sums.memory.by[name] } end
  table.sort(memory, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  if #families > 0 then
    cards[#cards + 1] = { title = "What travels", about = "bytes of the rank that sends the most",
                          rows = bars(families, calls_text) }
  end
  if #memory > 0 then
    cards[#cards + 1] = { title = "Memory", rows = bars(memory, function(one) return reports.bytes(one[2]) end),
                          about = ("at most %s on rank %d"):format(reports.bytes(sums.memory.peak), sums.memory.rank) }
  end
  return cards
end

local NO_STEP = "This recipe has no step: a function, the field step, that says what each rank sends. megatron and "
                .. "other bundled recipes have a step; sizes of the model are among their parameters."

local function refused(why) return { title = "Refused", about = why, kind = "bad" } end

-- Return the pane of the step, with its proof.
local function step_of(plan)
  local done, has = pcall(plan.has_step, plan)
  if not (done and has) then return { badge = "", cards = { { title = "No step", about = NO_STEP } } } end
  local ok, step = pcall(plan.step, plan)
  if not ok then return { badge = "refused", kind = "bad", cards = { refused(said(step)) } } end
  local tried, proved, verdict, message = pcall(step.prove, step)
  if not tried then proved, verdict, message = false, "not proved", said(proved) end
  local is, rows = proved and "proved" or verdict, {}
  rows[1] = { label = "ranks", words = ("%d class%s, %d operations of all ranks"):format(step.classes,
    step.classes == 1 and "" or "es", step.operations) }
  if message then rows[2] = { label = "because", words = message, kind = "bad" } end
  if proved and verdict then rows[2] = { label = "assumes", words = reports.assumes(verdict) } end
  local kind = proved and "good" or "bad"
  local all, cards = pcall(step_cards, plan, step)
  cards = all and cards or {}
  table.insert(cards, 1, { title = is, about = reports.verdicts[is], kind = kind, rows = rows })
  return { badge = is, kind = kind, cards = cards }
end

local CHANGES = { ["+"] = "good", ["-"] = "bad", ["~"] = "changed" }

-- Return the pane with the differences between the other recipe's plan and this plan.
local function diff_of(plan, other)
  local before, why = plan_of(other)
  local done, diff = pcall(function() return before:diff(plan) end)
  if not (before and done) then
    return { badge = "!", kind = "bad", cards = { refused(before and said(diff) or why.message) } }
  end
  local rows, n = {}, 0
  for line in tostring(diff):gmatch "[^\n]+" do
    local label, rest = line:match "^([-+~] %S+)%s+(.*)$"
    n = n + (label and 1 or 0)
    if #rows < LINES then
      rows[#rows + 1] = { label = label or "", words = rest or line, kind = CHANGES[line:sub(1, 1)] }
    end
  end
  return { badge = diff.differ and tostring(n) or "same", cards = { { title = "from " .. other.name, rows = rows,
           about = ("of %d ranks"):format(other.world) } } }
end

-- The editor ---------------------------------------------------------------------------------------------------------

-- Return the words that can complete the last word of a line: inside quotes, names of dims and families, and on a line
-- with `base` or `recipe` those of bundled recipes; after "p.", names of parameters; elsewhere, words of recipes.
local function complete(line)
  if not last then return {} end
  local quoted = select(2, line:gsub("[\"']", "")) % 2 == 1
  local begin, list = line:match "[%w_]*$", {}
  local function offer(word)
    if word:sub(1, #begin) == begin then list[#list + 1] = word end
  end
  if quoted then
    local seen = {}
    local function once(word)
      if not seen[word] then offer(word) end
      seen[word] = true
    end
    for _, name in ipairs(last.plan.grids) do
      for _, dim in ipairs(last.plan:grid(name):dims()) do once(dim[1]) end
    end
    for _, name in ipairs(last.plan.families) do once(name) end
    local of_recipe = line:find "%f[%w]base%f[%W]" or line:find "%f[%w]recipe%f[%W]"
    for _, name in ipairs(of_recipe and moongrid.recipes() or {}) do once(name) end
  elseif line:find "%f[%w_]p%.[%w_]*$" then
    for _, param in ipairs(last.declared.params) do offer(param.name) end
  else
    for _, word in ipairs(last.recipe:complete(line)) do list[#list + 1] = word:match "[%w_]+$" end
  end
  return list
end

-- Return a plan, or its picture, as text.
local function give(plan, what)
  if what == "json" then return plan:json() end
  return moongrid.pictures[what](plan, { all = true })
end

local function answer(request)
  if request.complete then return { words = complete(request.complete) } end
  local plan, loaded, known = plan_of(request)
  if not plan then return { error = loaded, declared = known } end
  if request.give then return { text = give(plan, request.give) } end
  if request.prove then return { step = step_of(plan), laws = checked(plan, request.laws) } end
  last = { recipe = loaded, plan = plan, declared = known }
  return {
    declared = known, frame = frame(plan, reports.machine(plan), plan.world > DRAWN and SAMPLE or DRAWN),
    groups = groups_of(plan, request), laws = laws_pane(law_cards(plan, request.laws)),
    diff = request.other and diff_of(plan, request.other),
  }
end

return function(request)
  local result, text = answer(request), {}
  local function put(piece) text[#text + 1] = piece end
  -- words.json would show the line breaks of this text as \n
  if result.text then return '{"text":' .. words.quoted(result.text) .. "}" end
  words.json(result, put)
  return table.concat(text)
end
