"use strict";
/* SPDX-License-Identifier: MIT
**
** page.js - what the page of a plan does: sizes, families, a rank, the schedule, why two ranks talk, the address.
** page_panels.js draws the ranks. make puts both into page.html, and that into the playground, which gives it plans.
*/
const data = JSON.parse($("data").textContent);
// A cell of a table, whose text breaks only after a comma or a _.
const cell_of = text => el("td", {}, String(text).split(/(?<=[,_])/).map((part, i) => i ? [el("wbr"), part] : part).flat());
const names_of = (list, most = 4) => list.slice(0, most).join(", ") + (list.length > most ? ` and ${list.length - most} more` : "");

// A family, whose groups follow a rule of modes or are listed. It has neither if the list is too long for the page.
class Family {
  constructor(f) {
    Object.assign(this, f);
    const digits = (list, inside) => list.map(([size, stride], i) => // a mode as one digit of rank - offset
      ({ size, stride, inside, weight: list.slice(0, i).reduce((n, mode) => n * mode[0], 1) }));
    if (!f.modes) return;
    this.inside = digits(f.modes.inside, true);
    this.index = digits(f.modes.index, false);
    this.digits = [...this.inside, ...this.index].sort((x, y) => y.stride - x.stride);
  }
  // The groups of a rank, with its position in each.
  locate(rank) {
    if (!this.modes) {
      this.by_rank ??= Map.groupBy((this.groups || []).flatMap((ranks, g) => ranks.map((r, i) => [g, i, r])), x => x[2]);
      return this.by_rank.get(rank) || [];
    }
    let rest = rank - this.modes.offset, group = 0, position = 0;
    if (rest < 0) return [];
    for (const d of this.digits) {
      const n = Math.floor(rest / d.stride);
      if (n >= d.size) return [];
      rest -= n * d.stride;
      if (d.inside) position += n * d.weight; else group += n * d.weight;
    }
    return rest ? [] : [[group, position]];
  }
  of(rank) { return this.locate(rank).map(x => x[0]); }
  get known() { return this.modes || this.groups; }
  size(g) { return this.groups ? this.groups[g].length : this.largest; }
  member(g, i) {
    const at = (list, n) => list.reduce((sum, d) => sum + Math.floor(n / d.weight) % d.size * d.stride, 0);
    return this.modes ? this.modes.offset + at(this.index, g) + at(this.inside, i) : this.groups[g][i];
  }
  ranks(g, from = 0, to = this.size(g)) { return Array.from({ length: to - from }, (_, i) => this.member(g, from + i)); }
  // Members of a group in a few words, "{0,1,2,...,1023} 1,024 ranks": few of them whole.
  say(g, most = 16, from = 0, to = this.size(g)) {
    return to - from <= most ? `{${this.ranks(g, from, to).join(",")}}`
      : `{${this.ranks(g, from, from + 3).join(",")},...,${this.member(g, to - 1)}} ${count_of(to - from)} ranks`;
  }
}

const ROWS = 4, MADE = 40, LISTED = 4096; // most groups of a family, communicators, and members, listed for a rank
// first: for each family the one that represents all families with its groups; also: the others that it represents.
let frame, plan, names, first, also, chosen = new Set(), picked = false, kept = null, shown = null, panels = [], zoom = null;
const family = name => plan.by.get(name);

