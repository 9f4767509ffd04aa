#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# playground.py [SHOTS]: the playground of `make wasm` in a real browser, opened as a file. What stands on the screen is
# what the command says; an address shows the same again; hostile recipes stay text, and end. Prints TAP. SHOTS: a folder
# for pictures. With --bench in place of SHOTS: the milliseconds of each answer. Run in the project's root.

import base64
import json
import os
import re
import subprocess
import sys
import time
import zlib

from browser import CUT, moongrid, run_tests, same, texts

PAGE = "build/wasm/playground.html"
if not os.path.exists(PAGE):
    print("1..0 # SKIP no %s: make wasm" % PAGE)
    sys.exit()

SHOW = "open({ name: 'x.lua', laws: [], other: null, view: '', params: [], ...%s })"
INSIDE = "picture.contentDocument"
ANSWERED = "performance.getEntriesByName('%s').some(e => e.startTime >= (window.since || 0))"


def wait(b, expression, seconds=30):
    for _ in range(seconds * 20):
        if b.value(expression):
            return
        time.sleep(0.05)
    raise AssertionError("after %d seconds not yet: %s; it says %s" % (seconds, expression, texts(b, "#error")))


# Do something, and wait until it is answered: "answer", or "proof" for what comes last. What was asked before may be
# answered meanwhile, so only a question that was asked since then counts.
def after(b, act, what="answer"):
    b.value("window.since = performance.now()")
    act() if callable(act) else b.value(act)
    wait(b, ANSWERED % what)


def fresh(b, at="", what="proof"):
    b.open("tests/README.md")
    b.open(PAGE + at)
    wait(b, ANSWERED % what)


def show(b, what="answer", **recipe):
    after(b, SHOW % json.dumps(recipe), what)


def inside(b, selector):
    return b.value("[...%s.querySelectorAll(%s)].map(e => e.textContent)" % (INSIDE, json.dumps(selector)))


# Type in place of `old` in the text.
def typed(b, old, new):
    b.value("(() => { const at = text.value.indexOf(%s); text.focus(); text.setSelectionRange(at, at + %d) })()" % (json.dumps(old), len(old)))
    b.call("Input.insertText", text=new)


def field(b, name, value):
    after(b, "(e => { e.value = %s; e.dispatchEvent(new Event('input')) })(document.querySelector('#own [data-name=%s] input'))"
          % (json.dumps(str(value)), name), "proof")


def link(*own, laws=(), other=None, view=""):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = packer.compress(json.dumps([own, laws, other, view]).encode()) + packer.flush()
    return "#r=" + base64.urlsafe_b64encode(data).decode().rstrip("=")


def plan_of(*args):
    return json.loads(moongrid("plan", *args, "--json"))


def says(b, plan):
    about = inside(b, "#about")[0]
    assert plan["digest"] in about and "%d rank" % plan["world"] in about.replace(",", ""), (about, plan["digest"])


def test_first_visit(b, folder, shots):
    b.size(1280, 800)
    fresh(b)
    same("requests", [u for u in b.requests() if not re.match("file:|blob:|about:|data:", u)], [])
    same("cookies and stores", b.value("[document.cookie, localStorage.length, sessionStorage.length]"), ["", 0, 0])
    same("the address is empty", b.value("location.hash"), "")
    text = b.value("text.value")
    with open("README.md") as f:
        assert text in f.read(), "the first recipe is that of README"
    path = folder + "/layout.lua"
    with open(path, "w") as f:
        f.write(text)
    plan = plan_of(path, "--world", "16")
    says(b, plan)
    same("panels", inside(b, "figure strong"), ["tp", "dp", "pp"])
    same("fields", texts(b, "#own label span"), ["world", "pp", "tp"])
    assert b.value("(e => e.bottom <= innerHeight && e.top > 0)(%s.querySelector('figure').getBoundingClientRect())" % INSIDE)
    seen = b.value("[...document.querySelectorAll('#seen div')].map(e => e.textContent.replace('\\u200b', '')).join('\\n')")
    same("the coloured copy", seen, text)
    if shots:
        b.shot(shots + "/playground_1280.webp")


