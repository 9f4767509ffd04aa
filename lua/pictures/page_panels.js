/* SPDX-License-Identifier: MIT
**
** page_panels.js - the panels of the page: where ranks lie for a size of cells and a window, labels, the borders of
** machines, zoom, and a small picture of a panel that is larger than what is seen of it.
*/

// Bars along two edges, not lines through the middle, which would strike the number out.
const bars = way => `linear-gradient(${way},var(--stroke) 0 3px,transparent 3px calc(100% - 3px),var(--stroke) calc(100% - 3px))`;
const stripes = ["", "repeating-linear-gradient(45deg,var(--stroke) 0 2px,transparent 2px 7px)", bars("0deg"),
  "repeating-linear-gradient(-45deg,var(--stroke) 0 2px,transparent 2px 7px)", bars("90deg")];
const colour = g => (g + Math.floor(g / 8)) % 8;
const stripe = g => stripes[(2 * (Math.floor(g / 8) % 5) + colour(g)) % 5];

function style_of(groups) {
  if (!groups.length) return "";
  const n = groups.length, c = groups.slice(0, 8).map(g => `var(--g${colour(g)})`), m = c.length;
  if (n > 1) return `background:linear-gradient(90deg,${c.map((x, i) => `${x} ${100 * i / m}% ${100 * (i + 1) / m}%`)})`;
  return `background-color:${c[0]}` + (SIZES[$("zoom").value].font && stripe(groups[0]) ? `;background-image:${stripe(groups[0])}` : "");
}

// Sizes of a cell; the small ones have no numbers.
const SIZES = [[4, 3, 0, 0], [5, 4, 0, 1], [7, 5, 0, 1], [14, 11, 0, 1], [25, 16, 9, 1], [34, 26, 12, 2], [50, 36, 16, 3]]
  .map(([w, h, font, gap]) => ({ w, h, font, gap, dx: w + gap, dy: h + gap }));
const PAD = 5, TITLE = 14, HEAD = 16, GAP = 6, LONG = 48;
const wide = text => Math.ceil(6.2 * String(text).length) + 6;
const divisors = n => [...Array(n).keys()].map(i => i + 1).filter(d => n % d === 0);
// The number in `list` whose block, of size(n), is nearest to `shape` (width to height) and not wider than `room`.
function nearest(list, shape, room, size) {
  let best = list[0], least = Infinity;
  for (const n of list) {
    const [w, h, holes] = size(n), off = Math.abs(Math.log(w / h / shape)) + (holes ? 0.3 : 0) + (w > room ? 100 + w : 0);
    if (off < least) { least = off; best = n; }
  }
  return best;
}

// Levels are [name, coordinates that are drawn, or their number].
const length_of = level => typeof level[1] === "number" ? level[1] : level[1].length;
const coord = (level, i) => typeof level[1] === "number" ? i : level[1][i];

// Lay out a part: level 0 across, level 1 down, further levels as boxes with a title. A row that is too long goes on
// below, a column beside. bare: 1: tiles have no labels, 2: nor have small boxes.
function measure(part, z, room, shape, bare) {
  const levels = part.levels, name0 = levels[0][0], n0 = length_of(levels[0]), n1 = levels.length > 1 ? length_of(levels[1]) : 1;
  const narrow = w => Math.min(w, Math.floor(room / 4)); // a label has at most a quarter of the width, and then an ellipsis
  const last = level => narrow(wide(`${level[0]} ${coord(level, length_of(level) - 1)}`));
  const label = bare ? 0 : levels.length > 1 ? Math.max(last(levels[1]), narrow(wide(name0))) : narrow(wide(name0));
  room -= 2 * PAD * Math.max(0, levels.length - 2);
  let columns = n0, left = label;
  if (n0 * z.dx + label > room || n0 > 64 || levels.length === 1 && n0 > 12) {
    left = bare ? 0 : Math.max(label, last(levels[0]));
    const fits = Math.max(1, Math.floor((room - left) / z.dx)), list = divisors(n0).filter(d => d <= fits && d <= 64);
    if (!(list[list.length - 1] * 3 > Math.min(fits, n0))) list.push(Math.min(fits, 32)); // a prime, say
    columns = levels.length > 1 ? list[list.length - 1] : nearest(list, shape, room, c => [left + c * z.dx, Math.ceil(n0 / c) * z.dy]);
  }
  const chunks = Math.ceil(n0 / columns), head = chunks > 1 || bare ? 0 : HEAD, strip = left + columns * z.dx;
  const size = per => {
    const strips = Math.ceil(n1 / per);
    return [strips * strip + (strips - 1) * GAP, head + per * chunks * z.dy, n1 % per];
  };
  const strips = n1 <= (bare ? 128 : LONG) && chunks === 1 ? 1 : Math.min(n1, 64);
  const per = nearest([...new Set([...Array(strips).keys()].map(i => Math.ceil(n1 / (i + 1))))], shape, room, size);
  let [width, height] = size(per);
  const boxes = [];
  for (let k = 2; k < levels.length; k++) {
    const n = length_of(levels[k]), named = bare < 2 || width >= 100, pad = named ? PAD : 0, title = named ? TITLE + PAD : 0;
    const w = Math.max(width, named ? last(levels[k]) : 0) + 2 * pad, h = height + title + pad, gap = named ? 4 + k : 1 + k;
    const all = c => [c * (w + gap) - gap, Math.ceil(n / c) * (h + gap) - gap, n % c];
    const c = nearest([...Array(n).keys()].map(i => i + 1), shape, room + 2 * PAD * (k - 1), all);
    boxes[k] = { w, h, gap, per: c, named, pad, title };
    [width, height] = all(c);
  }
  return { part, z, left, columns, chunks, head, strip, per, boxes, width, height, bare };
}

