"use strict";
/* SPDX-License-Identifier: MIT
**
** page.js - what the page of a plan does: sizes, families, a rank, the schedule, why two ranks talk, the address.
** page_panels.js draws the ranks. make puts both into page.html. Texts of users go into text nodes alone.
*/
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const make = (tag, text, name) => {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (name) e.className = name;
  return e;
};
// A cell of a table, whose lines end behind a comma or a _, not within a number or a word.
const cell_of = text => {
  const e = make("td");
  String(text).split(/(?<=[,_])/).forEach((part, i) => e.append(...(i ? [make("wbr")] : []), part));
  return e;
};
const s_of = n => n === 1 ? "" : "s";
const count_of = n => n.toLocaleString("en-US");
// A group in a few words, "{0,1,2,...,1023} 1,024 ranks": short ones whole.
const say = (list, most = 16) => list.length <= most ? `{${list.join(",")}}`
  : `{${list.slice(0, 3).join(",")},...,${list[list.length - 1]}} ${count_of(list.length)} ranks`;

// A family: its groups by a rule of modes, or listed; neither of a long list that the page was not given.
class Family {
  constructor(f) {
    Object.assign(this, f);
    if (!this.modes) return;
    const digits = (list, inside) => { // a mode as one digit of rank - offset
      let weight = 1;
      return list.map(([size, stride]) => {
        const digit = { size, stride, weight, inside };
        weight *= size;
        return digit;
      });
    };
    this.inside = digits(this.modes.inside, true);
    this.index = digits(this.modes.index, false);
    this.digits = [...this.inside, ...this.index].sort((x, y) => y.stride - x.stride);
  }
  at(list, n) { return list.reduce((rank, d) => rank + Math.floor(n / d.weight) % d.size * d.stride, 0); }
  // The groups of a rank, with its position in each.
  locate(rank) {
    if (!this.modes) {
      if (!this.by_rank) {
        this.by_rank = new Map();
        (this.groups || []).forEach((ranks, g) => ranks.forEach((r, i) => {
          if (this.by_rank.has(r)) this.by_rank.get(r).push([g, i]); else this.by_rank.set(r, [[g, i]]);
        }));
      }
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
  size(g) { return this.modes ? this.largest : this.groups ? this.groups[g].length : this.largest; }
  member(g, i) { return this.modes ? this.modes.offset + this.at(this.index, g) + this.at(this.inside, i) : this.groups[g][i]; }
  ranks(g) { return this.modes ? Array.from({ length: this.largest }, (_, i) => this.member(g, i)) : this.groups[g]; }
}

// first: of each family the one that stands for all with its groups; also: those that it stands for.
let frame, plan, names, first, also, chosen = new Set(), picked = false, kept = null, shown = null, panels = [], zoom = null;
const family = name => plan.families.get(name);

// One plan ------------------------------------------------------------------------------------------------------
function use(f) {
  frame = f;
  if (f.sheets && !f.turned) f.sheets.forEach(s => { s.parts = s.parts.map(upright); });
  for (const s of !f.turned && f.steps || []) s.groups = s.groups && new Set(s.groups);
  f.turned = true;
  const lists = new Map(f.plan ? f.plan.families.map(one => [one.name, one.groups]) : []); // written once for equal ones
  plan = f.plan && { ...f.plan, families: new Map(f.plan.families.map(one => [one.name, new Family({ ...one, groups: lists.get(one.same || one.name) })])),
    grids: f.plan.grids.map(g => ({ ...g, line: new Family(g.line) })) };
  $("refused").textContent = f.error || "";
  names = plan ? [...plan.families.keys()] : [];
  // The family that is named by a dim stands for those with its groups, and the dims come first, the fastest before.
  const dims = [...new Set(plan ? plan.grids.flatMap(g => g.dims.map(d => d[0])) : [])].filter(n => names.includes(n));
  const leader = new Map();
  for (const name of [...dims, ...names]) {
    const one = family(name).same || name;
    if (!leader.has(one)) leader.set(one, name);
  }
  first = new Map(names.map(name => [name, leader.get(family(name).same || name)]));
  also = new Map(names.map(name => [name, first.get(name) === name ? names.filter(n => n !== name && first.get(n) === name) : []]));
  const leaders = names.filter(n => first.get(n) === n), main = dims.filter(n => first.get(n) === n && family(n).largest > 1);
  plan && (plan.own = [...main, ...leaders.filter(n => !main.includes(n))]);
  $("title").textContent = data.recipe;
  $("about").replaceChildren();
  if (plan) $("about").append(`${count_of(plan.world)} rank${s_of(plan.world)}; ${count_of(plan.communicators)} communicator${s_of(plan.communicators)} for `
    + `${count_of(plan.groups)} group${s_of(plan.groups)}`, make("span", `; digest ${plan.digest}`, "digest"));
  $("given").textContent = plan ? f.given.join(", ") : "";
  $("dims").replaceChildren(...(plan ? plan.grids : []).map(({ name, dims: list }) => {
    const line = make("span", undefined, "dims"), large = list.filter(d => d[1] > 1);
    line.append(make("span", `${name}: `, "soft"), make("b", (large.length ? large : list).map(d => d.join(" ")).join(" \u00d7 ")));
    return line;
  }));
  const machine = machineOf();
  $("machines").textContent = machine ? `Thick lines go around machines of ${machine} ranks.` : "";
  $("sampled").textContent = [f.sampled, f.dims].filter(x => x).join(" ");
  $("step").max = plan ? f.steps.length : 0;
  $("step").value = 0;
  for (const id of ["a", "b", "pick"]) $(id).max = plan ? plan.world - 1 : 0;
  listClasses();
  listFamilies();
  $("pick").value = "";
  draw();
  step();
  why();
  if (!plan || kept >= plan.world) kept = null;
  look(kept);
  show(kept);
  write();
}
// Ranks of a machine, which have consecutive numbers; 0: there is one machine, or no rank has a neighbour on its own.
function machineOf() {
  const n = plan ? plan.machine : 0;
  return plan && n > 1 && n < plan.world ? n : 0;
}
// Of a world that is drawn in part: the families by what their groups are like.
function listClasses() {
  const box = $("classes"), machine = machineOf();
  box.hidden = !plan || !frame.sampled;
  if (box.hidden) return;
  const table = make("table"), head = make("tr"), words = ["family", "groups", "of ranks", "steps", machine ? "machines" : "", "the first one"];
  for (const w of words) head.append(make("th", w));
  table.append(head);
  for (const name of plan.own) {
    const f = family(name), row = make("tr", undefined, "row"), sample = f.count && (f.modes || f.groups) ? f.ranks(0) : [];
    const steps = !f.modes ? "listed" : f.modes.inside.filter(m => m[0] > 1).map(m => `${count_of(m[0])} by ${count_of(m[1])}`).join(", ");
    const machines = machine ? count_of(new Set(sample.map(r => Math.floor(r / machine))).size) : "";
    const ranks = sample.length > 6 ? `${sample.slice(0, 3).join(", ")}, ..., ${sample[sample.length - 1]}` : sample.join(", ");
    const title = make("td", name);
    if (also.get(name).length) title.append(make("span", ` +${also.get(name).length}`, "also"));
    title.title = [name, ...also.get(name)].join(", ");
    row.append(title, ...[count_of(f.count), (f.even ? "" : "up to ") + count_of(f.largest), steps || "-", machines, ranks].map(t => make("td", t)));
    row.tabIndex = 0;
    const only = () => choose([name]);
    row.addEventListener("click", only);
    row.addEventListener("keydown", e => { if (e.key === "Enter") only(); });
    table.append(row);
  }
  box.replaceChildren(table);
}

// Sliders -------------------------------------------------------------------------------------------------------
const at = data.axes.map(() => 0), sliders = [];
const frameAt = () => data.frames[at.reduce((n, place, k) => n * data.axes[k].values.length + place, 0)];
data.axes.forEach((axis, i) => {
  const row = make("div", undefined, "slider"), input = make("input"), out = make("output", axis.values[0]);
  const id = "axis" + i, label = make("label", axis.name);
  label.htmlFor = input.id = id;
  Object.assign(input, { type: "range", min: 0, max: axis.values.length - 1, value: 0 });
  sliders[i] = place => {
    at[i] = input.value = place;
    out.textContent = axis.values[place];
    input.setAttribute("aria-valuetext", axis.values[place]);
  };
  sliders[i](0);
  input.addEventListener("input", () => {
    sliders[i](+input.value);
    use(frameAt());
  });
  row.append(label, input, out);
  $("sliders").append(row);
  $("sliders").hidden = false;
});

// Families ------------------------------------------------------------------------------------------------------
const PANELS = 4; // at first
function listFamilies() {
  const own = plan ? plan.own : [], had = [...chosen].filter(name => first.has(name)).map(name => first.get(name));
  chosen = new Set(had);
  const large = own.filter(n => family(n).count && family(n).largest > 1), dims = new Set(plan ? plan.grids.flatMap(g => g.dims.map(d => d[0])) : []);
  const main = large.filter(n => dims.has(n));
  for (const n of had.length || picked ? [] : (main.length ? main.slice(0, PANELS) : large.slice(0, PANELS - 1))) chosen.add(n);
  if (!chosen.size && own.length && !picked) chosen.add(own[0]);
  $("families").replaceChildren(...own.map(name => {
    const label = make("label"), box = make("input");
    Object.assign(box, { type: "checkbox", checked: chosen.has(name), value: name });
    box.addEventListener("change", () => choose(box.checked ? [...chosen, name] : [...chosen].filter(n => n !== name)));
    label.title = [name, ...also.get(name)].join(", ");
    label.append(box, name, make("span", undefined, "also"));
    return label;
  }), make("p", undefined, "soft hint"));
  find();
}
function choose(list) {
  chosen = new Set(list);
  picked = true;
  for (const box of $("families").querySelectorAll("input")) box.checked = chosen.has(box.value);
  draw();
  step();
  look(shown);
  write();
}
// Only the families with the words of the search in their names, or in those of families with the same groups.
function find() {
  const words = $("find").value.toLowerCase().split(/\s+/), fits = name => words.every(w => name.toLowerCase().includes(w));
  let any = false;
  for (const label of $("families").querySelectorAll("label")) {
    const name = label.control.value, same = also.get(name), found = fits(name) ? [] : same.filter(fits);
    label.hidden = !fits(name) && !found.length;
    any = any || !label.hidden;
    label.lastChild.textContent = found.length ? `as ${found.slice(0, 2).join(", ")}` + (found.length > 2 ? `, +${found.length - 2}` : "")
      : same.length ? `+${same.length}` : "";
  }
  $("families").lastChild.textContent = any || !names.length ? "" : "No family has this in its name.";
}
$("find").addEventListener("input", find);
$("find").addEventListener("keydown", e => {
  e.stopPropagation();
  if (e.key === "Escape") { $("find").value = ""; find(); }
  const hit = e.key === "Enter" && $("families").querySelector("label:not([hidden]) input");
  if (hit) choose([hit.value]);
});

// A rank --------------------------------------------------------------------------------------------------------
const ROWS = 4, MADE = 40; // groups of a rank in one family, and communicators that it makes: so many are listed
function allOf(ranks) {
  const button = make("button", "all", "more");
  button.type = "button";
  button.setAttribute("aria-label", `all ${ranks.length} ranks`);
  button.addEventListener("click", () => {
    const list = make("div", ranks.join(", "), "all");
    list.tabIndex = 0;
    button.replaceWith(list);
    list.focus();
  });
  return button;
}
function look(rank) {
  shown = rank;
  for (const p of panels) {
    const mine = new Set();
    if (rank !== null) for (const g of p.family.of(rank)) for (const r of p.family.ranks(g)) mine.add(r);
    for (const r of p.raised) if (p.cells.has(r)) p.cells.get(r).el.classList.remove("in", "me");
    for (const r of mine) if (p.cells.has(r)) p.cells.get(r).el.classList.add("in");
    if (p.cells.has(rank)) p.cells.get(rank).el.classList.add("me");
    p.raised = mine.add(rank);
    mark(p);
  }
  const box = $("of_rank"), none = rank === null || !plan;
  $("rank").classList.toggle("none", none);
  $("rank").querySelector("h2").textContent = none ? "A rank" : `Rank ${rank}`;
  if (document.activeElement !== $("pick")) $("pick").value = none ? "" : rank;
  if (none) {
    box.replaceChildren(make("p", "Point at one, or give its number.", "soft"));
    return;
  }
  const table = make("table"), head = make("tr");
  for (const h of ["family", "group", "position", "ranks"]) head.append(make("th", h));
  table.append(head);
  for (const name of plan.own) {
    const f = family(name), mine = f.locate(rank);
    for (const [g, position] of mine.slice(0, ROWS)) {
      const n = f.size(g), row = make("tr"), ranks = n <= 4096 ? f.ranks(g) : [0, 1, 2, n - 1].map(i => f.member(g, i));
      const text = n <= 4096 ? say(ranks) : `{${ranks.slice(0, 3).join(",")},...,${ranks[3]}} ${count_of(n)} ranks`, list = cell_of(text), title = make("td", undefined, "name");
      row.dataset.family = name;
      row.className = text.length > 10 ? "long" : "";
      title.append(make("span", name));
      title.title = [name, ...also.get(name)].join(", ");
      if (also.get(name).length) title.append(make("span", `+${also.get(name).length}`, "also"));
      row.append(title, cell_of(g), cell_of(`${position} of ${n}`), list);
      if (n > 16 && n <= 4096) list.append(allOf(ranks));
      table.append(row);
    }
    if (mine.length <= ROWS) continue;
    const row = make("tr", undefined, "long");
    row.append(make("td", `and ${count_of(mine.length - ROWS)} more of ${name}`));
    table.append(row);
  }
  const machine = machineOf(), made = make("ol"), creates = createdBy(rank);
  creates.slice(0, MADE).forEach(([name, g]) => made.append(make("li", `${name}[${g}]`)));
  if (creates.length > MADE) made.append(make("li", `and ${count_of(creates.length - MADE)} more`));
  const coords = plan.grids.map(({ name, dims, line }) => {
    let [at] = line.locate(rank).map(x => x[1]);
    return at === undefined ? `${name}: -` : `${name}: ${dims.map(([d, n]) => {
      const c = at % n;
      at = Math.floor(at / n);
      return `${d} ${c}`;
    }).join(", ")}`;
  });
  box.replaceChildren(table, ...coords.map(c => make("p", c, "soft coords")),
    ...(machine ? [make("p", `machine ${Math.floor(rank / machine)}, place ${rank % machine} of ${machine}`, "soft")] : []),
    make("h3", made.children.length ? "Creates, in this order" : "Creates no communicator"), made);
}

const cellAt = e => e.target.closest && e.target.closest(".cell");
$("panels").addEventListener("pointerover", e => { if (cellAt(e) && kept === null) look(+cellAt(e).dataset.rank); });
$("panels").addEventListener("pointerleave", () => { if (kept === null) look(null); });
$("panels").addEventListener("focusin", e => { if (cellAt(e) && kept === null) look(+cellAt(e).dataset.rank); });
function keep(rank) {
  kept = kept === rank ? null : rank;
  look(innerWidth > 860 ? rank : kept); // a finger that lets go points at nothing
  write();
  const cell = panels.map(p => p.cells.get(rank)).find(c => c && c.el.matches(":hover, :focus")), sheet = $("rank").getBoundingClientRect();
  if (!cell || getComputedStyle($("rank")).position !== "fixed" || kept === null) return;
  const over = cell.el.getBoundingClientRect().bottom + 12 - sheet.top;
  if (over > 0) scrollBy({ top: over });
}
$("close").addEventListener("click", () => { kept = null; look(null); write(); });
$("pick").addEventListener("input", () => {
  const text = $("pick").value, good = plan && /^\d+$/.test(text) && +text < plan.world;
  kept = good ? +text : null;
  look(kept);
  show(kept);
  write();
});
$("panels").addEventListener("click", e => { if (cellAt(e)) keep(+cellAt(e).dataset.rank); });
document.addEventListener("keydown", e => {
  if (e.key === "Escape") { kept = null; look(null); write(); }
  if (e.target.tagName !== "INPUT" && !e.ctrlKey && !e.metaKey && !e.altKey) {
    const size = { "+": +$("zoom").value + 1, "=": +$("zoom").value + 1, "-": +$("zoom").value - 1, 0: null }[e.key];
    if (size !== undefined) { zoomTo(size); return; }
  }
  const cell = cellAt(e);
  if (!cell) return;
  if (e.key === "Enter" || e.key === " ") { e.preventDefault(); keep(+cell.dataset.rank); return; }
  const p = panels.find(q => q.figure.contains(cell)), all = [...p.cells.values()], here = p.cells.get(+cell.dataset.rank);
  const i = all.indexOf(here);
  let next;
  if (e.key === "ArrowRight") next = all[i + 1];
  if (e.key === "ArrowLeft") next = all[i - 1];
  if (e.key === "Home") next = all[0];
  if (e.key === "End") next = all[all.length - 1];
  if (e.key === "ArrowDown" || e.key === "ArrowUp") { // the nearest cell of the same column
    const down = e.key === "ArrowDown" ? 1 : -1;
    let best = Infinity;
    for (const other of all) {
      const far = (other.y - here.y) * down;
      if (other.part === here.part && Math.abs(other.x - here.x) < 2 && far > 1 && far < best) { best = far; next = other; }
    }
  }
  if (!next) return;
  e.preventDefault();
  kept = null;
  focusOn(p, next);
  look(next.rank);
  write();
});

// The schedule --------------------------------------------------------------------------------------------------
// The groups of a rank that a step makes: all of a family, or those that the step lists.
const madeIn = (s, rank) => family(s.family).of(rank).filter(g => !s.groups || s.groups.has(g));
const createdBy = rank => frame.steps.flatMap(s => madeIn(s, rank).sort((x, y) => x - y).map(g => [s.family, g]));
// After n steps a panel has the groups that are made by then; its family is marked if the last step made some of it.
function step() {
  const n = +$("step").value, s = n > 0 ? frame.steps[n - 1] : null;
  for (const p of panels) {
    const of = new Set([p.name, p.family.shares].filter(x => x)), own = (frame.steps || []).map((t, i) => [t, i + 1]).filter(([t]) => of.has(t.family));
    p.figure.classList.toggle("now", !!s && of.has(s.family));
    for (const [rank, cell] of p.cells) {
      const steps = n ? own.filter(([t]) => madeIn(t, rank).length).map(x => x[1]) : [];
      cell.el.classList.toggle("unmade", steps.length > 0 && Math.min(...steps) > n);
    }
  }
  for (const label of $("families").querySelectorAll("label")) label.classList.toggle("now", !!s && first.get(s.family) === label.control.value);
  const total = s && s.count, most = Math.min(6, total || 0), list = s && (s.groups ? [...s.groups].sort((x, y) => x - y) : Array.from({ length: most }, (_, i) => i));
  const listed = s && (family(s.family).modes || family(s.family).groups) ? list.slice(0, 6).map(g => say(family(s.family).ranks(g), 6)) : [];
  $("said").textContent = !plan ? "" : !s ? `${frame.steps.length} step${frame.steps.length === 1 ? " makes" : "s make"} all communicators`
    : `step ${n} of ${frame.steps.length}: ${s.family}, ${count_of(total)} communicator${s_of(total)}${total > 1 ? " at once" : ""}: `
      + listed.join(" ") + (total > listed.length ? ` and ${count_of(total - listed.length)} more` : "");
}
function go(by) {
  $("step").value = Math.min(frame.steps.length, Math.max(0, +$("step").value + by));
  step();
  write();
}
$("step").addEventListener("input", () => go(0));
$("back").addEventListener("click", () => go(-1));
$("on").addEventListener("click", () => go(1));

// Why two ranks talk --------------------------------------------------------------------------------------------
function chain(a, b) {
  const from = new Map([[a, null]]);
  for (let queue = [a]; queue.length && !from.has(b);) {
    const next = [];
    for (const rank of queue) for (const name of plan.own) for (const g of family(name).of(rank)) for (const r of family(name).ranks(g))
      if (!from.has(r)) { from.set(r, [rank, name, g]); next.push(r); }
    queue = next;
  }
  const way = [];
  for (let r = b; from.get(r); r = from.get(r)[0]) way.unshift([...from.get(r), r]);
  return way;
}
const say_names = (list, most = 4) => list.slice(0, most).join(", ") + (list.length > most ? ` and ${list.length - most} more` : "");
function why() {
  const a = $("a").value, b = $("b").value, box = $("why");
  box.replaceChildren();
  if (!plan || a === "" || b === "") return;
  const bad = [a, b].find(r => !/^\d+$/.test(r) || +r >= plan.world);
  if (bad !== undefined || +a === +b) {
    box.append(make("p", bad !== undefined ? `Ranks are 0 to ${plan.world - 1}, not ${bad}.` : "Two different ranks would do.", "error"));
    return;
  }
  const list = make("ul"), found = [];
  for (const name of plan.own) {
    const there = new Map(family(name).locate(+b));
    for (const [g, x] of family(name).locate(+a)) if (there.has(g)) found.push([name, g, x, there.get(g), family(name).size(g)]);
  }
  found.sort((x, y) => x[4] - y[4]);
  for (const [name, g, x, y, n] of found.slice(0, 40)) {
    const low = Math.min(x, y) + 1, high = Math.max(x, y), few = high - low <= 16;
    const between = Array.from({ length: few ? high - low : 3 }, (_, i) => family(name).member(g, low + i));
    const said = few ? say(between) : `{${between.join(",")},...,${family(name).member(g, high - 1)}} ${count_of(high - low)} ranks`;
    const item = make("li", `${name}[${g}]: positions ${x} and ${y} of ${n}`
      + (high > low ? `, between them ${said}` : n === 2 ? ", a pair" : ", neighbours"));
    item.dataset.family = name;
    if (also.get(name).length) item.append(make("span", `; also ${say_names(also.get(name))}`, "also"));
    list.append(item);
  }
  if (list.children.length) {
    const n = found.reduce((sum, [name]) => sum + 1 + also.get(name).length, 0);
    if (found.length > 40) list.append(make("li", `and ${count_of(found.length - 40)} more`));
    const mine = new Set(createdBy(+b).map(x => x.join(" "))), meets = createdBy(+a).find(x => mine.has(x.join(" ")));
    box.append(make("p", `They are together in ${count_of(n)} group${s_of(n)}.`), list);
    if (meets) box.append(make("p", `They first meet in ${meets[0]}[${meets[1]}].`, "soft"));
    return;
  }
  const way = chain(+a, +b);
  box.append(make("p", way.length ? "They are in no group together. A shortest way:" : "No chain of groups connects them."));
  for (const [from, name, g, to] of way) list.append(make("li", `${from} to ${to} in ${name}[${g}]`));
  box.append(list);
}
for (const id of ["a", "b"]) $(id).addEventListener("input", () => { why(); write(); });

// The address ---------------------------------------------------------------------------------------------------
// "#at=world:16,tp:4&show=tp,dp&rank=5&step=2&why=3,7&zoom=2": what is not as at first.
function write() {
  const parts = [], put = (key, list) => parts.push(`${key}=${list.map(encodeURIComponent).join(",")}`);
  if (at.some(place => place)) parts.push("at=" + data.axes.map((axis, i) => [axis.name, axis.values[at[i]]].map(encodeURIComponent).join(":")).join(","));
  if (picked) put("show", plan.own.filter(n => chosen.has(n)));
  if (kept !== null) put("rank", [kept]);
  if (+$("step").value) put("step", [$("step").value]);
  if ($("a").value !== "" && $("b").value !== "") put("why", [$("a").value, $("b").value]);
  if (zoom !== null) put("zoom", [zoom]);
  const hash = parts.length ? "#" + parts.join("&") : "";
  if (hash === location.hash) return;
  try { history.replaceState(null, "", location.href.split("#")[0] + hash); } catch { location.hash = hash; }
}
// What an address names and this page does not have is left out.
function read() {
  const of = {}, number = (text, end) => /^\d+$/.test(text) && +text < end ? +text : null;
  for (const part of location.hash.slice(1).split("&")) {
    const [key, value] = part.split("=");
    try { of[key] = (value || "").split(",").filter(v => v).map(v => v.split(":").map(decodeURIComponent)); } catch { /* not ours */ }
  }
  data.axes.forEach((axis, i) => {
    const given = (of.at || []).find(v => v[0] === axis.name), place = given ? axis.values.indexOf(given[1]) : 0;
    sliders[i](Math.max(0, place));
  });
  const one = key => (of[key] || []).map(v => v[0]), [a, b] = one("why");
  chosen = new Set(one("show"));
  picked = !!of.show && (!chosen.size || (frameAt().plan || { families: [] }).families.some(f => chosen.has(f.name)));
  kept = number(one("rank")[0], Infinity);
  zoom = number(one("zoom")[0], SIZES.length);
  [$("a").value, $("b").value] = b === undefined ? ["", ""] : [a, b];
  const step_of = number(one("step")[0], 1e6);
  use(frameAt());
  if (step_of) go(step_of);
}
window.addEventListener("hashchange", read);