// One plan ------------------------------------------------------------------------------------------------------
function use(f) {
  frame = f;
  if (f.plan && !f.turned) {
    f.turned = true;
    for (const s of f.sheets) s.parts = s.parts.map(upright);
    for (const s of f.steps) s.groups = s.groups && new Set(s.groups);
    const lists = new Map(f.plan.families.map(one => [one.name, one.groups])); // equal families share one list
    f.plan.families = f.plan.families.map(one => new Family({ ...one, groups: lists.get(one.same || one.name) }));
    f.plan.by = new Map(f.plan.families.map(one => [one.name, one]));
    for (const g of f.plan.grids) g.line = new Family(g.line);
  }
  plan = f.plan;
  $("refused").textContent = f.error || "";
  names = plan ? plan.families.map(one => one.name) : [];
  // A family with the name of a dim represents those with its groups. These families come first, in the order of dims.
  const dims = new Set(plan ? plan.grids.flatMap(g => g.dims.map(d => d[0])).filter(n => names.includes(n)) : []);
  const equal = Map.groupBy(new Set([...dims, ...names]), n => family(n).same || n);
  first = new Map(names.map(n => [n, equal.get(family(n).same || n)[0]]));
  also = new Map(names.map(n => [n, first.get(n) === n ? names.filter(m => m !== n && first.get(m) === n) : []]));
  if (plan) {
    const leads = n => first.get(n) === n, main = [...dims].filter(n => leads(n) && family(n).largest > 1);
    Object.assign(plan, { main, own: [...main, ...names.filter(n => leads(n) && !main.includes(n))] });
  }
  const machine = machineOf();
  $("title").textContent = data.recipe;
  $("about").replaceChildren(...plan ? [`${count_of(plan.world)} rank${s_of(plan.world)}; ${count_of(plan.communicators)} communicator${s_of(plan.communicators)} for `
    + `${count_of(plan.groups)} group${s_of(plan.groups)}`, el("span", { class: "digest" }, `; digest ${plan.digest}`)] : []);
  $("given").textContent = plan ? f.given.join(", ") : "";
  $("dims").replaceChildren(...(plan ? plan.grids : []).map(({ name, dims: list }) => {
    const large = list.filter(d => d[1] > 1);
    return el("span", { class: "dims" }, el("span", { class: "soft" }, `${name}: `), el("b", {}, (large.length ? large : list).map(d => d.join(" ")).join(" \u00d7 ")));
  }));
  $("machines").textContent = machine ? `Thick lines go around machines of ${machine} ranks.` : "";
  $("sampled").textContent = [f.sampled, f.dims].filter(x => x).join(" ");
  $("step").max = plan ? f.steps.length : 0;
  $("step").value = 0;
  for (const id of ["a", "b", "pick"]) $(id).max = plan ? plan.world - 1 : 0;
  $("pick").value = "";
  if (!plan || kept >= plan.world) kept = null;
  listClasses(machine);
  listFamilies();
  draw();
  step();
  why();
  look(kept);
  show(kept);
  changed();
}
// The number of consecutive ranks of a machine; 0: there is one machine, or each machine has one rank.
const machineOf = () => plan && plan.machine > 1 && plan.machine < plan.world ? plan.machine : 0;
const title_of = name => [name, ...also.get(name)].join(", ");
const also_of = name => also.get(name).length > 0 && el("span", { class: "also" }, `+${also.get(name).length}`);
const row_of = (kind, list) => el("tr", {}, list.map(words => el(kind, {}, words)));

// If only a part of the world is drawn: a table of the families and the form of their groups.
function listClasses(machine) {
  $("classes").hidden = !plan || !frame.sampled;
  if ($("classes").hidden) return;
  $("classes").replaceChildren(el("table", {}, row_of("th", ["family", "groups", "of ranks", "steps", machine > 0 && "machines", "the first one"]), plan.own.map(name => {
    const f = family(name), n = f.count && f.known ? f.size(0) : 0, only = () => choose([name]);
    const steps = f.modes ? f.modes.inside.filter(m => m[0] > 1).map(m => `${count_of(m[0])} by ${count_of(m[1])}`).join(", ") || "-" : "listed";
    const machines = machine > 0 && (n <= LISTED ? count_of(new Set(f.ranks(0, 0, n).map(r => Math.floor(r / machine))).size) : "many");
    const row = row_of("td", [[name, also.get(name).length > 0 && " ", also_of(name)], count_of(f.count), (f.even ? "" : "up to ") + count_of(f.largest), steps, machines,
      n > 6 ? `${f.ranks(0, 0, 3).join(", ")}, ..., ${f.member(0, n - 1)}` : f.ranks(0, 0, n).join(", ")]);
    Object.assign(row, { className: "row", tabIndex: 0, title: title_of(name), onclick: only, onkeydown: e => { if (e.key === "Enter") only(); } });
    return row;
  })));
}