// The part with its longest level, except level 0, down the rows: this makes fewer boxes.
function upright(part) {
  const n = part.levels.map(length_of), at = n.reduce((best, size, k) => k > 1 && size > n[best] && size <= 64 ? k : best, 1);
  if (at < 2) return part;
  const order = n.map((_, k) => k), strides = n.map((_, k) => n.slice(0, k).reduce((x, y) => x * y, 1));
  order.splice(1, 0, order.splice(at, 1)[0]);
  const ranks = part.ranks.map((_, cell) => part.ranks[order.reduce((from, k) => {
    from[0] += from[1] % n[k] * strides[k];
    from[1] = Math.floor(from[1] / n[k]);
    return from;
  }, [0, cell])[0]]);
  return { ...part, levels: order.map(k => part.levels[k]), ranks };
}

// The parts of a sheet side by side, in lines no wider than `room`.
function pack(parts, room) {
  let x = 0, y = 0, high = 0, width = 0;
  for (const p of parts) {
    if (x && x + p.width > room) { x = 0; y += high + 20; high = 0; }
    width = Math.max(width, x + p.width);
    x += p.width + 20;
    high = Math.max(high, p.height + (parts.length > 1 ? 24 : 0));
  }
  return [width, y + high];
}
// Lay out a sheet in the shape that exceeds the window least; if `bare`, without labels as far as needed.
function layout(sheet, z, room, tall, bare) {
  let best, least = Infinity;
  for (const without of bare ? [0, 1, 2] : [0]) {
    for (const shape of least ? [1.5, 2.5, 0.9, 4, 7] : []) {
      const parts = sheet.parts.map(p => measure(p, z, room, shape, without)), [w, h] = pack(parts, room);
      const over = 10 * Math.max(0, w - room) + Math.max(0, h - tall);
      if (over < least && (!without || over === 0 || z === SIZES[0])) { least = over; best = parts; }
    }
  }
  return { parts: best, fits: least === 0 };
}

