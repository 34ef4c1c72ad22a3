"use strict";
// Draws one series. The horizontal axis counts measurements in the order of the commits: dates are no topology.
const data = kernelgate_series;
const count = data.us.length;
const holder = document.getElementById("chart");
const readout = document.getElementById("readout");
const places = Float64Array.from({ length: count }, (_, at) => at);
const CLOSEST = 5; // measurements that are on the chart at least
const FLAT = 0.01; // the chart is at least 1% high, so that noise draws no mountains
const SPARSE = 7; // pixels between measurements that show each by itself

// ---- what can be shown ----------------------------------------------------------------------------------------------

const known = (values, each) => values.map((value, at) => (value === null ? null : each(value, at)));
const scaled = (values, reach, sign) => known(values, (value, at) => value * Math.exp(sign * (reach[at] ?? 0)));

function view(name, values, reaches, written) {
  return { name, values, low: scaled(values, reaches, -1), high: scaled(values, reaches, 1), written };
}

function unit() {
  const shortest = Math.min(...data.us.slice(-CLOSEST));
  return [[1e6, "s"], [1e3, "ms"], [1, "µs"]].find(([size]) => shortest >= size) ?? [1e-3, "ns"];
}

const none = Array(count).fill(null);
const [size, unitName] = unit();
const views = [view(`time, ${unitName}`, data.us.map((us) => us / size), data.reach, (one) => `${one.toPrecision(5)} ${unitName}`)];
if (data.pinned.some((one) => one !== null)) {
  const ratios = known(data.pinned, Math.exp);
  const name = `time over the pinned commit ${data.pin.slice(0, 7)}`;
  views.push(view(name, ratios, data.pinned_reach, (one) => `${one.toFixed(4)} times the pinned commit's`));
}
if (data.reference.some((one) => one !== null)) {
  const times = known(data.reference, (one, at) => one / data.us[at]);
  views.push(view(data.times_reference, times, none, (one) => `${one.toPrecision(4)}${data.times_reference}`));
}
let shown = views[0];

// ---- drawing --------------------------------------------------------------------------------------------------------

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["page", "text", "quiet", "grid", "panel", "dot", "head", "band", "bad", "good", "unknown"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

const pixel = window.devicePixelRatio || 1;
let picked = count - 1;

let window_ = [-0.5, count - 0.5]; // what is in view

const visible = () => [Math.max(0, Math.ceil(window_[0])), Math.min(count - 1, Math.floor(window_[1]))];

// uPlot asks for the heights before its own horizontal scale has moved.
function heights() {
  const [first, last] = visible();
  let [low, high] = [Infinity, -Infinity];
  for (let at = first; at <= last; at += 1) {
    const value = shown.values[at];
    if (value === null) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  const least = (FLAT * (low + high)) / 2;
  const room = Math.max(0.12 * (high - low), (least - (high - low)) / 2);
  return [low - room, high + room];
}

// Runs of measurements in one environment, as first and last.
const runs = [];
for (let at = 0; at < count; at += 1) {
  if (at && data.environment[at] === data.environment[at - 1]) runs.at(-1)[1] = at;
  else runs.push([at, at]);
}

function clipped(plot, draw, room = 0) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - room, bbox.top, bbox.width + 2 * room, bbox.height);
  ctx.clip();
  draw(ctx, bbox);
  ctx.restore();
}

const across = (plot, at) => plot.valToPos(at, "x", true);

