"use strict";
/* SPDX-License-Identifier: MIT
**
** playground.js - a recipe that is edited, and beside it what the module answers (lua/pictures/playground.lua). The
** picture is the page of moongrid draw, in a frame. The address has all that is needed to see the same again.
*/
const LIMIT = 2000, WAIT = 120, LARGEST = 1 << 20; // milliseconds of an answer, and after a key; characters of an address
const listed = JSON.parse($("listed").textContent).map(([group, title, ...of]) => ({ group, title, ...side(of) }));
const start = /^{/.test($("start").textContent) && JSON.parse($("start").textContent); // of draw --live
const TABS = ["recipe", "picture", "groups", "laws", "step", "diff"];
const picture = $("picture"), text = $("text");
let state, frame = null, drawn = null, edits = 0, view = null, ours = "", timer = 0, known = "", opening = false;

// The module: one answer after the other, by a worker that is ended if one takes too long -----------------------------
const compiled = (async () => {
  const packed = new Blob([Uint8Array.fromBase64($("wasm").textContent)]);
  return WebAssembly.compile(await new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
})();
const source = URL.createObjectURL(new Blob([$("module").textContent, "\n", $("worker").textContent], { type: "text/javascript" }));
// Return a function that asks a worker of its own. It answers null if the request is stale when its turn comes.
function asker() {
  let worker = null, tail = Promise.resolve();
  const reply = (message, limit) => new Promise((done, failed) => {
    const late = limit && setTimeout(() => failed(new Error("This took longer than 2 seconds, and was ended.")), limit);
    worker.onmessage = e => { clearTimeout(late); done(e.data); };
    worker.onerror = e => { clearTimeout(late); failed(new Error(e.message)); };
    worker.postMessage(message);
  });
  const answer = async request => {
    try {
      if (!worker) {
        worker = new Worker(source);
        await reply(await compiled);
      }
      return JSON.parse(await reply(JSON.stringify(request), LIMIT));
    } catch (why) {
      if (worker) worker.terminate();
      worker = null;
      return { error: { message: why.message } };
    }
  };
  return (request, stale = () => false) => tail = tail.then(() => stale() ? null : answer(request));
}
const ask = asker(), prove = asker(); // other answers do not wait for a proof

// Sharing: the address ------------------------------------------------------------------------------------------------
async function pack(value) {
  const stream = new Blob([JSON.stringify(value)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer()).toBase64({ alphabet: "base64url", omitPadding: true });
}
async function unpack(word) {
  const packed = new Blob([Uint8Array.fromBase64(word, { alphabet: "base64url" })]), decoder = new TextDecoder();
  const reader = packed.stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  for (let all = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return JSON.parse(all);
    all += decoder.decode(value, { stream: true });
    if (all.length > LARGEST) throw new Error("it is too long");
  }
}
const pair = s => [s.name, s.text, s.world, s.params];
function side([name, words, world, params]) {
  if (![name, words, ...params].every(t => typeof t === "string") || !Number.isInteger(world)) throw new Error("it is not whole");
  return { name, text: words, world, params };
}
async function write() {
  const view_of = view && drawn ? view.address() : state.view;
  ours = "#r=" + await pack([pair(state), state.laws, state.other && pair(state.other), view_of]);
  try { history.replaceState(null, "", ours); } catch { location.hash = ours; }
}
// "#example=nvl72.lua" opens an example, "#r=..." what was shared.
async function read() {
  const [kind, word] = location.hash.slice(1).split("=");
  try {
    if (!word) return open(first());
    if (kind === "example") return open(listed.find(e => e.name === word) || first());
    const [own, laws, other, view_of] = await unpack(word);
    if (![...laws, view_of].every(t => typeof t === "string")) throw new Error("it is not whole");
    open({ ...side(own), laws, other: other && side(other), view: view_of });
  } catch (why) {
    open(first());
    told(`The address is not one of this page: ${why.message}.`);
  }
}
window.addEventListener("hashchange", () => { if (location.hash !== ours) read(); });
// What the page shows first if its address names nothing.
const first = () => start ? { text: `return recipe { base = "${start.name}" }\n`, ...start } : listed[0];
function told(words) { $("told").textContent = words; }

// A recipe, its world and parameters ----------------------------------------------------------------------------------
function open(s) {
  state = { laws: [], other: null, view: "", params: [], ...s };
  if (!/\.lua$/.test(state.name)) state.name += ".lua"; // so that the text counts, not the bundled recipe of this name
  text.value = state.text;
  $("name").textContent = document.title = state.name;
  known = "";
  drawn = null;
  told("");
  $("editor").scrollTo(0, 0);
  const at = listed.findIndex(e => e.name === s.name && e.text === s.text && e.world === s.world);
  $("examples").value = at < 0 ? "" : at;
  update();
}
const given = () => new Map(state.params.map(p => [p.split("=")[0], p.slice(p.indexOf("=") + 1)]));
function give(p, value) {
  const all = given();
  all.delete(p.long);
  if (value === "" || value === p.default) all.delete(p.name); else all.set(p.name, value);
  state.params = [...all].map(([name, v]) => `${name}=${v}`);
  soon();
}
// A size is doubled and halved by the arrow keys.
const twice = e => {
  const n = +e.target.value, next = { ArrowUp: 2 * n, ArrowDown: n / 2 }[e.key];
  if (!Number.isInteger(next) || next < 1) return;
  e.preventDefault();
  e.target.value = next;
  e.target.dispatchEvent(new Event("input"));
};
function field(p, value, take, set) {
  const number = /^(size|index|integer|number)$/.test(p.kind), flag = p.kind === "flag";
  const input = p.choices ? el("select", { change: e => take(e.target.value) }, p.choices.map(c => el("option", c === value ? { selected: "" } : {}, c)))
    : el("input", { ...flag ? { type: "checkbox", ...value === "true" ? { checked: "" } : {} } : { value, placeholder: number ? "-" : "" },
      ...number ? { inputmode: "numeric" } : {}, autocomplete: "off", spellcheck: "false", keydown: p.kind === "size" ? twice : undefined,
      input: e => take(flag ? String(e.target.checked) : e.target.value) });
  return el("label", { title: p.doc || p.name, "data-name": p.name, class: set ? "set" : undefined }, el("span", {}, p.name), input);
}
// The fields: the world and the parameters that the text names or that are given; the others below.
function fields(declared) {
  const all = given(), value = p => all.get(p.name) ?? all.get(p.long) ?? p.default ?? "";
  const words = new Set(state.text.match(/\w+/g)), set = p => all.has(p.name) || all.has(p.long), named = p => set(p) || words.has(p.name) || words.has(p.long);
  const own = declared.params.filter(named), others = declared.params.filter(p => !named(p));
  const now = JSON.stringify([own.map(p => [p, document.activeElement.closest("#fields") ? 0 : value(p)]), others.length]);
  if (now === known) return;
  known = now;
  const make = p => field(p, value(p), v => give(p, v), set(p));
  const world = { name: "world", kind: "size", doc: "ranks in the world; the arrow keys double and halve it" };
  $("own").replaceChildren(field(world, String(state.world), v => { state.world = /^\d{1,10}$/.test(v) ? +v : 0; soon(); }), ...own.map(make));
  $("others").hidden = !others.length;
  $("others").firstChild.textContent = `${others.length} more parameter${s_of(others.length)}`;
  $("others").lastChild.replaceChildren(...others.map(make));
  $("which").hidden = others.length < 12;
}
$("which").addEventListener("input", e => {
  for (const label of $("others").lastChild.children) label.hidden = !(label.dataset.name + label.title).toLowerCase().includes(e.target.value.toLowerCase());
});
for (const id of ["examples", "against"]) {
  for (const group of new Set(listed.map(e => e.group))) $(id).append(el("optgroup", { label: group },
    listed.map((e, i) => e.group === group && el("option", { value: i }, e.title || e.name)).filter(x => x)));
}
$("examples").addEventListener("change", e => {
  const chosen = listed[e.target.value];
  if (chosen) open(chosen);
  soon();
});

// The editor: a text area over its coloured copy ----------------------------------------------------------------------
const TOKENS = new RegExp(["(?<note>--.*)", "(?<text>\"(?:[^\"\\\\\\n]|\\\\.)*\"?|'(?:[^'\\\\\\n]|\\\\.)*'?)", "(?<number>\\b\\d[\\w.]*)",
  "\\b(?<word>and|break|do|else|elseif|end|false|for|function|if|in|local|nil|not|or|repeat|return|then|true|until|while)\\b",
  "\\b(?<verb>recipe|grid|world|topology|fill|param|union|zip|closure|same|within|aligned|spread|disjoint|covers|concurrent|tensor|flat|import|policies)\\b"].join("|"), "g");
function paint() {
  const lines = text.value.split("\n");
  $("seen").replaceChildren(...lines.map(line => {
    const row = el("div");
    let at = 0;
    for (const m of line.length < 2000 ? line.matchAll(TOKENS) : []) {
      const [kind] = Object.entries(m.groups).find(g => g[1]);
      row.append(line.slice(at, m.index), el("span", { class: kind }, m[0]));
      at = m.index + m[0].length;
    }
    row.append(line.slice(at) || (at ? "" : "\u200b"));
    return row;
  }));
}
// The error below the text, and a mark at its line, under the word that it quotes.
function refuse(error) {
  const n = error && error.line, line = text.value.split("\n")[n - 1], box = $("error");
  box.hidden = !error;
  $("wrong").hidden = line === undefined;
  if (error) box.replaceChildren(...n ? [el("b", {}, `line ${n} `)] : [], error.message);
  if (view) view.document.body.classList.toggle("stale", !!error);
  if (line === undefined) return;
  const at = error.column === undefined ? -1 : line.search(/\S|$/) + error.column;
  const quoted = [/'([^']+)'/g, /(\w{2,})/g].flatMap(words => [...error.message.matchAll(words)]).map(m => m[1]).find(w => line.includes(w));
  const word = at >= 0 ? "" : quoted || line.trim(), column = at >= 0 ? at : line.indexOf(word);
  Object.entries({ row: n - 1, column, wide: Math.max(1, word.length) }).forEach(([k, v]) => $("wrong").style.setProperty("--" + k, v));
}
$("error").addEventListener("click", () => {
  const before = text.value.split("\n").slice(0, +$("wrong").style.getPropertyValue("--row")).join("\n").length;
  text.focus();
  text.setSelectionRange(before + 1, before + 1);
});

const list = $("words");
let offered = 0;
const line_of = () => text.value.slice(text.value.lastIndexOf("\n", text.selectionStart - 1) + 1, text.selectionStart);
async function complete() {
  const line = line_of(), typed = /\w*$/.exec(line)[0], all = text.value, stale = () => text.value !== all;
  list.hidden = true;
  if (line.length > 500 || !/\w{2}$|[.:]\w*$|["']\w*$/.test(line) || /--/.test(line)) return;
  const r = await ask({ complete: line }, stale), words = (r && r.words || []).filter(w => w !== typed).slice(0, 12);
  if (stale() || !words.length) return;
  list.style.setProperty("--row", text.value.slice(0, text.selectionStart).split("\n").length);
  list.style.setProperty("--column", line.length - typed.length);
  list.replaceChildren(...words.map(w => el("li", { role: "option", "data-rest": w.slice(typed.length), mousedown: e => { e.preventDefault(); accept(e.target); } }, w)));
  list.hidden = false;
  offer(0);
}
function offer(n) {
  offered = (n + list.children.length) % list.children.length;
  [...list.children].forEach((li, i) => li.setAttribute("aria-selected", i === offered));
}
function accept(li) {
  document.execCommand("insertText", false, li.dataset.rest); // with undo
  list.hidden = true;
}
text.addEventListener("keydown", e => {
  const act = list.hidden ? { Enter: () => document.execCommand("insertText", false, "\n" + /^\s*/.exec(line_of())[0]) }
    : { ArrowDown: () => offer(offered + 1), ArrowUp: () => offer(offered - 1), Tab: () => accept(list.children[offered]),
      Enter: () => accept(list.children[offered]), Escape: () => { list.hidden = true; } };
  if (!act[e.key] || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  act[e.key]();
});
text.addEventListener("input", () => {
  state.text = text.value;
  paint();
  complete();
  soon();
});
text.addEventListener("blur", () => { list.hidden = true; });

// Answers -------------------------------------------------------------------------------------------------------------
const request = () => ({ ...state, view: undefined });
function soon() {
  clearTimeout(timer);
  timer = setTimeout(() => { update(); write(); }, WAIT);
}
async function update() {
  const mine = ++edits, stale = () => mine !== edits, began = performance.now();
  paint();
  const r = state.world ? await ask(request(), stale) : { error: { message: "The world is a number of ranks, 1 or more." } };
  if (!r || stale()) return;
  if (r.error) performance.measure("refused", { start: began });
  refuse(r.error);
  if (r.declared) {
    fields(r.declared);
    $("doc").textContent = r.declared.doc;
  }
  if (r.error) return;
  frame = r.frame;
  for (const name of ["groups", "laws", "diff"]) fill(name, r[name]);
  against();
  await draw();
  performance.measure("answer", { start: began });
  const proof = await prove({ ...request(), prove: true }, stale);
  if (!proof || stale()) return;
  fill("step", proof.step || { badge: "!", kind: "bad", cards: [{ title: "Not proved", about: proof.error.message, kind: "bad" }] });
  if (proof.laws) fill("laws", proof.laws);
  performance.measure("proof", { start: began });
}
// Draw the last frame where it is seen.
const loaded = new Promise(done => picture.addEventListener("load", done, { once: true }));
picture.srcdoc = $("viewer").textContent.replaceAll("<\\/", "</");
async function draw() {
  await loaded;
  view = picture.contentWindow;
  view.changed = () => { if (!opening) write(); };
  if (drawn === frame || picture.hidden || !picture.offsetWidth) return;
  const again = drawn;
  drawn = frame;
  opening = true;
  view.open(frame, again ? undefined : state.view);
  opening = false;
}

// What is said of the plan --------------------------------------------------------------------------------------------
function tab(name) {
  document.body.dataset.tab = name;
  for (const t of TABS) {
    const chosen = t === name, button = document.querySelector(`[data-tab-of=${t}]`);
    button.setAttribute("aria-selected", chosen);
    button.tabIndex = chosen ? 0 : -1;
    if (t !== "recipe") $(t).hidden = !chosen;
  }
  if (frame) draw();
}
document.querySelector("nav").append(...TABS.map(t => el("button", { role: "tab", type: "button", "data-tab-of": t, "aria-controls": t, click: () => tab(t), keydown: e => {
  const all = [...e.target.parentNode.children].filter(b => b.offsetWidth), way = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!way) return;
  const next = all.at((all.indexOf(e.target) + way) % all.length);
  tab(next.dataset.tabOf);
  next.focus();
} }, t[0].toUpperCase() + t.slice(1), el("i"))));
window.addEventListener("resize", () => { if (innerWidth > 860 && document.body.dataset.tab === "recipe") tab("picture"); });
async function show(name, ...what) {
  tab("picture");
  await draw();
  view[name](...what);
}
// A text whose ranks are buttons that show them in the picture.
const with_ranks = words => words.split(/(\branks? [\d, and]*\d)(?!\.\.|\d)/).flatMap((part, i) => i % 2 ? part.split(/(\d+)/).map((word, k) =>
  k % 2 ? el("button", { type: "button", class: "rank", click: () => show("keepOnly", +word) }, word) : word) : [part]);
const drop = (what, act) => el("button", { type: "button", class: "drop", "aria-label": `drop ${what}`, click: () => { act(); soon(); } }, "\u00d7");
const row_of = ({ label, words, kind, part }) => [el("dt", {}, label),
  part === undefined ? el("dd", { class: kind }, with_ranks(words)) : el("dd", { class: "bar", style: `--part:${part}` }, words)];
// A pane as the module answers it: its badge on the tab, and its cards.
function fill(name, pane) {
  const badge = document.querySelector(`[data-tab-of=${name}] i`);
  badge.textContent = pane ? pane.badge : "";
  badge.className = pane && pane.kind || "";
  $(name).querySelector(".list").replaceChildren(...(pane ? pane.cards : []).map(({ title, family, law, about, kind, rows }) =>
    el("article", { class: `card ${kind || ""}` }, el("h2", {},
      el("span", {}, family ? el("button", { type: "button", title: "show it in the picture", click: () => show("only", family) }, title) : title),
      about && el("span", { class: "soft" }, with_ranks(about)), law && drop(law, () => { state.laws = state.laws.filter(l => l !== law); })),
    rows && el("dl", {}, rows.map(row_of)))));
}
$("law").addEventListener("change", e => {
  const law = e.target.value.trim();
  if (law && !state.laws.includes(law)) state.laws = [...state.laws, law];
  e.target.value = "";
  soon();
});

// The fields of the side that the recipe is compared with.
function against() {
  const o = state.other;
  for (const [id, value] of [["size", o && o.world], ["given", o && o.params.join(" ")]]) {
    $(id).disabled = !o;
    if (document.activeElement !== $(id)) $(id).value = value ?? "";
  }
  if (o) $("diff").querySelector("h2").append(drop("it", () => { state.other = null; }));
  else $("diff").lastChild.replaceChildren(el("p", { class: "soft" }, "Pin this recipe, then change it: here are then the differences, and the communicators that a running job keeps."));
}
$("pin").addEventListener("click", () => { state.other = side(pair(state)); soon(); });
$("against").addEventListener("change", e => { if (listed[e.target.value]) state.other = side(pair(listed[e.target.value])); soon(); });
$("size").addEventListener("input", e => { if (/^[1-9]\d{0,9}$/.test(e.target.value)) { state.other.world = +e.target.value; soon(); } });
$("given").addEventListener("input", e => { state.other.params = e.target.value.split(/\s+/).filter(w => w); soon(); });

// The buttons ---------------------------------------------------------------------------------------------------------
$("share").addEventListener("click", async () => {
  await write();
  try {
    await navigator.clipboard.writeText(location.href);
    told(`Copied, ${count_of(location.href.length)} characters.`);
  } catch { told("The address of this page is the link."); }
});
for (const what of ["svg", "json"]) $(what).addEventListener("click", async () => {
  const r = await ask({ ...request(), give: what });
  if (r.error) return refuse(r.error);
  const url = URL.createObjectURL(new Blob([r.text]));
  el("a", { href: url, download: state.name.replace(/lua$/, what) }).click();
  URL.revokeObjectURL(url);
});
$("theme").addEventListener("click", () => {
  const style = document.documentElement.style, dark = (style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  style.colorScheme = dark ? "light" : "dark";
  if (view) view.document.documentElement.style.colorScheme = style.colorScheme;
  if (view && drawn) view.again();
});
tab("picture");
read();