def test_one_viewer(b, folder, _):
    page = folder + "/page.html"
    moongrid("draw", "examples/moe.lua", "--world", "16", "tp=2", "-o", page)
    with open(page) as f:
        whole = f.read()
    viewer = b.value("picture.srcdoc")
    script = re.compile("<script>.*</script>", re.S)
    same("the script of draw -o x.html", script.search(viewer).group(), script.search(whole).group())


def test_live(b, folder, _):
    page, recipe = folder + "/live.html", folder + "/<b>&amp;.lua"
    with open("examples/moe.lua") as f, open(recipe, "w") as g:
        g.write(f.read() + "-- </script><b> é\n")
    for args in (recipe, "--world", "16", "tp=2"), ("megatron", "--world", "64", "tp=8"):
        moongrid("draw", *args, "--live", "-o", page)
        b.open("tests/README.md")
        b.open(page)
        wait(b, ANSWERED % "proof")
        says(b, plan_of(*args))
        same("the name", b.value("state.name"), os.path.basename(args[0]).replace("megatron", "megatron.lua"))
    b.value("location.hash = '#example=moe_folding.lua'")
    wait(b, "$('name').textContent === 'moe_folding.lua'")


def test_typing(b, folder, shots):
    fresh(b)
    was = inside(b, "#about")
    typed(b, '"tp", "dp", "pp" } do', '"tq", "dp", "pp" } do')
    wait(b, "!document.querySelector('#error').hidden")
    error = texts(b, "#error")[0]
    assert error.startswith("line 7 unknown dim 'tq'; nearest is 'tp'"), error
    same("the mark", b.value("['row', 'column', 'wide'].map(k => $('wrong').style.getPropertyValue('--' + k))"),
         ["6", str(b.value("text.value.split('\\n')[6].indexOf('tq')")), "2"])
    mark, line = (b.value("(r => [r.top, r.bottom])(document.querySelector('%s').getBoundingClientRect())" % s)
                  for s in ("#wrong", "#seen div:nth-child(7)"))
    assert abs(mark[0] - line[0]) < 2 and abs(mark[1] - line[1]) < 2, (mark, line)
    same("the picture before stays, and is faint", [inside(b, "#about"), b.value(INSIDE + ".body.classList.contains('stale')")], [was, True])
    if shots:
        b.shot(shots + "/playground_error.webp")
    b.value("text.setSelectionRange(0, 0)")
    b.click("#error")
    same("a click goes to the line", b.value("text.value.slice(0, text.selectionStart).split('\\n').length"), 7)
    after(b, lambda: typed(b, '"tq"', '"tp"'))
    same("mended", [b.value("$('error').hidden && $('wrong').hidden"), b.value(INSIDE + ".body.classList.contains('stale')")], [True, False])
    typed(b, "t.amax = ", "t.amax = = ")
    wait(b, "!document.querySelector('#error').hidden")
    column = b.value("+$('wrong').style.getPropertyValue('--column')")
    same("the column of wrong Lua", b.value("text.value.split('\\n')[8]")[column], "=")
    after(b, lambda: typed(b, "= = ", "= "))
    typed(b, "t.amax", "t.am")  # gone from the plan, and known to completion
    wait(b, "!$('words').hidden")
    after(b, lambda: b.key("Enter", "\r"))
    assert "t.amax = g" in b.value("text.value"), b.value("text.value")
    typed(b, '("tp", "dp")', '("tp", "d')
    wait(b, "!$('words').hidden")
    same("dims within quotes", texts(b, "#words li"), ["dp"])
    b.key("Escape")
    same("let go", b.value("$('words').hidden"), True)
    typed(b, '("tp", "d', '("tp", "dp")')