// Sliders -------------------------------------------------------------------------------------------------------
const at = data.axes.map(() => 0);
const frameAt = () => data.frames[at.reduce((n, place, k) => n * data.axes[k].values.length + place, 0)];
function slide(i, place) {
  const input = $("axis" + i), text = data.axes[i].values[place];
  at[i] = input.value = place;
  input.nextSibling.textContent = text;
  input.setAttribute("aria-valuetext", text);
}
$("sliders").hidden = !data.axes.length;
data.axes.forEach((axis, i) => {
  const input = el("input", { id: "axis" + i, type: "range", min: 0, max: axis.values.length - 1, input: e => { slide(i, +e.target.value); use(frameAt()); } });
  $("sliders").append(el("div", { class: "slider" }, el("label", { for: "axis" + i }, axis.name), input, el("output")));
});

// Families ------------------------------------------------------------------------------------------------------
const PANELS = 4; // at first
function listFamilies() {
  const own = plan ? plan.own : [], large = own.filter(n => family(n).count && family(n).largest > 1), main = large.filter(n => plan.main.includes(n));
  chosen = new Set([...chosen].filter(n => first.has(n)).map(n => first.get(n)));
  if (!chosen.size && !picked) chosen = new Set(main.length ? main.slice(0, PANELS) : large.length ? large.slice(0, PANELS - 1) : own.slice(0, 1));
  $("families").replaceChildren(...own.map(name => el("label", { title: title_of(name) },
    el("input", { type: "checkbox", value: name, change: e => choose(e.target.checked ? [...chosen, name] : [...chosen].filter(n => n !== name)) }),
    name, el("span", { class: "also" }))), el("p", { class: "soft hint" }));
  check();
  find();
}
const labels = () => [...$("families").querySelectorAll("label")];
function check() { for (const label of labels()) label.control.checked = chosen.has(label.control.value); }
function choose(list) {
  chosen = new Set(list);
  picked = true;
  check();
  again();
  changed();
}
// Show only the families whose name, or that of a family with the same groups, has all words of the search.
function find() {
  const words = $("find").value.toLowerCase().split(/\s+/), fits = name => words.every(w => name.toLowerCase().includes(w));
  for (const label of labels()) {
    const same = also.get(label.control.value), found = fits(label.control.value) ? [] : same.filter(fits);
    label.hidden = !fits(label.control.value) && !found.length;
    label.lastChild.textContent = found.length ? `as ${found.slice(0, 2).join(", ")}` + (found.length > 2 ? `, +${found.length - 2}` : "")
      : same.length ? `+${same.length}` : "";
  }
  $("families").lastChild.textContent = !names.length || labels().some(l => !l.hidden) ? "" : "No family has this in its name.";
}
$("find").addEventListener("input", find);
$("find").addEventListener("keydown", e => {
  e.stopPropagation();
  if (e.key === "Escape") { e.target.value = ""; find(); }
  const hit = e.key === "Enter" && labels().find(l => !l.hidden);
  if (hit) choose([hit.control.value]);
});

