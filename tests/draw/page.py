#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# page.py [SHOTS]: the page of moongrid draw -o x.html in a real browser. Clicks, hovers and keys; the numbers on the page
# are those of plan --json; hostile names stay text. Prints TAP. SHOTS: a folder for pictures of the page. Run in the
# project's root.

import json
import os
import sys

from browser import CUT, moongrid, run_tests, same, texts

MOE = ["examples/moe.lua"]


# The families that stand for those with equal groups, in the order of the page, and the others of each: one that is named
# by a dim before others, and these first.
def merged(plan):
    names = list(plan["families"])
    dims = [d[0] for g in plan["grids"].values() for d in g["dims"] if d[0] in names]
    groups = {n: json.dumps(plan["families"][n]["groups"]) for n in names}
    leader = {}
    for name in dims + names:
        leader.setdefault(groups[name], name)
    large = [n for n in dict.fromkeys(dims) if leader[groups[n]] == n and plan["families"][n]["size"] != 1]
    own = large + [n for n in names if leader[groups[n]] == n and n not in large]
    return {n: [m for m in names if m != n and groups[m] == groups[n]] for n in own}


def rows(b):
    return b.value("[...document.querySelectorAll('#rank tr[data-family]')]"
                   ".map(r => [...r.children].map(c => c.textContent))")


def say(ranks):
    if len(ranks) <= 16:
        return "{" + ",".join(map(str, ranks)) + "}"
    return "{%s,...,%d} %s ranksall" % (",".join(map(str, ranks[:3])), ranks[-1], format(len(ranks), ","))


def expected(plan, rank):
    out = []
    for name, also in merged(plan).items():
        for g, ranks in enumerate(plan["families"][name]["groups"]):
            if rank in ranks:
                out.append([name + ("+%d" % len(also) if also else ""), str(g),
                            "%d of %d" % (ranks.index(rank), len(ranks)), say(ranks)])
    return out


FAMILIES = "[...document.querySelectorAll('#families label:not([hidden]) input')].map(e => e.value)"


def test_numbers(b, folder, shots):
    page = folder + "/moe.html"
    moongrid("draw", *MOE, "--world", "16", "tp=2", "pp=2", "-o", page)
    plan = json.loads(moongrid("plan", *MOE, "--world", "16", "tp=2", "pp=2", "--json"))
    b.size(1200, 900)
    b.open(page)
    same("requests", [u for u in b.requests() if not u.startswith("file:")], [])
    same("title", texts(b, "h1"), ["examples/moe.lua"])
    about = texts(b, "#about")[0]
    assert plan["digest"] in about and "%d communicators" % plan["communicators"]["total"] in about, about
    one = merged(plan)
    same("families", b.value(FAMILIES), list(one))
    same("equal ones", texts(b, "#families .also"), ["+%d" % len(also) if also else "" for also in one.values()])
    same("equal ones of a panel", texts(b, "figure .same"),
         ["also " + ", ".join(one[n]) for n in texts(b, "figure strong") if one[n]])
    same("dims", texts(b, ".dims"), ["%s: %s" % (n, " \u00d7 ".join("%s %d" % tuple(d) for d in g["dims"] if d[1] > 1))
                                     for n, g in plan["grids"].items()])
    same("parameters that are given", texts(b, "#given"), ["tp=2, pp=2"])
    for rank in (0, 5, 15):
        b.move(".cell[data-rank='%d']" % rank)
        same("rows of rank %d" % rank, rows(b), expected(plan, rank))
        steps = json.loads(moongrid("plan", *MOE, "--world", "16", "tp=2", "pp=2", "--json", "--rank", str(rank)))
        same("creations", texts(b, "#rank li"), ["%s[%d]" % (c["family"], c["index"]) for c in steps["communicators"]])
        same("coordinates", texts(b, "#rank .coords"),
             ["%s: %s" % (n, ", ".join("%s %d" % c for c in g["coords"].items())) for n, g in steps["grids"].items()])
        for name in texts(b, "figure strong"):
            here = "figure[data-family='%s'] .cell.in" % name
            want = [r for g in plan["families"][name]["groups"] if rank in g for r in g]
            same("raised in " + name, sorted(map(int, texts(b, here))), sorted(want))
    captions = texts(b, "figcaption")
    first = plan["families"]["tp"]
    assert captions[0].startswith("tp %d groups of 2" % first["count"]), captions
    if shots:
        b.value("window.scrollTo(0, 0)")
        b.shot(shots + "/page_1200.webp")


