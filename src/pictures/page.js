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

// first: of each family the first one with the same groups, which stands for all of them; also: those that it stands for.
let frame, plan, names, first, also, chosen = new Set(), picked = false, kept = null, shown = null, groupsOf, panels = [], zoom = null;

// One plan ------------------------------------------------------------------------------------------------------
// groupsOf: of each family, of each rank the groups that it is in.
function use(f) {
  frame = f;
  plan = f.plan;
  $("refused").textContent = f.error || "";
  names = plan ? Object.keys(plan.families) : [];
  const of_text = new Map();
  first = new Map();
  also = new Map();
  groupsOf = [];
  names.forEach((name, i) => {
    const { count, size, groups } = plan.families[name], text = `${count} ${size} ${JSON.stringify(groups)}`;
    if (!of_text.has(text)) of_text.set(text, name);
    first.set(name, of_text.get(text));
    if (first.get(name) !== name) {
      also.get(first.get(name)).push(name);
      groupsOf[i] = groupsOf[names.indexOf(first.get(name))];
      return;
    }
    also.set(name, []);
    const of = groupsOf[i] = new Map();
    groups.forEach((ranks, g) => ranks.forEach(r => of.has(r) ? of.get(r).push(g) : of.set(r, [g])));
  });
  // the schedule: of each family and round the groups that are made then
  const steps = new Map();
  if (plan) f.creates.forEach((list, rank) => list.forEach(([e, g]) => {
    const round = f.rounds[e] ? f.rounds[e][g] : 0, key = f.order.indexOf(e) * 1e6 + round;
    if (!steps.has(key)) steps.set(key, { e, round, groups: new Set(), ranks: new Set() });
    steps.get(key).groups.add(g);
    steps.get(key).ranks.add(rank);
  }));
  f.steps = [...steps.entries()].sort((x, y) => x[0] - y[0]).map(x => x[1]);
  $("title").textContent = data.recipe;
  $("about").textContent = plan ? `${plan.world} rank${s_of(plan.world)}; ${plan.communicators.total} communicator${s_of(plan.communicators.total)} for `
    + `${plan.communicators.groups} group${s_of(plan.communicators.groups)}; digest ${plan.digest}` : "";
  $("given").textContent = plan ? f.given.join(", ") : "";
  $("dims").replaceChildren(...Object.entries(plan ? plan.grids : {}).map(([name, { dims }]) => {
    const line = make("span", undefined, "dims"), large = dims.filter(d => d[1] > 1);
    line.append(make("span", `${name}: `, "soft"), make("b", (large.length ? large : dims).map(d => d.join(" ")).join(" \u00d7 ")));
    return line;
  }));
  const machine = machineOf();
  $("machines").textContent = machine ? `Thick lines go around machines of ${machine} ranks.` : "";
  $("step").max = f.steps.length;
  $("step").value = 0;
  for (const id of ["a", "b"]) $(id).max = plan ? plan.world - 1 : 0;
  listFamilies();
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
  const given = plan ? plan.params.gpus_per_node : 0, n = Number.isInteger(given) && given > 0 ? given : 8;
  return plan && n > 1 && n < plan.world ? n : 0;
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
function listFamilies() {
  const had = [...chosen].filter(name => first.has(name)).map(name => first.get(name)), most = plan && plan.world > 512 ? 1 : 3;
  const own = names.filter(n => first.get(n) === n);
  chosen = new Set(had);
  for (const n of had.length || picked ? [] : own) { // the first ones that have groups to show
    if (plan.families[n].size === 1 || plan.families[n].count === 0) continue;
    if (chosen.add(n).size === most) break;
  }
  if (!chosen.size && own.length && !picked) chosen.add(own[0]);
  $("families").replaceChildren(...own.map(name => {
    const label = make("label"), box = make("input");
    Object.assign(box, { type: "checkbox", checked: chosen.has(name), value: name });
    box.addEventListener("change", () => choose(box.checked ? [...chosen, name] : [...chosen].filter(n => n !== name)));
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
    if (rank !== null) for (const g of groupsOf[p.family].get(rank) || [])
      for (const r of plan.families[p.name].groups[g]) mine.add(r);
    for (const r of p.raised) if (p.cells.has(r)) p.cells.get(r).el.classList.remove("in", "me");
    for (const r of mine) if (p.cells.has(r)) p.cells.get(r).el.classList.add("in");
    if (p.cells.has(rank)) p.cells.get(rank).el.classList.add("me");
    p.raised = mine.add(rank);
    mark(p);
  }
  const box = $("rank");
  if (rank === null || !plan) {
    box.replaceChildren(make("h2", "A rank"), make("p", "None is chosen.", "soft"));
    return;
  }
  const table = make("table"), head = make("tr");
  for (const h of ["family", "group", "position", "ranks"]) head.append(make("th", h));
  table.append(head);
  names.forEach((name, i) => {
    const mine = first.get(name) === name && groupsOf[i].get(rank) || [];
    for (const g of mine.slice(0, ROWS)) {
      const ranks = plan.families[name].groups[g], row = make("tr"), text = say(ranks), list = cell_of(text);
      row.dataset.family = name;
      row.className = text.length > 10 ? "long" : "";
      row.append(cell_of(name), cell_of(g), cell_of(`${ranks.indexOf(rank)} of ${ranks.length}`), list);
      if (also.get(name).length) row.firstChild.append(make("span", `+${also.get(name).length}`, "also"));
      if (ranks.length > 16) list.append(allOf(ranks));
      table.append(row);
    }
    if (mine.length <= ROWS) return;
    const row = make("tr", undefined, "long");
    row.append(make("td", `and ${count_of(mine.length - ROWS)} more of ${name}`));
    table.append(row);
  });
  const machine = machineOf(), made = make("ol");
  frame.creates[rank].slice(0, MADE).forEach(([e, g]) => made.append(make("li", `${names[e]}[${g}]`)));
  if (frame.creates[rank].length > MADE) made.append(make("li", `and ${count_of(frame.creates[rank].length - MADE)} more`));
  const coords = frame.coords.map(([grid, dims, list]) => list[rank]
    ? `${grid}: ${dims.map((d, i) => `${d} ${list[rank][i]}`).join(", ")}` : `${grid}: -`);
  box.replaceChildren(make("h2", `Rank ${rank}`), ...coords.map(c => make("p", c, "soft coords")),
    ...(machine ? [make("p", `machine ${Math.floor(rank / machine)}, place ${rank % machine} of ${machine}`, "soft")] : []), table,
    make("h2", made.children.length ? "Creates, in this order" : "Creates no communicator"), made);
}

const cellAt = e => e.target.closest && e.target.closest(".cell");
$("panels").addEventListener("pointerover", e => { if (cellAt(e) && kept === null) look(+cellAt(e).dataset.rank); });
$("panels").addEventListener("pointerleave", () => { if (kept === null) look(null); });
$("panels").addEventListener("focusin", e => { if (cellAt(e) && kept === null) look(+cellAt(e).dataset.rank); });
function keep(rank) {
  kept = kept === rank ? null : rank;
  look(rank);
  write();
}
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
function step() {
  const n = +$("step").value, s = n > 0 && frame.steps ? frame.steps[n - 1] : null;
  for (const p of panels) for (const [rank, cell] of p.cells) cell.el.classList.toggle("now", !!s && s.ranks.has(rank));
  const groups = s ? [...s.groups].sort((x, y) => x - y).map(g => plan.families[names[s.e]].groups[g]) : [];
  $("said").textContent = !s ? `${frame.steps.length} step${frame.steps.length === 1 ? " makes" : "s make"} all communicators`
    : `step ${n} of ${frame.steps.length}: ${names[s.e]}, ${groups.length} communicator${s_of(groups.length)}${groups.length > 1 ? " at once" : ""}: `
      + groups.slice(0, 6).map(g => say(g, 6)).join(" ") + (groups.length > 6 ? ` and ${groups.length - 6} more` : "");
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
    for (const rank of queue) names.forEach((name, i) => {
      for (const g of first.get(name) === name && groupsOf[i].get(rank) || []) for (const r of plan.families[name].groups[g])
        if (!from.has(r)) { from.set(r, [rank, name, g]); next.push(r); }
    });
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
  names.forEach((name, i) => {
    for (const g of first.get(name) === name && groupsOf[i].get(+a) || []) {
      const ranks = plan.families[name].groups[g];
      if (ranks.includes(+b)) found.push([name, g, ranks]);
    }
  });
  found.sort((x, y) => x[2].length - y[2].length);
  for (const [name, g, ranks] of found.slice(0, 40)) {
    const x = ranks.indexOf(+a), y = ranks.indexOf(+b), between = ranks.slice(Math.min(x, y) + 1, Math.max(x, y));
    const item = make("li", `${name}[${g}]: positions ${x} and ${y} of ${ranks.length}`
      + (between.length ? `, between them ${say(between)}` : ranks.length === 2 ? ", a pair" : ", neighbours"));
    item.dataset.family = name;
    if (also.get(name).length) item.append(make("span", `; also ${say_names(also.get(name))}`, "also"));
    list.append(item);
  }
  if (list.children.length) {
    const n = found.reduce((sum, [name]) => sum + 1 + also.get(name).length, 0);
    if (found.length > 40) list.append(make("li", `and ${count_of(found.length - 40)} more`));
    const mine = new Set(frame.creates[b].map(([e, g]) => `${e} ${g}`)), first = frame.creates[a].find(([e, g]) => mine.has(`${e} ${g}`));
    box.append(make("p", `They are together in ${count_of(n)} group${s_of(n)}.`), list);
    if (first) box.append(make("p", `They first meet in ${names[first[0]]}[${first[1]}].`, "soft"));
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
  if (picked) put("show", names.filter(n => chosen.has(n)));
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
  picked = !!of.show && (!chosen.size || Object.keys((frameAt().plan || { families: {} }).families).some(n => chosen.has(n)));
  kept = number(one("rank")[0], Infinity);
  zoom = number(one("zoom")[0], SIZES.length);
  [$("a").value, $("b").value] = b === undefined ? ["", ""] : [a, b];
  const step_of = number(one("step")[0], 1e6);
  use(frameAt());
  if (step_of) go(step_of);
}
window.addEventListener("hashchange", read);