function place(l, add, cellAdd) {
  const { z, part, boxes } = l, levels = part.levels, n0 = length_of(levels[0]), n1 = levels.length > 1 ? length_of(levels[1]) : 1, rim = [];
  const machine = machineOf(), of = rank => Math.floor(rank / machine), every = (room, step) => 2 ** Math.max(0, Math.ceil(Math.log2(room / step)));
  const rows = every(11, z.dy), columns = every(6.2 * String(coord(levels[0], n0 - 1)).length + 3, z.dx);
  const tile = (x, y, base) => {
    const at = new Map(); // line and column: the rank
    for (let i1 = 0; i1 < n1; i1++) for (let i0 = 0; i0 < n0; i0++) {
      const strip = Math.floor(i1 / l.per), line = (i1 % l.per) * l.chunks + Math.floor(i0 / l.columns), column = i0 % l.columns;
      const cx = x + strip * (l.strip + GAP) + l.left + column * z.dx, cy = y + l.head + line * z.dy, rank = part.ranks[base + i1 * n0 + i0];
      cellAdd(rank, cx, cy);
      if (!l.bare && column === 0 && line % rows === 0 && (levels.length > 1 || l.chunks > 1)) {
        const text = i0 === 0 && levels.length > 1 ? `${levels[1][0]} ${coord(levels[1], i1)}` : `${levels[0][0]} ${coord(levels[0], i0)}`;
        add("label row", text, cx - l.left, cy + z.h / 2 - 6, l.left - 5);
      }
      if (line === 0 && l.head && i0 % columns === 0) add("label", coord(levels[0], i0), cx + (columns > 1 ? 0 : Math.max(0, z.w / 2 - 3.1 * String(i0).length)), cy - HEAD);
      if (line === 0 && l.head && i0 === 0) add("label row", levels[0][0], cx - l.left, cy - HEAD, l.left - 5);
      if (machine) at.set(`${strip} ${line} ${column}`, [rank, cx - z.gap / 2, cy - z.gap / 2]);
    }
    for (const [key, [rank, cx, cy]] of at) {
      const [s, line, c] = key.split(" ").map(Number), edge = (dl, dc, way) => {
        const other = at.get(`${s} ${line + dl} ${c + dc}`);
        if (!other || (dl + dc < 0 && of(other[0]) !== of(rank))) rim.push(way);
      };
      edge(-1, 0, `M${cx} ${cy}h${z.dx}`);
      edge(0, -1, `M${cx} ${cy}v${z.dy}`);
      if (!at.has(`${s} ${line + 1} ${c}`)) rim.push(`M${cx} ${cy + z.dy}h${z.dx}`);
      if (!at.has(`${s} ${line} ${c + 1}`)) rim.push(`M${cx + z.dx} ${cy}v${z.dy}`);
    }
  };
  const level = (k, x, y, base) => {
    if (k < 2) { tile(x, y, base); return; }
    const { w, h, gap, per, named, pad, title } = boxes[k], inside = part.levels.slice(0, k).reduce((n, d) => n * length_of(d), 1);
    for (let i = 0; i < length_of(levels[k]); i++) {
      const bx = x + (i % per) * (w + gap), by = y + Math.floor(i / per) * (h + gap);
      if (named) {
        add("box", undefined, bx, by, w, h);
        add("label", `${levels[k][0]} ${coord(levels[k], i)}`, bx + PAD, by + 2, w - 2 * PAD);
      }
      level(k - 1, bx + pad, by + title, base + i * inside);
    }
  };
  level(levels.length - 1, 0, 0, 0);
  return rim.join("");
}

function panel(name, parts, room, tall) {
  const f = family(name), z = parts[0].z, same = also.get(name), ways = ["across", "down"], box = el("div", { class: "parts", role: "grid", "aria-label": `ranks and groups of ${name}` });
  const p = { name, family: f, box, cells: new Map(), raised: [], parts: [] };
  const said = (kind, ...words) => el("p", { class: `${kind} said`, title: words.map(w => w.textContent || w).join("") }, ...words);
  const words = el("div", {}, said("head", el("strong", {}, name), ` ${count_of(f.count)} group${s_of(f.count)} of ${f.even ? "" : "up to "}${count_of(f.largest)}`
    + (f.shares ? `, with the communicators of ${f.shares}` : "")), same.length > 0 && said("soft same", `also ${same.join(", ")}`));
  p.caption = el("figcaption", {}, words);
  p.figure = el("figure", { class: z.font ? "card" : "card small", "data-family": name, style: `width:${Math.min(room, Math.max(180, pack(parts, room)[0])) + 26}px;--w:${z.w}px;--h:${z.h}px;--f:${z.font}px` }, p.caption, box);
  box.style.maxHeight = `${tall + 40}px`;
  parts.forEach((l, i) => {
    const area = el("div", { class: "part", style: `width:${l.width}px;height:${l.height}px` });
    const add = (kind, text, x, y, w, h) => area.append(el("div", { class: kind, title: w && wide(text) > w ? text : undefined,
      style: `left:${x}px;top:${y}px` + (w ? `;width:${w}px` : "") + (h ? `;height:${h}px` : "") }, text === undefined ? "" : String(text)));
    const html = []; // the cells as text, which is faster for thousands of them; it holds numbers alone
    const rim = place(l, add, (rank, x, y) => {
      const groups = f.of(rank), where = !groups.length ? "in no group" : groups.length > 4 ? `in ${groups.length} groups` : `group ${groups.join(" and ")}`;
      html.push(`<div class="cell" style="left:${x}px;top:${y}px;${style_of(groups)}" data-rank="${rank}" tabindex="${p.cells.size ? -1 : 0}" `
        + `role="gridcell" aria-label="rank ${rank}, ${where}">${z.font ? rank : ""}</div>`);
      p.cells.set(rank, { rank, x, y, part: i });
    });
    area.insertAdjacentHTML("beforeend", html.join(""));
    for (const cell of area.getElementsByClassName("cell")) p.cells.get(+cell.dataset.rank).el = cell;
    if (rim) {
      area.append($("rims").content.cloneNode(true));
      area.lastElementChild.firstElementChild.setAttribute("d", rim);
    }
    const dims = l.part.levels.map(d => d[0]), rest = dims.slice(2), many = parts.length > 1;
    const way = said("soft way", dims.slice(0, 2).map((dim, k) => `${dim} ${ways[k]}`).join(", ") + (rest.length ? `, ${rest.join(", ")} in boxes` : ""));
    if (!many) words.append(way);
    p.parts.push(area);
    box.append(el("div", {}, many && el("p", { class: "soft" }, l.part.name), many && way, area));
  });
  return p;
}

