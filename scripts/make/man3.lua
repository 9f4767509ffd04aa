-- SPDX-License-Identifier: MIT
--
-- man3.lua: moongrid(3) from the public headers, whose comments are the manual. man.lua calls it with its helpers.
-- Comments are filled; declarations are wrapped to fit a terminal, with their comments in a separate column.

local headers = dofile "scripts/make/headers.lua"
local WIDTH = 72 -- columns of lines that are not filled; a manual page is indented by 7

-- Wrap words to lines of at most `width` characters, as a list. Keep the end of a comment with its last word.
local function lines_of(words, width)
  local lines = { "" }
  for written in words:gsub(" %*/$", "\0*/"):gmatch "[^%s]+" do
    local word = written:gsub("%z", " ")
    local line = lines[#lines]
    if line == "" then
      lines[#lines] = word
    elseif #line + 1 + #word > width then
      lines[#lines + 1] = word
    else
      lines[#lines] = line .. " " .. word
    end
  end
  return lines
end

-- Wrap code to lines that fit: align continuations after the first parenthesis, unless that is too far to the
-- right.
local function folded_code(code, deeper)
  local head, rest = code:match "^(%s*)(.*)$"
  local at = (code:find("(", 1, true) or 99) - #head
  local indent = head .. (" "):rep(at <= 36 and at or 4)
  local behind = rest:find "^#define" and " \\" or ""
  local lines = {}
  while #head + #rest > WIDTH do
    local room = rest:sub(1, WIDTH - #head - #behind)
    local cut = #(room:match "^.+, " or room:match "^.+ " or rest) -- break after a comma if possible
    if cut == #rest then break end
    lines[#lines + 1] = head .. rest:sub(1, cut - 1) .. behind
    head, rest = deeper or indent, rest:sub(cut + 1)
  end
  lines[#lines + 1] = head .. rest
  return lines
end

-- ------------------------------------------------------------------- writing

return function(put, plain, read)
  -- Write code in bold, with comments beside it or below.
  local function put_rows(rows)
    local column = 0
    for _, row in ipairs(rows) do
      if row.comment and #row.code > column and #row.code <= 34 then column = #row.code end
    end
    put ".nf"
    for _, row in ipairs(rows) do
      local code = row.code:find "%S" and folded_code(row.code) or {}
      local words = row.comment and row.comment:gsub("^%s+", ""):gsub("%s+$", "")
      local at, beside = column + 1, #code == 1 and #code[1] <= column
      if words and not beside then
        beside = #code == 1 and #code[1] + #words + 7 <= WIDTH
        at = beside and #code[1] + 1 or #row.code:match "^%s*" + (#code > 0 and 4 or 0)
      end
      local said = words and lines_of("/* " .. words .. " */", WIDTH - at - 3) or {}
      for i, text in ipairs(code) do
        local last = i == #code and beside and said[1]
        put("\\fB%s\\fR%s", plain(text), last and (" "):rep(at - #text) .. plain(last) or "")
      end
      for i = beside and 2 or 1, #said do put("%s%s", (" "):rep(i > 1 and at + 3 or at), plain(said[i])) end
    end
    put ".fi"
  end

  local function put_filled(words)
    for _, line in ipairs(lines_of(words, 76)) do put("%s", plain(line)) end
  end

  -- Write a sample of code. A comment that does not fit beside its line is written above it.
  local function put_sample(lines)
    put ".PP\n.RS 2\n.nf"
    for _, line in ipairs(lines) do
      local code, comment = line:match "^(.-)%s+(/[/*].*)$"
      local fits = #line <= WIDTH - 2 or not code
      if not fits then put("%s", plain(comment)) end
      local said = fits and line or code:gsub("(%S)%s+", "%1 ")
      for _, text in ipairs(folded_code(said, "    ")) do put("%s", plain(text)) end
    end
    put ".fi\n.RE"
  end

  -- Write the lines of a comment: paragraphs; rows "name meaning", which may continue in indented lines; samples of
  -- code, indented by four blanks; headings in capitals.
  local function put_text(lines)
    local kind, words, width = nil, nil, 0
    local function close()
      if kind == "paragraph" or kind == "row" then put_filled(words) end
      if kind == "sample" then put_sample(words) end
      kind, words = nil, nil
    end
    local function end_table()
      if width > 0 then put ".PD" end
      width = 0
    end
    for i, line in ipairs(lines) do
      local indent, text = #line:match "^ *", line:gsub("^ +", "")
      local name, about = text:match "^(.-)  +(.+)$"
      local heading = indent == 0 and (lines[i - 1] or "") == "" and text:match "^(%u%u[%u ]+)%f[^%u ]"
      if text == "" then
        close()
        end_table()
      elseif kind == "row" and indent > 2 then
        words = words .. " " .. text
      elseif indent == 4 then
        if kind ~= "sample" then
          close()
          end_table()
          kind, words = "sample", {}
        end
        words[#words + 1] = text
      elseif heading and (#heading == #text or text:find "^%u+%. ") then
        close()
        end_table()
        put(".SS %s", heading)
        if #heading < #text then kind, words = "paragraph", text:sub(#heading + 3) end
      elseif indent == 2 and name then
        close()
        if width == 0 then -- of the whole table
          for k = i, #lines do
            local first = lines[k]:match "^  (%S.-)  +%S"
            if lines[k] == "" or lines[k]:find "^%S" then break end
            width = math.max(width, first and #first or 0)
          end
          put ".PP\n.PD 0"
        end
        put(".TP %d\n.B %s", width + 2, plain(name))
        kind, words = "row", about
      elseif kind == "paragraph" then
        words = words .. " " .. text
      else
        close()
        end_table()
        put ".PP"
        kind, words = "paragraph", text
      end
    end
    close()
    end_table()
  end

  local function put_items(text)
    for _, item in ipairs(headers.items_of(text)) do
      if #item.code > 0 then
        put ".PP"
        put_rows(item.code)
        if item.comment then put ".RS 4" end
      end
      if item.comment then put_text(item.comment) end
      if #item.code > 0 and item.comment then put ".RE" end
    end
  end

  -- Sections begin with a line of dashes and a name, after which a comment may continue.
  local function put_sections(text)
    local title, body = "version", {}
    local function close()
      put(".SH %s", title:upper())
      put_items(table.concat(body, "\n"))
    end
    for line in (text .. "\n"):gmatch "([^\n]*)\n" do
      local name = line:match "^/%* %-%-%-+ ([%l ]*%l)"
      if name and title and (#body > 1) then close() end
      if name then
        title, body = name, { line:find("*/", 1, true) and "" or "/*" }
      else
        body[#body + 1] = line
      end
    end
    close()
  end

  put ".SH SYNOPSIS\n.nf"
  for _, name in ipairs { "moongrid", "moongrid_mpi", "moongrid_nccl", "moongrid_lua" } do
    put("\\fB#include <%s.h>\\fR", name)
  end
  put "\n\\fBcc\\fR \\fItrainer.c\\fR \\fB$(pkg\\-config \\-\\-cflags \\-\\-libs moongrid_mpi)\\fR"
  put ".fi\n.SH DESCRIPTION"
  for _, name in ipairs(headers.names) do
    local words, text = headers.header_of(name)
    if name == "moongrid" then table.remove(words, 1) else put(".SH %s.h", name) end -- as NAME
    put_text(words)
    if text:find "\n/%* %-%-%-" then put_sections(text) else put_items(text) end
  end
  put ".SH EXAMPLES" -- those of the page for hosts
  local titles = { "The communicators of a recipe, and a collective on one of them:", "A decision of the recipe:" }
  for sample in read "src/embedding.md":gmatch "```c\n(.-)\n```" do
    local lines = {}
    for line in (sample .. "\n"):gmatch "([^\n]*)\n" do lines[#lines + 1] = line:gsub("%s+(/%*.*)$", "  %1") end
    put(".PP\n%s", table.remove(titles, 1))
    put_sample(lines)
  end
end