def test_fields(b, folder, _):
    fresh(b)
    show(b, "proof", text='return recipe { base = "megatron", params = { tp = 2 } }', world=16)
    field(b, "tp", 4)
    field(b, "world", 64)
    says(b, plan_of("megatron", "--world", "64", "tp=4"))
    after(b, "(e => { e.focus(); e.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp' })) })(document.querySelector('#own input'))")
    says(b, plan_of("megatron", "--world", "128", "tp=4"))
    b.value("$('others').open = true; $('which').value = 'pipeline stages'; $('which').dispatchEvent(new Event('input'))")
    same("searched", b.value("[...$('others').lastChild.children].filter(l => !l.hidden).map(l => l.textContent)"), ["pp"])
    after(b, "(e => { e.value = '2'; e.dispatchEvent(new Event('input')) })(document.querySelector('#others [data-name=pp] input'))", "proof")
    says(b, plan_of("megatron", "--world", "128", "tp=4", "pp=2"))
    for bad in ("", "0", "x"):
        b.value("(e => { e.value = '%s'; e.dispatchEvent(new Event('input')) })(document.querySelector('#own input'))" % bad)
        wait(b, "!$('error').hidden")
        assert "number of ranks" in texts(b, "#error")[0], texts(b, "#error")
        field(b, "world", 8)


def test_panes(b, folder, shots):
    fresh(b)
    show(b, "proof", name="megatron.lua", text='return recipe { base = "megatron" }', world=16, params=["tp=2", "pp=2"],
         laws=["within(tp, mp)", "within(dp, tp)", "wthin(tp, mp)"])
    plan = plan_of("megatron", "--world", "16", "tp=2", "pp=2")
    b.click("[data-tab-of=groups]")
    same("families", texts(b, "#groups h2 button"), list(plan["families"]))
    explained = moongrid("explain", "megatron", "--world", "16", "tp=2", "pp=2")
    for said in texts(b, "#groups dd"):
        if not re.match("[{(]|megatron", said):
            assert " ".join(said.split()) in " ".join(explained.split()), said
    b.click("[data-tab-of=laws]")
    laws = texts(b, "#laws .card")
    assert "positions, partitions, schedule" in laws[0] and laws[1].startswith("\u2713 within(tp, mp)"), laws
    same("what does not hold", [laws[2].replace("\u00d7", ""), laws[3].split(";")[1].replace("\u00d7", "")],
         ["\u2717 within(dp, tp)law within(dp, tp) does not hold: group 0 of dp has ranks 0 and 2, and no group of tp has both", " nearest is 'within' (same, within, disjoint, covers)"])
    same("the badge", texts(b, "[data-tab-of=laws] i"), ["2 broken"])
    b.click("#laws article:nth-child(3) .rank:nth-of-type(2)")
    same("a rank that breaks a law", inside(b, "#rank h2"), ["Rank 2"])
    b.value("%s.querySelector('.cell[data-rank=\"9\"]').click()" % INSIDE)
    why = json.loads(moongrid("why", "megatron", "--world", "16", "tp=2", "pp=2", "2", "9", "--json"))
    assert " %d group" % len(why["groups"]) in inside(b, "#why p")[0], inside(b, "#why p")
    b.click("[data-tab-of=step]")
    step = json.loads(moongrid("step", "megatron", "--world", "16", "tp=2", "pp=2", "--json"))
    same("the verdict", texts(b, "#step h2 span")[0], step["verdict"])
    same("what travels", texts(b, "#step article:nth-child(2) dt"), [f for f in plan["families"] if f in step["families"]])
    b.click("[data-tab-of=diff]")
    b.click("#pin")
    field(b, "tp", 4)
    diff = moongrid("diff", "megatron", "--world", "16", "tp=2", "pp=2", "vs", "tp=4", "pp=2")
    same("the diff", ["".join(x.split()) for x in texts(b, "#diff dl")], ["".join(diff.split())])
    after(b, lambda: b.click("#diff .drop"))
    assert "Pin this recipe" in texts(b, "#diff .list")[0]
    b.click("[data-tab-of=picture]")


