"use strict";
/* SPDX-License-Identifier: MIT
**
** chart.js - the page of a step: a canvas with a row for each stream of each type of ranks, zoom, and what a bar waited
** for. Bars thinner than a pixel are merged: a column of one pixel shows each kind by its share of the column's time.
** Texts of users go into text nodes alone.
*/
const { bars, about: data } = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const canvas = $("chart"), pen = canvas.getContext("2d");
const total = Math.max(data.seconds * 1e9, 1), top_of = 26;
let from = 0, to = total, shown = null, kept = null, drag = null, wide = 800, left = 150, height = 28;

// The bars of a row: when each began to wait, began to work, ended (nanoseconds); its text; the row that came last.
const rows = bars.map(list => {
  const n = list.length / 5, row = { n, began: new Float64Array(n), from: new Float64Array(n), to: new Float64Array(n),
    text: new Int32Array(n), by: new Int32Array(n), longest: 0 };
  for (let i = 0, at = 0; i < n; i++) {
    row.began[i] = at += list[5 * i];
    row.from[i] = at += list[5 * i + 1];
    row.to[i] = at += list[5 * i + 2];
    row.text[i] = list[5 * i + 3];
    row.by[i] = list[5 * i + 4];
    row.longest = Math.max(row.longest, row.to[i] - row.began[i]);
  }
  return row;
});

const time = ns => {
  const a = Math.abs(ns);
  const [by, unit] = a >= 1e9 ? [1e9, "s"] : a >= 1e6 ? [1e6, "ms"] : a >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return `${+(ns / by).toPrecision(4)} ${unit}`;
};
// The beginning of a text that fits, with an ellipsis if that is not all.
function fitting(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = low + high + 1 >> 1;
    if (pen.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
  }
  return low ? text.slice(0, low).trimEnd() + "…" : "";
}
const name_of = i => data.rows[i].label + (data.rows[i].stream === "main" ? "" : ` ${data.rows[i].stream}`);
const x_of = t => left + (t - from) / (to - from) * wide;
const t_of = x => from + (x - left) / wide * (to - from);

// The first bar of a row that can reach the time t; all bars before it ended earlier.
function first_at(row, t) {
  let low = 0, high = row.n;
  while (low < high) {
    const middle = low + high >> 1;
    if (row.from[middle] + row.longest < t) low = middle + 1; else high = middle;
  }
  return low;
}

function draw_row(i, ink) {
  const row = rows[i], y = top_of + i * height, tall = height - (height > 12 ? 3 : 1);
  const share = new Map();
  const add = (a, b, kind, weight) => {
    const begin = Math.max(left, Math.floor(a)), end = Math.min(left + wide, b);
    for (let x = begin; x < end; x++) {
      const part = Math.min(b, x + 1) - Math.max(a, x);
      if (part <= 0) continue;
      let column = share.get(x);
      if (!column) share.set(x, column = new Float64Array(data.kinds.length));
      column[kind] += part * weight;
    }
  };
  const labels = [];
  for (let k = first_at(row, from); k < row.n && row.began[k] <= to; k++) {
    const a = x_of(row.from[k]), b = x_of(row.to[k]), w = x_of(row.began[k]);
    if (b < left) continue;
    if (a > w) add(w, a, 0, 1);
    for (const [kind, part] of data.texts[row.text[k]][1]) add(a, b, kind, part);
    if (b - a > 60 && height > 12) {
      const label = [Math.max(a, left), Math.min(b, left + wide), data.texts[row.text[k]][0]], before = labels[labels.length - 1];
      if (before && label[0] < before[1]) { // calls at once share one label
        before[1] = Math.max(before[1], label[1]);
        before[2] += " | " + label[2];
      } else labels.push(label);
    }
  }
  for (const [x, column] of share) {
    const sum = column.reduce((p, q) => p + q, 0), scale = (sum > 1 ? 1 / sum : 1) * tall;
    let at = y;
    for (let k = column.length - 1; k >= 0; k--) {
      if (!column[k]) continue;
      pen.fillStyle = data.kinds[k].colour;
      pen.fillRect(x, at, 1.02, column[k] * scale);
      at += column[k] * scale;
    }
  }
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "left";
  for (const [a, b, text] of labels) {
    pen.fillStyle = "#101418";
    const fit = fitting(text, b - a - 8);
    if (fit) pen.fillText(fit, a + 4, y + tall / 2 + 4);
  }
  if (height > 12 || i % 2 === 0) {
    pen.fillStyle = ink;
    pen.textAlign = "right";
    pen.font = `${Math.min(12, height)}px system-ui, sans-serif`;
    pen.fillText(fitting(name_of(i), left - 12), left - 8, y + tall / 2 + 4);
  }
}