function bands(plot) {
  clipped(plot, (ctx, { left, top, width, height }) => {
    ctx.font = `600 ${11 * pixel}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    let lettered = -Infinity;
    for (const [first, last] of runs) {
      const [from, to] = [across(plot, first - 0.5), across(plot, last + 0.5)];
      if (to < left || from > left + width) continue;
      if (data.environment[first] % 2 === 1) {
        ctx.fillStyle = colours.band;
        ctx.fillRect(from, top, to - from, height);
      }
      const start = Math.max(from, left) + 5 * pixel;
      const letter = data.letters[data.environment[first]];
      if (data.letters.length > 1 && start > lettered && to - start > 10 * pixel) {
        ctx.fillStyle = colours.quiet;
        ctx.fillText(letter, start, top + 4 * pixel);
        lettered = start + 24 * pixel;
      }
    }
  });
}

// Where measurements lie closer than pixels, each column is drawn once, from its lowest end to its highest.
function whiskers(plot, ctx) {
  const [first, last] = visible();
  ctx.beginPath();
  let [column, low, high] = [null, Infinity, -Infinity];
  const done = () => {
    if (column === null || low >= high) return;
    ctx.moveTo(column + 0.5, plot.valToPos(low, "y", true));
    ctx.lineTo(column + 0.5, plot.valToPos(high, "y", true));
  };
  for (let at = first; at <= last; at += 1) {
    if (shown.values[at] === null) continue;
    const here = Math.round(across(plot, at));
    if (here !== column) {
      done();
      [column, low, high] = [here, Infinity, -Infinity];
    }
    low = Math.min(low, shown.low[at]);
    high = Math.max(high, shown.high[at]);
  }
  done();
  ctx.strokeStyle = colours.quiet;
  ctx.globalAlpha = 0.6;
  ctx.lineWidth = pixel;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

function dots(plot, ctx) {
  const [first, last] = visible();
  const sparse = plot.bbox.width / (last - first + 1) >= SPARSE * pixel;
  const filled = new Path2D();
  const open = new Path2D();
  for (let at = first; at <= last; at += 1) {
    const odd = at in data.finding;
    if (shown.values[at] === null || !(odd || sparse)) continue;
    const [x, y, radius] = [across(plot, at), plot.valToPos(shown.values[at], "y", true), 3 * pixel];
    const path = odd ? open : filled;
    path.moveTo(x + radius, y);
    path.arc(x, y, radius, 0, 2 * Math.PI);
  }
  ctx.fillStyle = colours.head;
  ctx.fill(filled);
  ctx.fillStyle = colours.page;
  ctx.fill(open);
  ctx.strokeStyle = colours.head;
  ctx.lineWidth = 1.25 * pixel;
  ctx.stroke(open);
}

const DASHES = { suspected: [2, 4], refuted: [1, 5], accepted: [8, 3], confirmed: [] };
const SIGNS = { suspected: "?", refuted: "✕", accepted: "✓", confirmed: "" };

function changes(plot, ctx) {
  const { left, top, width, height } = plot.bbox;
  ctx.font = `600 ${11 * pixel}px system-ui, sans-serif`;
  ctx.textBaseline = "bottom";
  ctx.textAlign = "left";
  const ends = []; // of what was written in each line
  for (const { at, state, change } of data.changes) {
    const x = across(plot, at - 0.5);
    if (x < left || x > left + width) continue;
    ctx.setLineDash(DASHES[state].map((length) => length * pixel));
    ctx.strokeStyle = colours.text;
    ctx.lineWidth = (state === "confirmed" ? 1.75 : 1) * pixel;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    const words = [SIGNS[state], change].filter(Boolean).join(" ");
    const long = ctx.measureText(words).width + 8 * pixel;
    const start = Math.min(x + 4 * pixel, left + width - long);
    let line = 0;
    while (ends[line] > start) line += 1;
    if (line > 2) continue; // the table below has them all
    ends[line] = start + long;
    const bottom = top + height - (3 + 15 * line) * pixel;
    ctx.fillStyle = colours.page;
    ctx.fillRect(start - 2 * pixel, bottom - 13 * pixel, long - 2 * pixel, 14 * pixel);
    ctx.fillStyle = colours.text;
    ctx.fillText(words, start, bottom);
  }
  ctx.setLineDash([]);
}

function selected(plot, ctx) {
  if (shown.values[picked] === null) return;
  const [x, y] = [across(plot, picked), plot.valToPos(shown.values[picked], "y", true)];
  ctx.strokeStyle = colours.text;
  ctx.lineWidth = 1.75 * pixel;
  ctx.beginPath();
  ctx.arc(x, y, 6 * pixel, 0, 2 * Math.PI);
  ctx.stroke();
}

const over = (plot) => clipped(plot, (ctx) => [whiskers, dots, changes, selected].forEach((draw) => draw(plot, ctx)), 8 * pixel);

// The line breaks where the environment changes: its two ends are no change of the code.
function gaps(plot) {
  return runs.slice(1).map(([first]) => [across(plot, first - 1), across(plot, first)]);
}

const HEX = /^[0-9a-f]{7,64}$/;
const named = (at) => (HEX.test(data.commit[at]) ? data.commit[at].slice(0, 7) : data.commit[at]);
const day = (at) => (data.made[at] === null ? named(at) : new Date(data.made[at] * 1000).toISOString().slice(0, 10));

function made() {
  const axis = { stroke: () => colours.quiet, grid: { stroke: () => colours.grid, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 20, labelGap: 2 };
  const days = (_, splits) => splits.map((at) => (Number.isInteger(at) && at >= 0 && at < count ? day(at) : ""));
  const options = {
    width: holder.clientWidth,
    height: holder.clientHeight,
    pxAlign: 0,
    padding: [null, 36, null, null], // for half of the last date
    legend: { show: false },
    cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: false } },
    scales: { x: { time: false, range: (_, min, max) => [min, max] }, y: { range: heights } },
    axes: [
      { ...axis, values: days, label: "commits, by day of measurement", size: 30, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5] },
      { ...axis, label: () => shown.name, size: 56 },
    ],
    series: [{}, { stroke: () => colours.head, width: 1.75, points: { show: false }, gaps }],
    hooks: { drawClear: [bands], draw: [over], setCursor: [hovered] },
  };
  return new uPlot(options, [places, shown.values], holder);
}

// ---- moving ---------------------------------------------------------------------------------------------------------

let waiting = false;

// At most one drawing a frame, however many events there are.
function drawSoon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    plot.setScale("x", { min: window_[0], max: window_[1] });
  });
}

function show(min, max) {
  const wide = Math.min(count, Math.max(CLOSEST, max - min));
  const middle = (min + max) / 2;
  const start = Math.min(Math.max(-0.5, middle - wide / 2), count - 0.5 - wide);
  window_ = count < CLOSEST ? [-0.5, count - 0.5] : [start, start + wide];
  drawSoon();
}

function pan(share) {
  const by = share * (window_[1] - window_[0]);
  show(window_[0] + by, window_[1] + by);
}

function zoom(factor, around = (window_[0] + window_[1]) / 2) {
  show(around - (around - window_[0]) * factor, around + (window_[1] - around) * factor);
}

const moves = { left: () => pan(-0.25), right: () => pan(0.25), in: () => zoom(0.5), out: () => zoom(2), all: () => show(-0.5, count - 0.5) };

function pick(at) {
  picked = Math.min(count - 1, Math.max(0, at));
  if (picked < window_[0] || picked > window_[1]) {
    const half = (window_[1] - window_[0]) / 2;
    show(picked - half, picked + half);
  }
  tell();
  drawSoon();
}

function tell() {
  const link = data.address && HEX.test(data.commit[picked]);
  const commit = document.createElement(link ? "a" : "code");
  commit.textContent = named(picked) || "—";
  if (link) commit.href = `${data.address}/commit/${data.commit[picked]}`;
  const value = shown.values[picked];
  const [low, high] = [shown.low[picked], shown.high[picked]];
  const parts = [value === null ? "not measured" : shown.written(value)];
  if (low < high) parts[0] += ` ± ${((50 * (high - low)) / value).toFixed(2)}%`;
  if (data.made[picked] !== null) parts.push(day(picked));
  if (data.letters.length > 1) parts.push(`environment ${data.letters[data.environment[picked]]}`);
  for (const { at, state, change } of data.changes) if (at === picked) parts.push([state, "change", change].filter(Boolean).join(" "));
  if (picked in data.finding) parts.push(`not to be trusted: ${data.finding[picked]}`);
  readout.replaceChildren(commit, `: ${parts.join(", ")}`);
}

function hovered(plot) {
  if (plot.cursor.left < 0 || pointers.size) return;
  const at = Math.min(count - 1, Math.max(0, Math.round(plot.posToVal(plot.cursor.left, "x"))));
  if (at === picked) return;
  picked = at;
  tell();
  drawSoon();
}

const pointers = new Map();

function pressed(event) {
  if (event.button !== 0) return;
  pointers.set(event.pointerId, event.clientX);
  plot.over.setPointerCapture(event.pointerId);
  holder.classList.add("dragged");
}

function dragged(event) {
  if (!pointers.has(event.pointerId)) return;
  const before = pointers.get(event.pointerId);
  const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
  pointers.set(event.pointerId, event.clientX);
  const perPixel = (window_[1] - window_[0]) / plot.over.clientWidth;
  if (others.length === 0) {
    show(window_[0] - (event.clientX - before) * perPixel, window_[1] - (event.clientX - before) * perPixel);
  } else {
    const still = others[0];
    const around = window_[0] + (still - plot.over.getBoundingClientRect().left) * perPixel;
    const factor = Math.abs(before - still) / Math.max(1, Math.abs(event.clientX - still));
    zoom(Math.min(2, Math.max(0.5, factor)), around);
  }
}

function released(event) {
  pointers.delete(event.pointerId);
  if (pointers.size === 0) holder.classList.remove("dragged");
}

function wheeled(event) {
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!event.ctrlKey && !event.metaKey && !sideways) return; // the page scrolls
  event.preventDefault();
  if (sideways) return void pan(event.deltaX / plot.over.clientWidth);
  const share = (event.clientX - plot.over.getBoundingClientRect().left) / plot.over.clientWidth;
  zoom(Math.exp(event.deltaY / 300), window_[0] + share * (window_[1] - window_[0]));
}

const steps = data.changes.map(({ at }) => at).sort((one, other) => one - other);
const keys = {
  ArrowLeft: () => pick(picked - 1),
  ArrowRight: () => pick(picked + 1),
  Home: () => pick(0),
  End: () => pick(count - 1),
  PageUp: () => pick(steps.findLast((at) => at < picked) ?? picked),
  PageDown: () => pick(steps.find((at) => at > picked) ?? picked),
  "+": () => zoom(0.5, picked),
  "=": () => zoom(0.5, picked),
  "-": () => zoom(2, picked),
  0: moves.all,
};

function typed(event) {
  if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  keys[event.key]();
}

// ---- start ----------------------------------------------------------------------------------------------------------

function chooseView(one) {
  shown = one;
  plot.setData([places, shown.values], false);
  drawSoon();
  tell();
}

function offer() {
  const set = document.querySelector(".views");
  set.hidden = views.length < 2;
  views.forEach((one, at) => {
    const label = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { type: "radio", name: "view", checked: at === 0 });
    input.addEventListener("change", () => chooseView(one));
    label.append(input, one.name);
    set.append(label);
  });
}

function fromAddress() {
  const wanted = location.hash.slice(1);
  const at = wanted ? data.commit.findLastIndex((name) => name.startsWith(wanted.slice(0, 12))) : -1;
  if (at >= 0) pick(at);
}

let plot;
if (count) {
  document.querySelector(".drawing").hidden = false;
  readColours();
  offer();
  plot = made();
  show(-0.5, count - 0.5);
  tell();
  plot.over.addEventListener("pointerdown", pressed);
  plot.over.addEventListener("pointermove", dragged);
  for (const end of ["pointerup", "pointercancel"]) plot.over.addEventListener(end, released);
  holder.addEventListener("wheel", wheeled, { passive: false });
  holder.addEventListener("keydown", typed);
  for (const button of document.querySelectorAll("[data-move]")) button.addEventListener("click", moves[button.dataset.move]);
  new ResizeObserver(() => plot.setSize({ width: holder.clientWidth, height: holder.clientHeight })).observe(holder);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => [readColours(), drawSoon()]);
  window.addEventListener("hashchange", fromAddress);
  fromAddress();
}
