-- SPDX-License-Identifier: MIT
--
-- blame_page: a page of HTML that draws the groups of the dumps, each rank coloured by its state (waiting, in no call).

local waits = require "command.blame.waits"
local words = require "pictures.words"

local MOST = 4096 -- most groups to draw

local STYLE = table.concat({
  ':root { color-scheme: light dark; --soft: #556070; }',
  '@media (prefers-color-scheme: dark) { :root { --soft: #a3adbb; } }',
  'body { margin: 0; padding: 16px 20px; font: 14px/1.45 system-ui, sans-serif; }',
  'h1 { font-size: 19px; margin: 0 0 6px; } h2 { font-size: 15px; margin: 18px 0 6px; }',
  'dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2px 16px; margin: 0; }',
  'dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }',
  '.group { display: flex; flex-wrap: wrap; gap: 3px; align-items: center; margin: 3px 0; }',
  '.group > span:first-child { width: 7em; color: var(--soft); }',
  '.r { min-width: 2.4em; padding: 2px 4px; border-radius: 6px; text-align: center; color: #161a21; }',
  '.r { border: 2px solid transparent; }',
  '.culprit { border-color: #c2185b; font-weight: 700; }',
  '.waiting { background: #8db8e3; } .idle { background: #f3b08f; } .ready { background: #7fd1b9; }',
  '.broken { background: #c9b7e4; } .absent { background: #f7b6c6; } .old { background: #eedd88; }',
  '.cut { background: #cdd46a; }',
}, "\n")

local legend = { { "culprit", "named" }, { "waiting", "waits" }, { "idle", "in no call" },
                 { "ready", "in a call that all have made" }, { "broken", "ended by an error" },
                 { "absent", "no dump" }, { "old", "older dump" }, { "cut", "dump cut short" } }

return function(job, verdict, head, rows, put)
  local named = {}
  for _, rank in ipairs(verdict.ranks) do named[rank] = true end
  put('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
      .. '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
      .. "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      .. "<title>moongrid blame</title>\n<style>\n" .. STYLE .. "\n</style>\n</head>\n<body>\n<h1>" .. words.xml(head)
      .. "</h1>\n<dl>\n")
  for _, row in ipairs(rows) do put(("<dt>%s</dt><dd>%s</dd>\n"):format(row[1], words.xml(row[2]))) end
  put '</dl>\n<h2>Colours</h2>\n<div class="group">'
  for _, one in ipairs(legend) do put(('<span class="r %s">%s</span>'):format(one[1], one[2])) end
  put "</div>\n"
  local families, order, n = {}, {}, 0
  for _, group in ipairs(job.order) do
    local name = group.title
    if not families[name] then
      families[name] = {}
      order[#order + 1] = name
    end
    table.insert(families[name], group)
  end
  for _, name in ipairs(order) do
    put("<h2>" .. words.xml(name) .. "</h2>\n")
    table.sort(families[name], function(a, b)
      if a.ranks[1] ~= b.ranks[1] then return (a.ranks[1] or -1) < (b.ranks[1] or -1) end
      return a.key < b.key
    end)
    for _, group in ipairs(families[name]) do
      n = n + 1
      if n <= MOST then
        put('<div class="group"><span>' .. words.xml(group.label) .. "</span>")
        for _, rank in ipairs(group.ranks) do
          local one = job.ranks[rank]
          local call = one and (one.pending[1] or one.calls[#one.calls])
          local title = call and ("%s %s in %s"):format(call.op, call.sizes, call.group.label) or "no dump"
          put(('<span class="r %s%s" title="%s">%d</span>'):format(
            waits.state(job, rank), named[rank] and " culprit" or "", words.xml(title), rank))
        end
        put "</div>\n"
      end
    end
  end
  put "</body>\n</html>\n"
end