// A rank --------------------------------------------------------------------------------------------------------
const more = n => n > 0 && `and ${count_of(n)} more`;
function group_row(name, [g, position]) {
  const f = family(name), n = f.size(g), text = f.say(g), list = cell_of(text);
  const all = el("button", { type: "button", class: "more", "aria-label": `all ${n} ranks`, click: () => {
    const whole = el("div", { class: "all", tabindex: 0 }, f.ranks(g).join(", "));
    all.replaceWith(whole);
    whole.focus();
  } }, "all");
  if (n > 16 && n <= LISTED) list.append(all);
  return el("tr", { "data-family": name, class: text.length > 6 ? "long" : "" },
    el("td", { class: "name", title: title_of(name) }, el("span", {}, name), also_of(name)), cell_of(g), cell_of(`${position} of ${n}`), list);
}
function look(rank) {
  shown = rank;
  for (const p of panels) {
    const mine = new Set(rank === null ? [] : p.family.of(rank));
    p.raised = [...p.cells].filter(([r]) => r === rank || mine.size && p.family.of(r).some(g => mine.has(g))).map(([, cell]) => cell);
    for (const e of p.figure.querySelectorAll(".in, .me")) e.classList.remove("in", "me");
    for (const cell of p.raised) cell.el.classList.add(...cell.rank === rank ? ["me"] : [], ...mine.size ? ["in"] : []);
    mark(p);
  }
  const none = rank === null || !plan;
  $("rank").classList.toggle("none", none);
  $("rank").querySelector("h2").textContent = none ? "A rank" : `Rank ${rank}`;
  if (document.activeElement !== $("pick")) $("pick").value = none ? "" : rank;
  $("of_rank").replaceChildren(...none ? [el("p", { class: "soft" }, "Point at one, or give its number.")] : about(rank).filter(e => e));
}
function about(rank) {
  const machine = machineOf(), creates = createdBy(rank), coords = plan.grids.map(({ name, dims, line }) => {
    let [at] = line.locate(rank).map(x => x[1]);
    return `${name}: ` + (at === undefined ? "-" : dims.map(([dim, n]) => {
      const c = at % n;
      at = Math.floor(at / n);
      return `${dim} ${c}`;
    }).join(", "));
  });
  const pair = $("why").firstChild && [+$("a").value, +$("b").value];
  return [pair && pair.includes(rank) && el("p", { class: "pair_of" }, `${pair.join(" and ")}: ${$("why").firstChild.textContent}`),
    el("table", {}, row_of("th", ["family", "group", "position", "ranks"]), plan.own.map(name => {
    const mine = family(name).locate(rank), rest = more(mine.length - ROWS);
    return [...mine.slice(0, ROWS).map(one => group_row(name, one)), rest && el("tr", { class: "long" }, el("td", {}, `${rest} of ${name}`))];
  }).flat()), ...coords.map(c => el("p", { class: "soft coords" }, c)),
  ...machine ? [el("p", { class: "soft" }, `machine ${Math.floor(rank / machine)}, place ${rank % machine} of ${machine}`)] : [],
  el("h3", {}, creates.length ? "Creates, in this order" : "Creates no communicator"),
  el("ol", {}, [...creates.slice(0, MADE).map(([name, g]) => `${name}[${g}]`), more(creates.length - MADE)].filter(x => x).map(words => el("li", {}, words)))];
}

const cellAt = e => e.target.closest && e.target.closest(".cell"), rankAt = e => +cellAt(e).dataset.rank;
for (const kind of ["pointerover", "focusin"]) $("panels").addEventListener(kind, e => { if (cellAt(e) && kept === null) look(rankAt(e)); });
$("panels").addEventListener("pointerleave", () => { if (kept === null) look(null); });
$("panels").addEventListener("click", e => { if (cellAt(e)) keep(rankAt(e)); });
function keepOnly(rank) {
  kept = rank;
  look(rank);
  changed();
}
// Keep a clicked rank. If another rank is kept already, say why the two talk.
function keep(rank) {
  if (kept !== null && kept !== rank) {
    [$("a").value, $("b").value] = [kept, rank];
    why();
  }
  keepOnly(kept === rank ? null : rank);
  if (innerWidth > 700) look(rank); // a finger that lets go points at nothing
  const cell = panels.map(p => p.cells.get(rank)).find(c => c && c.el.matches(":hover, :focus")), sheet = $("rank").getBoundingClientRect();
  if (!cell || getComputedStyle($("rank")).position !== "fixed" || kept === null) return;
  const over = cell.el.getBoundingClientRect().bottom + 12 - sheet.top;
  if (over > 0) scrollBy({ top: over });
}
$("close").addEventListener("click", () => keepOnly(null));
$("pick").addEventListener("input", e => {
  const good = plan && /^\d+$/.test(e.target.value) && +e.target.value < plan.world;
  keepOnly(good ? +e.target.value : null);
  show(kept);
});
// The cell to which an arrow key goes; up and down it is the nearest one of the same column.
function nextCell(all, here, key) {
  const i = all.indexOf(here), way = { ArrowDown: 1, ArrowUp: -1 }[key], far = c => (c.y - here.y) * way;
  if (!way) return { ArrowRight: all[i + 1], ArrowLeft: all[i - 1], Home: all[0], End: all.at(-1) }[key];
  return all.filter(c => c.part === here.part && Math.abs(c.x - here.x) < 2 && far(c) > 1).sort((x, y) => far(x) - far(y))[0];
}
document.addEventListener("keydown", e => {
  if (e.key === "Escape") keepOnly(null);
  const size = { "+": +$("zoom").value + 1, "=": +$("zoom").value + 1, "-": +$("zoom").value - 1, 0: null }[e.key];
  if (size !== undefined && e.target.tagName !== "INPUT" && !e.ctrlKey && !e.metaKey && !e.altKey) return zoomTo(size);
  if (!cellAt(e)) return;
  if (e.key === "Enter" || e.key === " ") keep(rankAt(e));
  const p = panels.find(q => q.figure.contains(e.target)), next = nextCell([...p.cells.values()], p.cells.get(rankAt(e)), e.key);
  if (next) {
    focusOn(p, next);
    keepOnly(null);
    look(next.rank);
  }
  if (next || e.key === "Enter" || e.key === " ") e.preventDefault();
});