def test_choosing(b, folder, _):
    before, all_of_them = texts(b, "figure strong"), b.value(FAMILIES)
    more = next(n for n in all_of_them if n not in before)
    b.click("#families label:has([value='%s'])" % more)
    same("panels", set(texts(b, "figure strong")), set(before) | {more})
    b.click("#families label:has([value='%s'])" % before[0])
    assert before[0] not in texts(b, "figure strong")
    b.click("#families label:has([value='%s'])" % before[0])


def test_keeping_and_keys(b, folder, _):
    b.click(".cell[data-rank='3']")
    b.move(".cell[data-rank='9']")
    same("a kept rank", texts(b, "#rank h2")[0], "Rank 3")
    b.key("Escape")
    same("let go", texts(b, "#rank h2")[0], "A rank")
    b.value("document.querySelector('.cell').focus()")
    b.key("ArrowRight")
    same("one to the right", texts(b, "#rank h2")[0], "Rank 1")
    b.key("ArrowDown")
    same("and down", texts(b, "#rank h2")[0], "Rank 3")
    b.key("Enter", "\r")
    b.move(".cell[data-rank='9']")
    same("kept by Enter", texts(b, "#rank h2")[0], "Rank 3")
    same("one stop of the Tab key a panel", b.value("document.querySelectorAll('.cell[tabindex=\"0\"]').length"),
         len(texts(b, "figure strong")))
    b.key("Escape")


def type_ranks(b, x, y):
    for box, text in (("a", x), ("b", y)):
        b.value("document.getElementById('%s').value = ''; document.getElementById('%s').focus()" % (box, box))
        b.call("Input.insertText", text=text)


def test_why(b, folder, _):
    one = merged(json.loads(moongrid("plan", *MOE, "--world", "16", "tp=2", "pp=2", "--json")))
    for x, y in ((0, 2), (0, 1), (0, 15), (1, 8)):
        why = json.loads(moongrid("why", *MOE, "--world", "16", "tp=2", "pp=2", str(x), str(y), "--json"))
        type_ranks(b, str(x), str(y))
        got = texts(b, "#why li")
        same("groups of %d and %d" % (x, y), sorted(g.split(":")[0] for g in got if ": positions" in g),
             sorted("%s[%d]" % (g["family"], g["group"]) for g in why["groups"] if g["family"] in one))
        assert not why["groups"] or " %d group" % len(why["groups"]) in texts(b, "#why p")[0], texts(b, "#why p")
        if why["groups"]:
            first = why["first"]
            same("first", texts(b, "#why p.soft"), ["They first meet in %s[%d]." % (first["family"], first["group"])])
        else:
            same("steps of a way", len(got), len(why["chain"]))
    type_ranks(b, "3", "99")
    same("out of range", texts(b, "#why .error"), ["Ranks are 0 to 15, not 99."])
    type_ranks(b, "3", "3")
    same("one rank", texts(b, "#why .error"), ["Two different ranks would do."])