// If the ranks do not fit into their panel, add a small picture of them with a frame around the visible part.
function overview(p) {
  const { box } = p;
  if (box.scrollHeight <= box.clientHeight + 1 && box.scrollWidth <= box.clientWidth + 1) return;
  const { scrollWidth: w, scrollHeight: h } = box, scale = Math.min(200 / w, 90 / h), sx = Math.max(scale, 80 / w), sy = Math.max(scale, 50 / h);
  const view = el("div"), canvas = p.canvas = el("canvas"), outer = el("div", { class: "overview", "aria-hidden": "true" }, canvas, view);
  p.seen = [sx, sy];
  const style = getComputedStyle(document.documentElement), origin = box.getBoundingClientRect();
  canvas.width = Math.ceil(w * sx);
  canvas.height = Math.ceil(h * sy);
  const colours = [...Array(8).keys()].map(i => style.getPropertyValue(`--g${i}`));
  p.ink = style.getPropertyValue("--ink");
  const starts = p.parts.map(area => {
    const r = area.getBoundingClientRect();
    return [r.x - origin.x + box.scrollLeft, r.y - origin.y + box.scrollTop];
  }), z = SIZES[$("zoom").value];
  p.spot = ({ x, y, part }) => [Math.floor((starts[part][0] + x) * sx), Math.floor((starts[part][1] + y) * sy),
    Math.ceil(z.dx * sx), Math.ceil(z.dy * sy)];
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  for (const [rank, cell] of p.cells) {
    const groups = p.family.of(rank);
    pen.fillStyle = groups.length ? colours[colour(groups[0])] : style.getPropertyValue("--line");
    pen.fillRect(...p.spot(cell));
  }
  p.plain = pen.getImageData(0, 0, canvas.width, canvas.height);
  const follow = () => Object.assign(view.style, { left: `${box.scrollLeft * sx}px`, top: `${box.scrollTop * sy}px`,
    width: `${box.clientWidth * sx}px`, height: `${box.clientHeight * sy}px` });
  const jump = e => {
    if (!e.buttons) return;
    const r = canvas.getBoundingClientRect();
    box.scrollTo((e.clientX - r.x) / sx - box.clientWidth / 2, (e.clientY - r.y) / sy - box.clientHeight / 2);
  };
  outer.addEventListener("pointerdown", e => { outer.setPointerCapture(e.pointerId); jump(e); });
  outer.addEventListener("pointermove", jump);
  box.addEventListener("scroll", follow);
  p.caption.append(outer);
  follow();
}
// Mark the groups of the rank in the small picture, too.
function mark(p) {
  if (!p.canvas) return;
  const pen = p.canvas.getContext("2d");
  pen.putImageData(p.plain, 0, 0);
  pen.fillStyle = p.ink;
  for (const cell of p.raised) pen.fillRect(...p.spot(cell));
}

