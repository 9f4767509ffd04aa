-- SPDX-License-Identifier: MIT
--
-- The part `playground` of scripts/lab/bench: open the page of `make wasm` in Chromium as a file, and measure the time
-- until the first picture, the time until the picture after a key (tests/draw/playground.py --bench), and its bytes.

local MOST = {
  ["first answer after loading"] = 1000, ["an answer at 4096 ranks"] = 100, ["an answer at 1048576 ranks"] = 300,
}
local BYTES = 1.2e6

return function(B)
  local t = B.table("the playground in Chromium", "ms")
  B.run "make -s wasm"
  local text, code = B.run "python3 tests/draw/playground.py --bench"
  for what, took in text:gmatch "# ([^\n:]+): ([%d ]+) ms" do
    local list = {}
    for ms in took:gmatch "%d+" do list[#list + 1] = tonumber(ms) end
    local row = t:row(what, list)
    if MOST[what] then t:target(what, row.median, MOST[what]) end
  end
  local bytes = tonumber(text:match "by gzip (%d+)")
  if code ~= 0 or not bytes then
    return t:note("skipped: %s", text:match "SKIP ([^\n]*)" or "the page does not answer")
  end
  t:target("bytes by gzip", bytes, BYTES)
end