def test_schedule(b, folder, _):
    n = int(b.value("document.getElementById('step').max"))
    lines = [x for x in moongrid("plan", *MOE, "--world", "16", "tp=2", "pp=2", "--schedule").split("\n") if x[:5].strip()]
    same("steps", n, len(lines))
    made = []
    figure, one = "figure[data-family='%s']", merged(json.loads(moongrid("plan", *MOE, "--world", "16", "tp=2", "pp=2", "--json")))
    for k in range(n):
        b.click("#on")
        said = texts(b, "#said")[0]
        made.append(said.split(": ")[1].split(",")[0])
        want = lines[k].split()
        assert want[1] == made[k] and " %s communicator" % want[2] in said, (said, lines[k])
        same("the family of the step", texts(b, "#families label.now"), [n + ("+%d" % len(also) if also else "") for n, also in one.items() if made[k] in [n] + also])
        # a panel has the groups that are made by then
        for name in texts(b, "figure strong"):
            grey = b.value("document.querySelectorAll(\"%s .cell.unmade\").length" % (figure % name))
            later = name not in made and name in [x.split()[1] for x in lines]
            same("not made yet of %s after %s" % (name, made), grey, 16 if later else 0)
    b.click("#back")
    assert texts(b, "#said")[0].startswith("step %d of %d" % (n - 1, n))


def test_sliders(b, folder, shots):
    page = folder + "/many.html"
    moongrid("draw", *MOE, "--world", "8,16,6", "tp=1,2,4", "-o", page)
    b.open(page)
    same("axes", texts(b, "#sliders label"), ["world", "tp"])
    for world, place in (("8", 0), ("16", 1)):
        for tp, at in (("1", 0), ("4", 2)):
            for i, v in ((0, place), (1, at)):
                b.value("(e => { e.value = %d; e.dispatchEvent(new Event('input')) })(document.getElementById('axis%d'))"
                        % (v, i))
            plan = json.loads(moongrid("plan", *MOE, "--world", world, "tp=" + tp, "--json"))
            assert plan["digest"] in texts(b, "#about")[0]
            same("outputs", texts(b, "output"), [world, tp])
            b.move(".cell[data-rank='1']")
            same("rows", rows(b), expected(plan, 1))
    b.value("(e => { e.value = 2; e.dispatchEvent(new Event('input')) })(document.getElementById('axis0'))")
    assert "does not divide the 6 ranks" in texts(b, "#refused")[0]
    same("no panel of what is refused", texts(b, "figure"), [])
    b.value("(e => { e.value = 0; e.dispatchEvent(new Event('input')) })(document.getElementById('axis0'))")
    same("and back", texts(b, "#refused"), [""])
    moongrid("draw", "picotron", "--world", "2", "dp=2", "-o", folder + "/one.html")
    b.open(folder + "/one.html")
    same("one of each", [texts(b, "#about")[0].split(";")[1], texts(b, "#said")[0]],
         [" 1 communicator for 4 groups", "1 step makes all communicators"])
    b.open(page)
    b.size(480, 900, dark=True)
    wide = b.value("document.documentElement.scrollWidth")
    assert wide <= 480, "the page is %d wide on a screen of 480" % wide
    if shots:
        b.value("document.querySelector('#panels').scrollIntoView()")
        b.shot(shots + "/page_480_dark.webp")
    b.size(1200, 900)


def test_hostile_names(b, folder, _):
    evil = "</script><img src=x onerror=document.title='caught'>"
    recipe = folder + "/<b>&amp;.lua"
    with open(recipe, "w") as f:
        f.write("return recipe { params = { note = %s }, build = function(world, p)\n"
                "  local g, t = grid(world, 'a-b', { a = 2, b = fill }), topology(world)\n"
                "  t[%s] = g 'a'\n  t.grid = g\n  return t\nend }\n" % (json.dumps(evil), json.dumps(evil[:40])))
    page = folder + "/hostile.html"
    try:
        moongrid("draw", recipe, "--world", "8", "-o", page)
    except RuntimeError as refused:  # a name that a family may not have
        assert "name" in str(refused), refused
        text = open(recipe).read().replace(json.dumps(evil[:40]), "'f'")
        open(recipe, "w").write(text)
        moongrid("draw", recipe, "--world", "8", "-o", page)
    b.open(page)
    b.move(".cell[data-rank='3']")
    same("images", b.value("document.images.length"), 0)
    same("title", texts(b, "h1"), [recipe])
    assert "caught" not in b.value("document.title")
    text = open(page).read()
    assert evil not in text and "<b>" not in text