// The schedule --------------------------------------------------------------------------------------------------
// The groups of a rank that a step makes: all of a family, or those that the step lists.
const madeIn = (s, rank) => family(s.family).of(rank).filter(g => !s.groups || s.groups.has(g)).sort((x, y) => x - y);
const createdBy = rank => frame.steps.flatMap(s => madeIn(s, rank).map(g => [s.family, g]));
// Show which groups exist after n steps, and mark the panels whose groups step n made.
function step() {
  const n = +$("step").value, steps = frame.steps || [], s = steps[n - 1];
  for (const p of panels) {
    const own = steps.filter(t => t.family === p.name || t.family === p.family.shares);
    p.figure.classList.toggle("now", own.includes(s));
    for (const [rank, cell] of p.cells) {
      const made = n && own.find(t => madeIn(t, rank).length);
      cell.el.classList.toggle("unmade", !!made && steps.indexOf(made) >= n);
    }
  }
  for (const label of labels()) label.classList.toggle("now", !!s && first.get(s.family) === label.control.value);
  if (!s) {
    $("said").textContent = plan ? `${steps.length} step${steps.length === 1 ? " makes" : "s make"} all communicators` : "";
    return;
  }
  const f = family(s.family), most = Math.min(6, f.known ? s.count : 0), list = s.groups ? [...s.groups].sort((x, y) => x - y) : [...Array(most).keys()];
  $("said").textContent = `step ${n} of ${steps.length}: ${s.family}, ${count_of(s.count)} communicator${s_of(s.count)}${s.count > 1 ? " at once" : ""}: `
    + [...list.slice(0, most).map(g => f.say(g, 6)), more(s.count - most)].filter(x => x).join(" ");
}
function go(by) {
  $("step").value = Math.min(frame.steps.length, Math.max(0, +$("step").value + by));
  step();
  changed();
}
for (const [id, kind, by] of [["step", "input", 0], ["back", "click", -1], ["on", "click", 1]]) $(id).addEventListener(kind, () => go(by));