function draw_axis(ink, bottom) {
  const raw = (to - from) / Math.min(8, wide / 90), unit = 10 ** Math.floor(Math.log10(raw));
  const tick = unit * (raw / unit > 5 ? 10 : raw / unit > 2 ? 5 : raw / unit > 1 ? 2 : 1);
  pen.fillStyle = pen.strokeStyle = ink;
  pen.textAlign = "center";
  pen.font = "11px system-ui, sans-serif";
  for (let t = Math.ceil(from / tick) * tick; t <= to; t += tick) {
    pen.globalAlpha = 0.2;
    pen.fillRect(x_of(t), top_of - 4, 1, bottom - top_of + 4);
    pen.globalAlpha = 1;
    pen.fillText(time(t), x_of(t), 14);
  }
}

function outline(at, colour) {
  if (!at) return;
  const row = rows[at.row], a = Math.max(left, x_of(row.from[at.bar])), b = Math.min(left + wide, x_of(row.to[at.bar]));
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  if (b >= left && a <= left + wide) pen.strokeRect(a, top_of + at.row * height, Math.max(b - a, 2), height - 2);
  const by = row.by[at.bar];
  if (by < 0) return;
  pen.setLineDash([4, 3]);
  pen.beginPath();
  pen.moveTo(a, top_of + (at.row + 0.5) * height);
  pen.lineTo(a, top_of + (by + 0.5) * height);
  pen.stroke();
  pen.setLineDash([]);
  pen.strokeRect(4, top_of + by * height - 1, left - 8, height);
}

function draw() {
  const style = getComputedStyle(document.documentElement), ink = style.getPropertyValue("--ink").trim();
  const least = rows.length <= 24 ? 28 : rows.length <= 96 ? 15 : 9; // rows fill the screen, the answer below them
  const above = $("view").getBoundingClientRect().top + window.scrollY, free = window.innerHeight - above - $("said").offsetHeight;
  height = Math.min(112, Math.max(least, Math.floor((free - top_of - 44) / rows.length)));
  pen.font = "12px system-ui, sans-serif";
  const names = rows.slice(0, 200).map((row, i) => pen.measureText(name_of(i)).width);
  left = Math.floor(Math.min($("view").clientWidth / 4, Math.max(0, ...names) + 20));
  const ratio = window.devicePixelRatio || 1, bottom = top_of + rows.length * height;
  wide = Math.max(120, $("view").clientWidth - left - 12);
  canvas.width = (left + wide + 12) * ratio;
  canvas.height = (bottom + 8) * ratio;
  canvas.style.width = `${left + wide + 12}px`;
  canvas.style.height = `${bottom + 8}px`;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = style.getPropertyValue("--raised").trim();
  pen.fillRect(left, top_of, wide, bottom - top_of);
  const seen = $("view").scrollTop, first = Math.max(0, Math.floor((seen - top_of) / height) - 1);
  const last = Math.min(rows.length, first + Math.ceil($("view").clientHeight / height) + 3);
  for (let i = first; i < last; i++) draw_row(i, ink);
  for (const [a, b, times] of data.gaps) {
    if (b < from || a > to) continue;
    const begin = Math.max(left, x_of(a)), end = Math.min(left + wide, x_of(b));
    pen.fillStyle = "rgba(128, 128, 128, .3)";
    pen.fillRect(begin, top_of, end - begin, bottom - top_of);
    pen.fillStyle = ink;
    pen.textAlign = "center";
    if (end - begin > 150) pen.fillText(`the same ${times} times more`, (begin + end) / 2, top_of + 14);
  }
  draw_axis(ink, bottom);
  outline(kept, style.getPropertyValue("--now").trim());
  outline(shown, style.getPropertyValue("--now").trim());
  $("span").textContent = `${time(from)} to ${time(to)} of ${time(total)}`;
}
let asked = false;
function draw_soon() {
  if (!asked) requestAnimationFrame(() => { asked = false; draw(); });
  asked = true;
}