def test_steps_that_hang(b, folder, _):
    fresh(b)
    for name in sorted(os.listdir("examples/steps")):
        if name.endswith(".lua"):
            with open("examples/steps/" + name) as f:
                show(b, "proof", name=name, text=f.read(), world=8)
            out = json.loads(moongrid_any("step", "examples/steps/" + name, "--world", "8", "--json"))
            same("the verdict on " + name, texts(b, "#step h2 span")[0], out["verdict"])


def moongrid_any(*args):
    return subprocess.run(["build/moongrid", *args], capture_output=True, text=True).stdout


def lua(text):
    return subprocess.run(["lua5.4", "-e", text], capture_output=True, text=True, check=True).stdout.strip()


def test_examples(b, folder, _):
    fresh(b)
    n, longest = b.value("listed.length"), 0
    groups = b.value("[...new Set(listed.map(e => e.group))].map(g => [g, listed.filter(e => e.group === g).length])")
    assert n == sum(g[1] for g in groups) and dict(groups)["Published models"] >= 10 and dict(groups)["Cookbook"] >= 12, groups
    for i in range(n):
        after(b, "$('examples').value = %d; $('examples').dispatchEvent(new Event('change'))" % i)
        name = b.value("listed[%d].title" % i)
        same(name, [b.value("$('error').hidden"), b.value("$('examples').value")], [True, str(i)])
        assert inside(b, ".cell"), name
    for one in b.value("Promise.all(listed.filter(e => e.group === 'Cookbook').map(async e => '#r=' + await pack([pair(e), [], null, ''])))"):
        longest = max(longest, len(one))
    assert longest < 1000, "a link of %d characters" % longest


def test_sharing(b, folder, _):
    fresh(b)
    show(b, "proof", name="my.lua", text='return recipe { base = "megatron" }', world=64, params=["tp=2", "pp=4"],
         laws=["within(tp, mp)"], other={"name": "was.lua", "text": 'return recipe { base = "megatron" }', "world": 64, "params": ["tp=8"]})
    b.value("picture.contentWindow.only('mp'); picture.contentWindow.keepOnly(17)")
    b.click("#share")
    wait(b, "/Copied|link/.test($('told').textContent)")
    at = b.value("location.hash")
    was = b.value("[text.value, state]"), inside(b, "#about"), inside(b, "#rank h2"), inside(b, "figure strong"), texts(b, "#laws .card"), texts(b, "#diff dl")
    fresh(b, at)
    now = b.value("[text.value, state]"), inside(b, "#about"), inside(b, "#rank h2"), inside(b, "figure strong"), texts(b, "#laws .card"), texts(b, "#diff dl")
    was[0][1]["view"] = now[0][1]["view"] = ""
    same("the same again", now, was)
    same("a rank of the address", now[2:4], (["Rank 17"], ["mp"]))
    same("a link from elsewhere", link("my.lua", "x", 8, [])[:3], "#r=")
    b.value("location.hash = %s" % json.dumps(link("other.lua", 'return recipe { base = "picotron" }', 4, [])))
    wait(b, "$('name').textContent === 'other.lua'")
    strange = '-- <"é\nreturn recipe { base = "picotron" }'
    stored = lua("print(dofile 'scripts/make/pages.lua'.address('l.lua', [==[%s]==], 4))" % strange)
    fresh(b, "#" + stored)
    same("a link that the site writes", b.value("[state.name, state.text, state.world]"), ["l.lua", strange, 4])
    fresh(b, "#example=nvl72.lua")
    same("an example by its name", [texts(b, "#name"), b.value("state.params")], [["nvl72.lua"], ["domain=16"]])
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = base64.urlsafe_b64encode(bomb.compress(b"[" * (1 << 24)) + bomb.flush()).decode().rstrip("=")
    for bad in ("#r=xyz", "#r=" + bomb, link(1, 2, 3, 4), link("a", "b", 8, [1]), link("a", "b", "8", []), link("a", "b", 8, [], laws=[3]), "#%zz"):
        fresh(b, bad)
        assert inside(b, ".cell"), bad[:40]
        if bad.startswith("#r="):
            assert "not one of this page" in texts(b, "#told")[0], (bad[:40], texts(b, "#told"))