// Why two ranks talk --------------------------------------------------------------------------------------------
function chain(a, b) {
  const from = new Map([[a, null]]), way = [];
  for (let queue = [a]; queue.length && !from.has(b);) {
    const next = [];
    for (const rank of queue) for (const name of plan.own) for (const g of family(name).of(rank)) for (const r of family(name).ranks(g))
      if (!from.has(r)) { from.set(r, [rank, name, g]); next.push(r); }
    queue = next;
  }
  for (let r = b; from.get(r); r = from.get(r)[0]) way.unshift([...from.get(r), r]);
  return way;
}
// The elements that say why two ranks talk.
function told(a, b) {
  const list = el("ul"), found = plan.own.flatMap(name => {
    const there = new Map(family(name).locate(b));
    return family(name).locate(a).filter(([g]) => there.has(g)).map(([g, x]) => [name, g, x, there.get(g), family(name).size(g)]);
  }).sort((x, y) => x[4] - y[4]);
  if (!found.length) {
    const way = chain(a, b);
    list.append(...way.map(([from, name, g, to]) => el("li", {}, `${from} to ${to} in ${name}[${g}]`)));
    return [el("p", {}, way.length ? "They are in no group together. A shortest way:" : "No chain of groups connects them."), list];
  }
  for (const [name, g, x, y, n] of found.slice(0, MADE)) {
    const low = Math.min(x, y) + 1, high = Math.max(x, y);
    const between = high > low ? `, between them ${family(name).say(g, 16, low, high)}` : n === 2 ? ", a pair" : ", neighbours";
    list.append(el("li", { "data-family": name }, `${name}[${g}]: positions ${x} and ${y} of ${n}${between}`,
      also.get(name).length > 0 && el("span", { class: "also" }, `; also ${names_of(also.get(name))}`)));
  }
  if (found.length > MADE) list.append(el("li", {}, more(found.length - MADE)));
  const n = found.reduce((sum, [name]) => sum + 1 + also.get(name).length, 0);
  const mine = new Set(createdBy(b).map(x => x.join(" "))), meets = createdBy(a).find(x => mine.has(x.join(" ")));
  return [el("p", {}, `They are together in ${count_of(n)} group${s_of(n)}.`), list,
    ...meets ? [el("p", { class: "soft" }, `They first meet in ${meets[0]}[${meets[1]}].`)] : []];
}
function why() {
  const a = $("a").value, b = $("b").value, bad = [a, b].find(r => !plan || !/^\d+$/.test(r) || +r >= plan.world);
  const wrong = bad !== undefined ? `Ranks are 0 to ${plan && plan.world - 1}, not ${bad}.` : +a === +b ? "Two different ranks would do." : "";
  $("why").replaceChildren(...!plan || a === "" || b === "" ? [] : wrong ? [el("p", { class: "error" }, wrong)] : told(+a, +b));
}
for (const id of ["a", "b"]) $(id).addEventListener("input", () => { why(); changed(); });

// The address ---------------------------------------------------------------------------------------------------
// "#at=world:16,tp:4&show=tp,dp&rank=5&step=2&why=3,7&zoom=2": all that differs from the first view.
function address() {
  const list = [["at", at.some(place => place) && data.axes.map((axis, i) => `${axis.name}:${axis.values[at[i]]}`)],
    ["show", picked && plan && plan.own.filter(n => chosen.has(n))], ["rank", kept !== null && [kept]], ["step", $("step").value > 0 && [$("step").value]],
    ["why", $("a").value !== "" && $("b").value !== "" && [$("a").value, $("b").value]], ["zoom", zoom !== null && [zoom]]];
  const word = v => String(v).split(":").map(encodeURIComponent).join(":"), parts = list.filter(x => x[1]).map(([key, values]) => `${key}=${values.map(word).join(",")}`);
  return parts.length ? "#" + parts.join("&") : "";
}
// The playground replaces this function.
function changed() {
  const hash = address();
  if (hash === location.hash) return;
  try { history.replaceState(null, "", location.href.split("#")[0] + hash); } catch { location.hash = hash; }
}
// Names in an address that this page does not have are ignored.
function read(hash = location.hash) {
  const words = new URLSearchParams(hash.slice(1)), of = key => (words.get(key) || "").split(",").filter(v => v), [a, b] = of("why");
  const number = (key, end) => /^\d+$/.test(of(key)[0]) && +of(key)[0] < end ? +of(key)[0] : null;
  data.axes.forEach((axis, i) => slide(i, Math.max(0, axis.values.findIndex(v => of("at").includes(`${axis.name}:${v}`)))));
  chosen = new Set(of("show"));
  picked = words.has("show") && (!chosen.size || (frameAt().plan || { families: [] }).families.some(f => chosen.has(f.name)));
  kept = number("rank", Infinity);
  zoom = number("zoom", SIZES.length);
  [$("a").value, $("b").value] = b === undefined ? ["", ""] : [a, b];
  use(frameAt());
  if (number("step", 1e6)) go(number("step", 1e6));
}
window.addEventListener("hashchange", () => read());
// For the playground. open: show another plan, with the present choices or those of an address. only: show one family.
function open(f, hash) {
  document.body.classList.add("framed");
  data.frames = [f];
  if (hash === undefined) use(f); else read(hash);
}
function only(name) { choose([first.get(name)]); }
