-- SPDX-License-Identifier: MIT
--
-- nvidia_topo.lua - read `nvidia-smi topo -m` of one node; all nodes of the machine are like it. GPUs that NVLink
-- connects are one domain. The legend below the matrix explains the names of links. The matrix may be inside a longer
-- text, such as the output of torch's collect_env. Skipped: the columns after the GPUs, rows of other devices, the text
-- before and after the matrix.

local file = ...

local links = { X = true, SYS = true, NODE = true, PHB = true, PXB = true, PIX = true, PXN = true, ["N/A"] = true,
  XGMI = true, PCIE = true }
local MOST = 256
local n, rows, link, domain, header = 0, 0, {}, {}, nil

for where, line in file.lines() do
  local words = {}
  line = line:gsub("\27%p[%d;]*m", "")
  if line:find "^%s*GPU%d" then
    for word in line:gmatch "%S+" do words[#words + 1] = word end
  end
  if words[1] and n == 0 and words[1] == "GPU0" then
    header = where
    while words[n + 1] == "GPU" .. n do
      n = n + 1
      domain[n], link[n] = n, {}
    end
    if n > MOST then file.limit(where, "more than %d GPUs", MOST) end
  elseif words[1] and words[1] == "GPU" .. rows and rows < n then
    rows = rows + 1
    for i = 1, n do
      local word = words[i + 1]
      if not word then
        file.fault(where, "the row of GPU%d has %d of %d links: the text may be cut short", rows - 1, i - 1, n)
      elseif not word:find "^NV%d+$" and not links[word] then
        file.fault(where, "'%.20s' is not a link of two GPUs, as NV18 or SYS", word)
      elseif (word == "X") ~= (i == rows) then
        file.fault(where, "X links a GPU with itself, but '%.20s' links GPU%d with GPU%d", word, rows - 1, i - 1)
      end
      link[rows][i] = word
      if i < rows and link[i][rows] ~= word then
        file.fault(where, "GPU%d and GPU%d: '%.20s' here, and '%.20s' in the row of GPU%d", rows - 1, i - 1, word,
          link[i][rows], i - 1)
      end
      local from, to = domain[rows], domain[i]
      if word:find "^NV" and from ~= to then
        for k = 1, n do
          if domain[k] == math.max(from, to) then domain[k] = math.min(from, to) end
        end
      end
    end
  elseif words[1] and n > 0 and words[1]:find "^GPU%d+$" then
    local why = rows < n and "the row of GPU%d expected, not that of %s" or "more rows than the %d GPUs of the header"
    file.fault(where, why, rows, words[1])
  end
end
if n == 0 then file.fault(nil, "there is no line of GPUs") end
if rows < n then file.fault(header, "there are %d rows for %d GPUs: the text may be cut short", rows, n) end

-- The GPUs of a domain must have consecutive numbers, since consecutive ranks get them.
local counts, first, order = {}, {}, {}
for i = 1, n do
  local d = domain[i]
  first[d] = first[d] or i
  if first[d] == i then
    counts[#counts + 1] = 0
    for k = i, n do
      if domain[k] == d then counts[#counts], order[#order + 1] = counts[#counts] + 1, k - 1 end
    end
  end
end
for i = 1, n do
  if order[i] ~= i - 1 then
    file.fault(nil, "GPUs of an NVLink domain do not have consecutive numbers: GPU%d is in the domain of GPU%d; "
      .. "CUDA_VISIBLE_DEVICES=%s would order them", order[i], order[i - 1], table.concat(order, ","))
  end
end
for _, count in ipairs(counts) do
  if count ~= counts[1] then file.fault(nil, "the NVLink domains of the node have different numbers of GPUs") end
end
return file.run "elements".node { { "nvlink", #counts }, { "gpu", counts[1] } }