// Lay out the sheets of the panels with the largest cells with which all panels fit on the first screen, several in a
// row if that helps; else with the largest cells with which each panel alone fits. On a narrow screen, and in a frame,
// cells keep their numbers if possible.
function arrange(sheets, n, width, high) {
  const EDGE = 26, SAID = 86, GAPS = 14, each = Math.max(260, Math.round(innerHeight * 0.66)), phone = innerWidth <= 700;
  const fit = (tries, most, all) => {
    for (const [size, bare] of tries) for (let k = 1; k <= most; k++) {
      const abreast = all ? k : most + 1 - k, rows = Math.ceil(n / abreast), room = Math.floor((width - (abreast - 1) * GAPS) / abreast) - EDGE;
      const tall = all ? Math.floor((high - (rows - 1) * GAPS) / rows) - SAID : each;
      if (room < 120 || tall < 60) continue;
      const laid = new Map(sheets.map(s => [s, layout(frame.sheets[s], SIZES[size], room, tall, bare)]));
      if ([...laid.values()].every(l => l.fits)) return { size, room, tall: Math.max(tall, each), laid };
    }
  };
  const last = zoom !== null ? zoom : 0, room = Math.max(200, width - EDGE);
  const large = [[6], [5], [4]], small = [[3], [2], [3, true], [2, true], [1, true], [0, true]];
  return zoom === null && (fit(large, n, true) || phone && fit(large, 1, false) || width < 560 && fit([[4]], n, false) || fit(small, n, true) || fit([...large, ...small], 1, false))
    || { size: last, room, tall: each, laid: new Map(sheets.map(s => [s, layout(frame.sheets[s], SIZES[last], room, each, !SIZES[last].font)])) };
}

function draw() {
  document.documentElement.style.setProperty("--top", `${document.querySelector("header").offsetHeight}px`);
  const list = plan ? plan.own.filter(n => chosen.has(n)) : [];
  const had = new Map(panels.map(p => [p.name, [p.box.scrollLeft / p.box.scrollWidth, p.box.scrollTop / p.box.scrollHeight]]));
  const sheet_of = n => frame.sheet_of[names.indexOf(n)], sheets = [...new Set(list.map(sheet_of))];
  const top = $("panels").getBoundingClientRect().top + scrollY;
  const { size, room, tall, laid } = arrange(sheets, list.length, $("panels").clientWidth, Math.max(200, innerHeight - top - 8));
  $("zoom").max = SIZES.length - 1;
  $("zoom").value = size;
  $("zoom").setAttribute("aria-valuetext", `${size + 1} of ${SIZES.length}`);
  const held = document.activeElement, holder = panels.find(p => p.figure.contains(held));
  panels = list.map(n => panel(n, laid.get(sheet_of(n)).parts, room, tall));
  $("panels").replaceChildren(...panels.map(p => p.figure));
  for (const p of panels) {
    const [x, y] = had.get(p.name) || [0, 0];
    p.box.scrollTo(x * p.box.scrollWidth, y * p.box.scrollHeight);
    overview(p);
    if (holder && holder.name === p.name && p.cells.has(+held.dataset.rank)) focusOn(p, p.cells.get(+held.dataset.rank));
  }
}
// The cell at which the Tab key comes into its panel.
function focusOn(p, cell) {
  for (const other of p.figure.querySelectorAll(".cell[tabindex='0']")) other.tabIndex = -1;
  cell.el.tabIndex = 0;
  cell.el.focus();
}
function zoomTo(size) {
  zoom = size === null ? null : Math.min(SIZES.length - 1, Math.max(0, size));
  again();
  show(shown);
  changed();
}
function again() {
  draw();
  step();
  look(shown);
}
// Bring a rank into the middle of panels that are larger than what is seen of them.
function show(rank) {
  for (const p of panels) {
    if (!p.canvas || !p.cells.has(rank)) continue;
    const [x, y] = p.spot(p.cells.get(rank)), [sx, sy] = p.seen;
    p.box.scrollTo(x / sx - p.box.clientWidth / 2, y / sy - p.box.clientHeight / 2);
  }
}
$("zoom").addEventListener("input", () => zoomTo(+$("zoom").value));
$("out").addEventListener("click", () => zoomTo(+$("zoom").value - 1));
$("in").addEventListener("click", () => zoomTo(+$("zoom").value + 1));
$("fit").addEventListener("click", () => zoomTo(null));
let windowWas = `${innerWidth} ${innerHeight}`;
window.addEventListener("resize", () => requestAnimationFrame(() => {
  if (!plan || windowWas === `${innerWidth} ${innerHeight}`) return;
  windowWas = `${innerWidth} ${innerHeight}`;
  again();
}));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plan) again(); });