HOSTILE = {
    "a loop": "while true do end",
    "a loop in build": "return recipe { build = function(world) while true do end end }",
    "memory": "local t = {} for i = 1, 1e9 do t[i] = {} end",
    "a long text": "local t = 'x' while true do t = t .. t end",
    "a sort": "local t = {} for i = 1, 4e5 do t[i] = i % 7 end while true do table.sort(t, function(a, b) return a < b end) end",
    "a pattern": "return recipe { build = function(world) local t = topology(world) for i = 1, 1e5 do t['a' .. i] = world:table({{0, 1}}, 'cover') end return t end }",
    "deep": "local function f() return pcall(f) end f()",
}


def test_hostile_recipes(b, folder, _):
    for what, text in HOSTILE.items():
        b.open("tests/README.md")
        began = time.monotonic()
        b.open(PAGE + link("x.lua", text, 8, []))
        wait(b, "!$('error').hidden")
        said = texts(b, "#error")[0]
        assert re.search("longer than 2 seconds|more than|memory|stack|overflow|returned", said), (what, said)
        took = b.value("performance.getEntriesByName('refused').map(e => e.duration).at(-1)")
        assert took is None or took < 6000, "%s: ended after %d ms (%.1f s with the browser)" % (what, took, time.monotonic() - began)
        show(b, text='return recipe { base = "picotron" }', world=4)
        same("and the next answers", b.value("$('error').hidden"), True)


def test_hostile_names(b, folder, _):
    evil = "</script><img src=x onerror=document.title='caught'><b>"
    text = ("return recipe { doc = %s, params = { note = param.text(%s, %s) }, build = function(world, p)\n"
            "  local g, t = grid(world, 'a-b', { a = 2, b = fill }), topology(world)\n  t.f, t.grid = g 'a', g\n  return t\nend }\n" % ((json.dumps(evil),) * 3))
    fresh(b, link(evil + ".lua", text, 8, ["note=" + evil], laws=[evil], other=[evil, text, 4, []]))
    for t in ("groups", "laws", "step", "diff", "recipe", "picture"):
        b.value("tab('%s')" % t)
    same("nothing is markup", b.value("[document.images.length, %s.images.length, document.querySelectorAll('b b').length, document.title]" % INSIDE),
         [0, 0, 0, evil + ".lua"])
    assert evil in texts(b, "#name")[0] and evil in texts(b, "#doc")[0] and evil in texts(b, "#laws .card")[1], texts(b, "#laws .card")
    b.value(SHOW % json.dumps({"text": "error(%s)" % json.dumps(evil), "world": 8}))
    wait(b, "!$('error').hidden")
    assert evil in texts(b, "#error")[0], texts(b, "#error")
    same("nothing is fetched", b.value("fetch('https://localhost/').then(() => 1, () => 0)"), 0)
    same("or sent to another window", b.value("document.querySelectorAll('form, a[href], iframe[src]').length"), 0)
    b.events.clear()  # of the refusal