# The lines of the plan megatron, tp=8 pp=4, at a size at which no list of ranks fits a line.
def open_large(b, folder, world, width=1400):
    page = folder + "/large%d.html" % world
    if not os.path.exists(page):
        moongrid("draw", "megatron", "--world", str(world), "tp=8", "pp=4", "-o", page)
    b.size(width, 900)
    b.open(page)
    return json.loads(moongrid("plan", "megatron", "--world", str(world), "tp=8", "pp=4", "--json"))


HEIGHT = "document.documentElement.scrollHeight"
INSIDE = ("(() => { const a = document.querySelector('%s').getBoundingClientRect();"
          " return a.top >= 0 && a.bottom <= innerHeight })()")


def check_large(b, folder, world):
    plan = open_large(b, folder, world)
    panels = texts(b, "figure strong")
    same("panels", panels, ["tp", "dp", "pp"])
    same("cells", b.value("document.querySelectorAll('.cell').length"), 3 * world)
    high = b.value(HEIGHT)
    assert high <= 1300, "the page is %d high" % high
    one = merged(plan)
    assert len(one) < len(plan["families"]) / 2, one
    same("families", b.value(FAMILIES), list(one))
    # no look at a rank makes the page longer, or anything on it that is long
    for rank in (0, 5, world // 2 + 3, world - 1):
        b.move(".cell[data-rank='%d']" % rank)
        same("a look at a rank", texts(b, "#rank h2")[0], "Rank %d" % rank)
        same("rows", rows(b), expected(plan, rank))
        same("height", b.value(HEIGHT), high)
        longest = max(map(len, texts(b, "#rank td, #rank p, #rank li")))
        assert longest <= 120, "a text of %d characters" % longest
        assert b.value(INSIDE % "#talk"), "why two ranks talk is not on the screen"
    # the answer to why stays in its box, and the box on the screen
    type_ranks(b, "3", str(world // 2 + 3))
    assert texts(b, "#why li")
    same("height with an answer", b.value(HEIGHT), high)
    assert b.value(INSIDE % "#talk")
    assert b.value("(e => e.scrollWidth <= e.clientWidth)(document.getElementById('talk'))"), "the answer leaves its box"
    assert max(map(len, texts(b, "#why li"))) <= 250
    # every rank in the window, each at a place of its own, within its panel
    same("places", b.value("new Set([...document.querySelector('.parts').querySelectorAll('.cell')].map(c => c.style.left + c.style.top)).size"), world)
    same("nothing of the panel is out of sight", b.value(
        "(e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight + 1)(document.querySelector('.parts'))"), True)
    # the axes say their dims, boxes and rows their coordinates
    labels = texts(b, ".label")
    for want in ("tp", "dp 0", "dp %d" % (world // 32 // 2), "pp 0", "pp 3") if world == 1024 else ("pp 0", "pp 3"):
        assert want in labels, (want, labels[:40])
    # machines have borders
    assert len(b.value("document.querySelector('.rims path').getAttribute('d')")) > world
    assert "machines of 8 ranks" in texts(b, "#machines")[0]
    return plan


def test_1024(b, folder, _):
    check_large(b, folder, 1024)


def test_4096(b, folder, _):
    plan = check_large(b, folder, 4096)
    b.value("document.querySelector('.cell').focus()")
    b.key("ArrowRight")
    same("one to the right", texts(b, "#rank h2")[0], "Rank 1")
    b.key("ArrowDown")
    same("and down", texts(b, "#rank h2")[0], "Rank 9")
    b.key("Enter", "\r")
    ranks = plan["families"]["intra_dist_opt"]["groups"][0]
    same("a long list", len(ranks), 4096)
    b.click("#rank tr[data-family=intra_dist_opt] .more")
    same("all ranks of a group", texts(b, "#rank .all"), [", ".join(map(str, ranks))])
    assert b.value("document.querySelectorAll('#rank td wbr').length") > 0  # a line ends behind a comma, not in a number


def test_narrow(b, folder, _):
    for world in (1024, 4096):
        open_large(b, folder, world, 400)
        wide = b.value("document.documentElement.scrollWidth")
        assert wide <= 400, "the page is %d wide on a screen of 400" % wide
        b.click(".cell[data-rank='9']")
        same("the rank", texts(b, "#rank h2")[0], "Rank 9")
        wide = b.value("document.documentElement.scrollWidth")
        assert wide <= 400, "with a rank the page is %d wide on a screen of 400" % wide
    b.size(1400, 900)


def test_many_dims(b, folder, _):
    """Small tiles in boxes in boxes: labels of all of them would take several screens."""
    recipe, page = folder + "/dims.lua", folder + "/dims.html"
    with open(recipe, "w") as f:
        f.write("return recipe { params = { gpus_per_node = param.size(4) }, build = function(world)\n"
                "  local t, g = topology(world), grid(world, 'tp-cp-ep-dp-pp', { tp = 4, cp = 2, ep = 4, dp = fill, pp = 8 })\n"
                "  t.tp, t.pp, t.grid = g 'tp', g 'pp', g\n  return t\nend }\n")
    moongrid("draw", recipe, "--world", "4096", "-o", page)
    b.open(page)
    same("all is seen", b.value("(e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight)"
                                "(document.querySelector('.parts'))"), True)
    for want in ("pp 0", "pp 7"):
        assert want in texts(b, ".label"), texts(b, ".label")[:20]
    same("machines of the recipe", texts(b, "#machines"), ["Thick lines go around machines of 4 ranks."])
    b.move(".cell[data-rank='4095']")
    assert "machine 1023, place 3 of 4" in texts(b, "#rank p"), texts(b, "#rank p")
    # ranks of one line of the world, as many as divide nothing
    with open(recipe, "w") as f:
        f.write("return recipe { params = {}, build = function(world)\n"
                "  local t, g = topology(world), grid(world, 'rank', { rank = fill })\n  t.all = g 'rank'\n  return t\nend }\n")
    moongrid("draw", recipe, "--world", "1021", "-o", page)
    b.open(page)
    same("a row goes on below", b.value("(e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight)"
                                        "(document.querySelector('.parts'))"), True)
    same("ranks", b.value("[...document.querySelectorAll('.cell')].map(c => +c.dataset.rank)"), list(range(1021)))
    # a rank in a thousand groups of one family
    with open(recipe, "w") as f:
        f.write("return recipe { params = {}, build = function(world)\n  local t, list = topology(world), {}\n"
                "  for i = 1, 1023 do list[i] = { 0, i } end\n  t.star = world:table(list, 'cover')\n  return t\nend }\n")
    moongrid("draw", recipe, "--world", "1024", "-o", page)
    b.open(page)
    high = b.value(HEIGHT)
    b.move(".cell[data-rank='0']")
    same("the first few groups", len(rows(b)), 4)
    assert "and 1,019 more of star" in texts(b, "#rank td"), texts(b, "#rank td")
    assert texts(b, "#rank li")[-1] == "and 983 more", texts(b, "#rank li")[-1]
    same("height", b.value(HEIGHT), high)


def test_zoom(b, folder, _):
    open_large(b, folder, 4096)
    b.open(folder + "/hostile.html")
    b.open(folder + "/large4096.html#show=tp")
    high = b.value(HEIGHT)
    same("no small picture where all is seen", b.value("document.querySelectorAll('.overview').length"), 0)
    wide = [b.value("document.querySelector('.cell').offsetWidth")]
    for _ in range(2):
        b.click("#in")
        wide.append(b.value("document.querySelector('.cell').offsetWidth"))
    assert wide[0] < wide[1] < wide[2], wide
    same("a small picture", b.value("document.querySelectorAll('.overview canvas').length"), 1)
    assert b.value(HEIGHT) <= high + 400, "what is larger scrolls in its panel"
    top = "document.querySelector('.parts').scrollTop"
    same("from the top", b.value(top), 0)
    b.click(".overview")
    assert b.value(top) > 0, "a click on the small picture goes there"
    b.click("#fit")
    same("and back", b.value("document.querySelector('.cell').offsetWidth"), wide[0])
    b.value("document.querySelector('.cell').focus()")
    b.key("+", "+")
    same("by a key", b.value("document.querySelector('.cell').offsetWidth"), wide[1])
    b.key("ArrowRight")
    same("the keyboard stays where it was", texts(b, "#rank h2")[0], "Rank 1")


def state(b):
    return [b.value("location.hash"), texts(b, "figure strong"), texts(b, "#rank h2")[0], texts(b, "#said"), texts(b, "#why li"),
            b.value("document.getElementById('zoom').value"), texts(b, "output"), texts(b, "#about")]


def test_address(b, folder, _):
    page = folder + "/address.html"
    moongrid("draw", "megatron", "--world", "64,1024", "tp=1,8", "pp=4", "-o", page)
    b.open(page)
    same("nothing is chosen", b.value("location.hash"), "")
    for axis in (0, 1):
        b.value("(e => { e.value = 1; e.dispatchEvent(new Event('input')) })(document.getElementById('axis%d'))" % axis)
    b.click("#families label:has([value='mp'])")
    b.click(".cell[data-rank='77']")
    b.click("#on")
    b.click("#out")
    type_ranks(b, "3", "515")
    was = state(b)
    for part in ("at=world:1024,tp:8", "rank=77", "step=1", "why=3,515", "zoom=", "show=dp,pp,mp"):
        assert part in was[0], was[0]
    b.open(folder + "/hostile.html")
    b.open(page + was[0])
    same("the page of the address", state(b), was)
    b.value("location.hash = '#rank=5'; new Promise(f => addEventListener('hashchange', () => setTimeout(f)))")
    same("another address", [state(b)[0], state(b)[2], texts(b, "output")], ["#rank=5", "Rank 5", ["64", "1"]])
    for bad in ("#rank=99999&show=nosuch&at=world:7&zoom=99&step=x&why=1", "#%", "#show=%zz&rank=-1", "#rank=1e3&at"):
        b.open(folder + "/hostile.html")
        b.open(page + bad)
        same("what no page has", [texts(b, "#rank h2")[0], texts(b, "output"), b.troubles()], ["A rank", ["64", "1"], []])
        assert texts(b, "figure strong")


def test_search(b, folder, _):
    plan = open_large(b, folder, 1024)
    one = merged(plan)

    def search(text):
        b.value("document.getElementById('find').value = ''; document.getElementById('find').focus()")
        b.call("Input.insertText", text=text)
        return b.value(FAMILIES)

    for text in ("tp", "GLOO", "expt dp", "dist", "pos_embd"):
        want = [n for n, also in one.items() if any(all(w in m for w in text.lower().split()) for m in [n] + also)]
        assert 0 < len(want) < len(one), want
        same("search for " + text, search(text), want)
    search("expt_tp")
    same("the name that was found", texts(b, "#families label:not([hidden])"), ["tpas expt_tp"])
    b.key("Enter", "\r")
    same("Enter shows it", texts(b, "figure strong"), ["tp"])
    same("nothing", search("zebra"), [])
    same("and says so", texts(b, "#families .hint"), ["No family has this in its name."])
    b.key("Escape")
    same("all again", b.value(FAMILIES), list(one))


# What is on the first screen of megatron: of each panel its name, its top, and whether it is whole and its cells large.
FIRST = """[...document.querySelectorAll('figure')].map(f => {
  const r = f.getBoundingClientRect(), parts = f.querySelector('.parts'), c = f.querySelector('.cell').getBoundingClientRect();
  return { name: f.dataset.family, top: r.top, whole: r.bottom <= innerHeight && parts.scrollWidth <= parts.clientWidth
    && parts.scrollHeight <= parts.clientHeight + 1, cell: c.height, number: f.querySelector('.cell').textContent !== '' };
})"""
EMPTY = """[...document.querySelectorAll('.card')].filter(e => e.offsetParent && e.getBoundingClientRect().height > 120
  && e.textContent.trim().length < 60 && !e.querySelector('.cell')).map(e => e.id)"""


def open_megatron(b, folder, world, width, height, *params):
    page = folder + "/first%d%d.html" % (world, len(params))
    if not os.path.exists(page):
        moongrid("draw", "megatron", "--world", str(world), *params, "-o", page)
    b.size(width, height)
    b.open(folder + "/hostile.html")
    b.open(page)


def test_first_screen(b, folder, _):
    for world in (16, 64, 256, 1024, 4096):
        open_megatron(b, folder, world, 1280, 800, "tp=2", "pp=2")
        panels = b.value(FIRST)
        same("first panels", [p["name"] for p in panels], ["tp", "dp", "pp"])
        for p in panels:
            assert p["top"] < 760 and p["whole"], "at %d ranks: %s" % (world, panels)
            assert p["number"] or world > 64, "at %d ranks: %s" % (world, panels)
        assert panels[0]["top"] < 260, panels
        same("texts that are cut", b.value(CUT), [])
        same("empty boxes", b.value(EMPTY), [])
        assert b.value(INSIDE % "#rank") and b.value(INSIDE % "#talk")
        assert b.value("document.querySelector('#rank').offsetHeight") < 120, "a large box says that no rank is chosen"
    open_megatron(b, folder, 64, 1280, 800, "tp=2", "cp=2", "pp=2")
    same("with cp", [p["name"] for p in b.value(FIRST) if p["whole"]], ["tp", "cp", "dp", "pp"])


def test_phone(b, folder, _):
    for world in (16, 64, 1024):
        open_megatron(b, folder, world, 390, 844, "tp=2", "pp=2")
        wide = b.value("document.documentElement.scrollWidth")
        assert wide <= 390, "the page is %d wide on a screen of 390" % wide
        panels = b.value(FIRST)
        same("first panels", [p["name"] for p in panels], ["tp", "dp", "pp"])
        assert panels[0]["top"] < 300, panels
        same("texts that are cut", b.value(CUT), [])
        # labels take a quarter of a panel at most
        share = b.value("Math.max(...[...document.querySelectorAll('.label.row')].map(e => e.offsetWidth / document.getElementById('panels').clientWidth), 0)")
        assert share <= 0.25, share
        # the answer to a tap is in view, and so is the rank
        for rank in (0, world - 1):
            b.click(".cell[data-rank='%d']" % rank)
            same("the rank", texts(b, "#rank h2")[0], "Rank %d" % rank)
            assert b.value(INSIDE % "#rank"), "the answer is not on the screen"
            assert b.value(INSIDE % "#rank tr[data-family]"), "its first line is not on the screen"
            low = b.value("[document.querySelector(\".cell[data-rank='%d']\").getBoundingClientRect().bottom,"
                          " document.querySelector('#rank').getBoundingClientRect().top]" % rank)
            assert low[0] <= low[1], "the answer covers the rank: %s" % low
            b.click("#close")
            assert not b.value("document.querySelector('#rank').offsetParent"), "the answer stays"
    # long names, which no label may have whole
    recipe, page = folder + "/long.lua", folder + "/long.html"
    with open(recipe, "w") as f:
        f.write("return recipe { build = function(world)\n"
                "  local name = 'a_dim_with_the_longest_name_yet'\n"
                "  local t, g = topology(world), grid(world, 'x-' .. name, { x = 4, [name] = fill })\n"
                "  t.groups_with_too_long_a_name_too, t.grid = g(name), g\n  return t\nend }\n")
    moongrid("draw", recipe, "--world", "32", "-o", page)
    b.open(page)
    share = b.value("Math.max(...[...document.querySelectorAll('.label.row')].map(e => e.offsetWidth / document.getElementById('panels').clientWidth))")
    assert 0 < share <= 0.25, share
    same("texts that are cut", b.value(CUT), [])


def test_classes(b, folder, _):
    """Above 4096 ranks: a row for each kind of group, pictures of some ranks, and answers about all."""
    open_megatron(b, folder, 65536, 1280, 800, "tp=8", "pp=8")
    table = b.value("[...document.querySelectorAll('#classes tr.row')].map(r => [...r.children].map(c => c.textContent))")
    same("tp, dp, pp", [r[:5] for r in table[:3]],
         [["tp +3", "8,192", "8", "8 by 1", "1"], ["dp +14", "64", "1,024", "1,024 by 8", "1,024"], ["pp", "8,192", "8", "8 by 8,192", "8"]])
    assert b.value(INSIDE % "#classes") and b.value(INSIDE % "figure")
    assert "ranks are drawn: " in texts(b, "#sampled")[0]
    b.value("document.querySelector('#pick').focus()")
    b.call("Input.insertText", text="54321")
    why = json.loads(moongrid("plan", "megatron", "--world", "65536", "tp=8", "pp=8", "--json", "--rank", "54321"))
    want = {n: [str(g["index"]), "%d of %d" % (g["position"], g["size"])] for n, g in why["families"].items() if g}
    for row in rows(b):
        same("the groups of a rank that is not drawn: " + row[0], row[1:3], want[row[0].split("+")[0]])
    type_ranks(b, "54321", "54322")
    assert any(line.startswith("tp[6790]: positions 1 and 2 of 8") for line in texts(b, "#why li")), texts(b, "#why li")


# What the page of moongrid step writes into its chart: text, place, width, alignment; and the sizes of its parts.
CHART = """(() => {
  const list = [], write = pen.fillText;
  pen.fillText = (text, x, y) => {
    const w = pen.measureText(text).width, align = pen.textAlign;
    list.push([text, align === "right" ? x - w : align === "center" ? x - w / 2 : x, y, w]);
    write.call(pen, text, x, y);
  };
  draw();
  pen.fillText = write;
  return { texts: list, left, height, rows: rows.length, view: $("view").clientWidth, high: window.innerHeight,
           said: $("said").getBoundingClientRect().bottom };
})()"""


def test_step(b, folder, shots):
    path = folder + "/step.html"
    moongrid("step", "megatron", "--world", "64", "tp=8", "pp=4", "layers=32", "--machine", "dgx-h100", "-o", path)
    for width, height in (1280, 800), (390, 844):
        b.size(width, height)
        b.open(path)
        for zoom in None, "zoom(0.02, left + wide / 3)", "zoom(0.2, left + wide / 3)":
            if zoom:
                b.value(zoom)
            seen = b.value(CHART)
            lines = {}
            for text, x, y, w in seen["texts"]:
                assert text and x >= -1 and x + w <= seen["view"] + 40, (text, x, w)
                lines.setdefault(y, []).append((x, w, text))
            for line in lines.values():
                line.sort()
                for (x, w, text), (after, _, other) in zip(line, line[1:]):
                    assert x + w <= after, "%r lies on %r at %d" % (text, other, width)
        assert seen["left"] <= seen["view"] / 4, seen
        assert seen["said"] <= height, "the answer is below the first screen: %d" % seen["said"]
        assert seen["rows"] * seen["height"] > 0.25 * height, seen
        if shots:
            b.shot("%s/step_%d.webp" % (shots, width))
    b.size(1280, 800)


sys.exit(run_tests([test_numbers, test_choosing, test_keeping_and_keys, test_why, test_schedule, test_sliders, test_hostile_names,
                    test_first_screen, test_phone, test_classes, test_1024, test_4096, test_narrow, test_many_dims, test_zoom,
                    test_address, test_search, test_step]))
