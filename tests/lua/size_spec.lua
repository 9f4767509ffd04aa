-- SPDX-License-Identifier: MIT
--
-- What scripts/size counts: tokens of each language, without its comments.

local support = dofile "tests/lua/support.lua"

describe("scripts/size", function()
  local folder = support.folder()
  teardown(function() support.run("rm -rf " .. folder) end)

  -- The tokens of a text in a file of this name.
  local function count(name, text)
    support.write(folder .. "/" .. name, text)
    local out = support.run(("cd %s && echo %s | lua5.4 $OLDPWD/scripts/size.lua"):format(folder, name))
    return tonumber(out:match "(%d+) tokens")
  end

  for _, row in ipairs {
    { "a.c", "/* b\n c */ int a = 0x1f.p; // d\n", 5 },
    { "a.c", "x <<= y->z ... ++i; a /* open", 13 },
    { "a.h", [["a \" b" 'c' "not closed]] .. "\n", 5 },
    { "a.js", "a ?? b // c", 4 },
    { "a.html", "<p>a</p><!-- b\n --><i>", 11 },
    { "a.lua", "--[==[ a\n]] ]==] x = [[ b\n c ]] -- d\n[=[ e ]] ]=] f..g", 7 },
    { "a.lua", "--[[ not closed\nt[1]", 4 },
    { "a.py", '"""Doc\n\n  string."""\nx = """a"""  # b\n', 6 },
    { "a.py", 'def f():\n    """Doc."""\n    return 1\n', 8 },
    { "a.sh", "a # b\n# c\n$a#d", 5 },
    { "a", "été caf\u{e9} \u{b7}\u{2500}", 4 },
    { "a.c", '"' .. ("ab "):rep(66) .. '" ' .. '"' .. ("ab "):rep(67) .. '"', 69 },
    { "a.json", "[1, 2, 3]", 0 },
    { "a.bin", "\xFF a b", 0 },
  } do
    it(("counts %s in %q"):format(row[3], row[2]), function() assert.equal(row[3], count(row[1], row[2])) end)
  end

  it("prints folders, sums, and the words of documents", function()
    support.run(("cd %s && rm -f * && mkdir -p src/base src/plan scripts tests"):format(folder))
    support.run(("cp scripts/files scripts/help %s/scripts"):format(folder))
    for name, text in pairs {
      ["src/a.c"] = "a", ["src/base/b.c"] = "a b\n", ["src/plan/c.c"] = "a\nb\nc\n", ["scripts/d"] = "a b c d",
      ["tests/e.c"] = "a b c d e", ["src/README.md"] = "six words, and # and `b`",
    } do
      support.write(folder .. "/" .. name, text)
    end
    local out = support.run("scripts/size " .. folder)
    for _, line in ipairs {
      "src 1 tokens 0 lines", "src/base 2 tokens 1 lines", "src/plan 3 tokens 3 lines", "src 6 tokens 4 lines",
      "tests 5 tokens 0 lines", "documents (.md) 6 words",
    } do
      assert.truthy(("\n" .. support.flat(out:gsub("\n", "|")) .. "|"):find(line .. "|", 1, true), line .. "\n" .. out)
    end
    local of_scripts, sum = out:match "\nscripts +(%d+) .*\nsum without tests +(%d+) "
    assert.equal(tonumber(of_scripts) + 6, tonumber(sum))
  end)

  it("says which folders have grown since the record, unless the newest changes name them", function()
    support.run(("cd %s && rm -rf * && mkdir -p src/base src/plan src/step scripts/lint.d tests"):format(folder))
    support.run(("cp scripts/files scripts/help %s/scripts"):format(folder))
    local function size(name, n) support.write(("%s/%s/a.c"):format(folder, name), ("a "):rep(n)) end
    local function changes(newest)
      support.write(folder .. "/src/CHANGES.md", ("# C\n\n**9.2.0**\n\n%s\n\n**9.1.0**\n\n* `src/plan`\n"):format(newest))
    end
    for _, name in ipairs { "src/base", "src/plan", "tests" } do size(name, 100) end
    changes ""
    assert.equal("", (support.run("scripts/size --record " .. folder)))
    assert.equal("", (support.run("scripts/size --grown " .. folder)))
    size("src/base", 102)
    size("src/plan", 103)
    size("src/step", 1)
    size("tests", 200)
    local plan, step = "src/plan has 103 tokens, and had 100\n", "src/step has 1 tokens, and had 0\n"
    assert.equal(plan .. step, (support.run("scripts/size --grown " .. folder)))
    changes "* `src/plan`: a law"
    assert.equal(step, (support.run("scripts/size --grown " .. folder)))
  end)

  it("says what is not a tree", function()
    local out, err, code = support.run "scripts/size /usr"
    assert.are.same({ "", "size: /usr is not a tree of moongrid: it has no scripts/files\n", 2 }, { out, err, code })
  end)
end)