def test_looks(b, folder, shots):
    """At both sizes, in both themes: nothing leaves the screen, no text is cut, and what is in each pane is seen."""
    for width, height, dark in ((1280, 800, False), (1280, 800, True), (390, 844, False), (390, 844, True)):
        b.size(width, height, dark)
        fresh(b, link("megatron.lua", 'return recipe {\n  base = "megatron",\n  params = { tp = 2, pp = 2 },\n}\n', 64, [], laws=["within(tp, mp)", "within(dp, tp)"],
                      other=["was.lua", 'return recipe { base = "megatron" }', 64, ["tp=4"]]))
        for t in ("recipe", "picture", "groups", "laws", "step", "diff"):
            if t == "recipe" and width > 860:
                continue
            b.click("[data-tab-of=%s]" % t)
            same("wide", b.value("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"), [width, height])
            same("texts that are cut", b.value(CUT.replace("h1, ", "h1, nav button, .button, #own span, dt, dd, .pane h2, .pane p, ")), [])
            same("buttons off the screen", b.value("""[...document.querySelectorAll('header button, header select, nav button')].filter(e => {
              const r = e.getBoundingClientRect(); return e.offsetParent && r.width && (r.left < 0 || r.right > innerWidth || r.height < 24) }).map(e => e.textContent)"""), [])
            same("faint texts", b.value(FAINT), [])
            if shots:
                b.shot("%s/playground_%d_%s_%s.webp" % (shots, width, "dark" if dark else "light", t))
    b.size(1280, 800)


# Texts whose colour is not 4.5 times as bright, or as dark, as what is behind them.
FAINT = """(() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const rgb = colour => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data]; };
  const light = colour => { const [r, g, b] = rgb(colour).map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] > 250) return c; } return 'white'; };
  return [...document.querySelectorAll('header *, nav *, #own *, .pane *, #seen span')].filter(e => e.offsetParent && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())).filter(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05) < 4.5;
  }).map(e => e.textContent);
})()"""


def test_theme_and_keys(b, folder, _):
    fresh(b)
    paper = "[document, %s].map(d => getComputedStyle(d.body).backgroundColor)" % INSIDE
    light = b.value(paper)
    b.value("$('theme').click()")
    dark = b.value(paper)
    assert light[0] == light[1] and dark[0] == dark[1] and light != dark, (light, dark)
    b.value("$('theme').click()")
    same("and back", b.value(paper), light)
    b.value("document.querySelector('[data-tab-of=picture]').focus()")
    for want in ("groups", "laws", "step", "diff", "picture"):
        b.key("ArrowRight")
        same("the next tab", b.value("[document.body.dataset.tab, document.activeElement.dataset.tabOf]"), [want, want])
    b.size(390, 844)
    b.value("tab('recipe')")
    b.size(1280, 800)
    wait(b, "document.body.dataset.tab === 'picture'")


def bench(b, folder, _):
    def tell(what, took):
        print("# %s: %s ms" % (what, " ".join("%.0f" % ms for ms in took)))
    b.size(1280, 800)
    first = []
    for _ in range(5):
        fresh(b)
        first.append(b.value("(e => e.startTime + e.duration)(performance.getEntriesByName('answer')[0])"))
    tell("first answer after loading", first)
    for world in 64, 4096, 1 << 20:
        took = []
        for i in range(9):
            params = ["tp=%d" % (2, 4, 8)[i % 3], "pp=8"]
            after(b, SHOW % json.dumps({"text": 'return recipe { base = "megatron" }', "world": world, "params": params}), "proof")
            took.append(b.value("performance.getEntriesByName('answer').at(-1).duration"))
        tell("an answer at %d ranks" % world, took[2:])
    print("# %s: %d bytes, by gzip %d" % (PAGE, os.path.getsize(PAGE), len(zlib.compress(open(PAGE, "rb").read(), 9))))


if sys.argv[1:] == ["--bench"]:
    sys.argv.pop()
    sys.exit(run_tests([bench]))
sys.exit(run_tests([test_first_visit, test_one_viewer, test_live, test_typing, test_fields, test_panes, test_steps_that_hang, test_examples, test_sharing,
                    test_hostile_recipes, test_hostile_names, test_looks, test_theme_and_keys]))