// The bar at a place, or the nearest one within three pixels.
function bar_at(x, y) {
  const i = Math.floor((y - top_of) / height);
  if (i < 0 || i >= rows.length || x < left) return null;
  const row = rows[i], t = t_of(x), near = 3 * (to - from) / wide;
  let best = null, distance = near;
  for (let k = first_at(row, t - near); k < row.n && row.began[k] <= t + near; k++) {
    const d = t < row.began[k] ? row.began[k] - t : t > row.to[k] ? t - row.to[k] : 0;
    if (d < distance || (d === 0 && (!best || row.from[k] <= t))) [best, distance] = [{ row: i, bar: k }, d];
  }
  return best;
}

function say(at) {
  const box = $("said");
  $("waited").disabled = !at || rows[at.row].by[at.bar] < 0;
  if (!at) return;
  const row = rows[at.row], of = data.rows[at.row], by = row.by[at.bar];
  const line = text => { const p = document.createElement("p"); p.textContent = text; return p; };
  const name = document.createElement("b");
  name.textContent = data.texts[row.text[at.bar]][0];
  box.replaceChildren(name,
    line(`${name_of(at.row)}, rank ${of.rank}${of.ranks > 1 ? ` and ${of.ranks - 1} like it` : ""}: ${time(row.to[at.bar] - row.from[at.bar])} from ${time(row.from[at.bar])}`),
    line(by < 0 ? "It waited for no rank." : `It waited ${time(row.from[at.bar] - row.began[at.bar])} before that for ${data.rows[by].label} (rank ${data.rows[by].rank}), which came last.`));
}

function zoom(by, x = left + wide / 2) {
  const t = t_of(x), span = Math.min(total, Math.max((to - from) * by, 20));
  from = Math.min(Math.max(0, t - (t - from) / (to - from) * span), total - span);
  to = from + span;
  draw_soon();
}
function move(by) {
  const span = to - from;
  from = Math.min(Math.max(0, from + by), total - span);
  to = from + span;
  draw_soon();
}

canvas.addEventListener("wheel", e => {
  if (e.ctrlKey || e.metaKey) zoom(e.deltaY > 0 ? 1.25 : 0.8, e.offsetX);
  else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move((e.deltaX || e.deltaY) / wide * (to - from));
  else return;
  e.preventDefault();
}, { passive: false });
canvas.addEventListener("pointerdown", e => { drag = { x: e.offsetX, moved: false }; canvas.setPointerCapture(e.pointerId); });
canvas.addEventListener("pointermove", e => {
  if (drag) {
    if (Math.abs(e.offsetX - drag.x) > 2 || drag.moved) {
      move((drag.x - e.offsetX) / wide * (to - from));
      drag = { x: e.offsetX, moved: true };
    }
    return;
  }
  const at = bar_at(e.offsetX, e.offsetY);
  if (at?.row === shown?.row && at?.bar === shown?.bar) return;
  shown = at;
  say(at || kept);
  draw_soon();
});
canvas.addEventListener("pointerup", e => {
  if (drag && !drag.moved) {
    kept = bar_at(e.offsetX, e.offsetY);
    say(kept);
  }
  drag = null;
  draw_soon();
});
canvas.addEventListener("dblclick", e => zoom(0.25, e.offsetX));
canvas.addEventListener("keydown", e => {
  const act = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => zoom(1e9),
    ArrowLeft: () => move((from - to) / 8), ArrowRight: () => move((to - from) / 8) }[e.key];
  if (!act) return;
  act();
  e.preventDefault();
});
$("in").onclick = () => zoom(0.5);
$("out").onclick = () => zoom(2);
$("fit").onclick = () => zoom(1e9);
$("waited").onclick = () => {
  const at = kept || shown;
  if (!at || rows[at.row].by[at.bar] < 0) return;
  const by = rows[at.row].by[at.bar], t = rows[at.row].from[at.bar], row = rows[by];
  let k = first_at(row, t);
  for (let j = k; j < row.n && row.began[j] <= t; j++) if (row.to[j] <= t) k = j; // what it did before it came
  kept = shown = { row: by, bar: Math.min(k, row.n - 1) };
  say(kept);
  draw_soon();
};
$("view").addEventListener("scroll", draw_soon);
window.addEventListener("resize", draw_soon);

$("title").textContent = data.title;
$("settings").textContent = data.settings;
$("about").textContent = data.about + (data.cut ? "; the end is left out: the step has too many operations" : "");
for (const kind of [...data.kinds].reverse()) {
  const item = document.createElement("span"), colour = document.createElement("i");
  colour.style.background = kind.colour;
  item.append(colour, kind.name);
  $("legend").append(item);
}
draw();
