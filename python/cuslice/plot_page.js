// SPDX-License-Identifier: Apache-2.0
// The page: what all charts have in sight, what the cursor is at, and the mouse, fingers and keys that move both.
const LENGTH = Math.max(data.length, 1);
const SHORTEST = Math.min(10, LENGTH); // of what a zoom shows
const FEW = 4; // pixels: a shorter drag is a click
const LISTED = 5; // blocks, in a narrow window

// What is in sight: the same of all charts.

const view = { from: 0, to: LENGTH };
const reading = { time: null, chart: null };
const holders = [...document.querySelectorAll(".chart")];
const charts = holders.map((holder, number) => new Chart(data.gpus[number], holder, number));

function isWhole() {
  return view.from === 0 && view.to === LENGTH;
}

function draw() {
  for (const chart of charts) chart.draw();
  const whole = String(isWhole());
  for (const id of ["reset", "out", "earlier", "later"]) {
    document.getElementById(id).setAttribute("aria-disabled", whole);
  }
  showReading();
}

function look(from, to) {
  const span = Math.min(LENGTH, Math.max(SHORTEST, to - from));
  const middle = (from + to) / 2;
  view.from = Math.min(LENGTH - span, Math.max(0, span > to - from ? middle - span / 2 : from));
  view.to = view.from + span;
  draw();
}

function zoom(factor, around) {
  const span = view.to - view.from;
  const inside = around !== null && around >= view.from && around <= view.to;
  const fixed = inside ? around : (view.from + view.to) / 2;
  const from = fixed - ((fixed - view.from) / span) * span * factor;
  look(from, from + span * factor);
}

function move(share) {
  const span = view.to - view.from;
  look(view.from + span * share, view.to + span * share);
}

function reset() {
  look(0, LENGTH);
}

// What the cursor is at.

const readout = document.getElementById("readout");

function read(time, chart) {
  reading.time = time;
  reading.chart = chart;
  showReading();
}

function showReading() {
  for (const chart of charts) chart.showCursor(reading.time);
  readout.hidden = reading.time === null;
  readout.replaceChildren();
  if (reading.time !== null) fillReadout(reading.chart, reading.time);
}

function fillReadout(chart, time) {
  const { gpu } = chart;
  const at = lastAt(gpu.times, time);
  element("p", { class: "name" }, readout, gpu.name);
  element("p", { class: "faint" }, readout, `${durationText(time, 4)}, ${clockText(time)}`);
  const list = element("dl", {}, readout);
  const say = (name, text) => {
    element("dt", {}, list, name);
    element("dd", {}, list, text);
  };
  say("live", at < 0 ? "nothing yet" : sizeText(gpu.live[at].reduce((sum, size) => sum + size, 0)));
  if (at >= 0) say("held", knownSize(gpu.held[at]));
  if (at >= 0) say("limit", knownSize(gpu.limit[at]));
  for (const [, size, requests] of chart.refusalsNear(time).slice(0, 3)) {
    say("refused", sizeText(size) + (requests > 1 ? `, the largest of ${requests}` : ""));
  }
  if (at >= 0) fillBlocks(gpu, at, time);
}

function fillBlocks(gpu, at, time) {
  const narrow = window.innerWidth <= NARROW;
  const most = narrow ? LISTED : gpu.listed;
  const blocks = gpu.largest[at].slice(0, most).map((number) => gpu.blocks[number]);
  if (!blocks.length) return;
  const columns = [
    ["Size", "size", ([, , size]) => sizeText(size)],
    ["Address", "address", ([, , , address]) => address],
  ];
  if (gpu.blocks.some((block) => block[4] >= 0)) columns.push(["Thread", "thread", (block) => known(block[4])]);
  if (data.processes.length > 1) columns.push(["Process", "process", (block) => processText(block[6])]);
  if (gpu.blocks.some((block) => block[5] > 0)) columns.push(["Stream", "stream", (block) => streamText(block[5])]);
  columns.push(["Age", "age", ([begun]) => durationText(Math.max(0, time - begun), 1)]);
  if (!narrow && gpu.frames.length) columns.push(["Python", "python", (block) => gpu.frames[block[7]] || "–"]);
  const table = element("table", {}, readout);
  const several = blocks.length > 1;
  element("caption", {}, table, several ? `The ${blocks.length} largest live blocks` : "The largest live block");
  const head = element("tr", {}, element("thead", {}, table));
  for (const [name, kind] of columns) element("th", { scope: "col", class: kind }, head, name);
  const body = element("tbody", {}, table);
  for (const block of blocks) {
    const row = element("tr", {}, body);
    for (const [, kind, text] of columns) element("td", { class: kind }, row, text(block));
  }
}

function known(number) {
  return number < 0 ? "–" : String(number);
}

function processText(number) {
  return data.processes[number] || `file ${number + 1}`;
}

function streamText(stream) {
  return stream < 0 ? "–" : stream === 0 ? "0" : "0x" + stream.toString(16);
}

// Beside the pointer, on the side that has room; a narrow window has it at its foot or head, away from the finger.
function place(x, y) {
  const narrow = window.innerWidth <= NARROW;
  readout.style.left = narrow ? "" : "0px";
  readout.style.top = narrow ? "" : "0px";
  readout.classList.toggle("above", narrow && y > window.innerHeight * 0.55);
  if (narrow) return;
  const { offsetWidth: width, offsetHeight: height } = readout;
  const left = x + 18 + width < window.innerWidth - 8 ? x + 18 : x - 18 - width;
  readout.style.left = `${Math.max(8, left)}px`;
  readout.style.top = `${Math.max(8, Math.min(y - 20, window.innerHeight - height - 8))}px`;
}

function placeBeside(chart) {
  const box = chart.svg.getBoundingClientRect();
  place(box.left + chart.x(reading.time), box.top + MARGIN.top);
}

// Mouse, pen and fingers.

const fingers = new Map(); // by pointer: where it is, and which time it holds
let drag = null; // where a mouse began to select

function xIn(chart, event) {
  return event.clientX - chart.svg.getBoundingClientRect().left;
}

function select(from, to) {
  for (const chart of charts) chart.showSelection(from, to);
}

function press(chart, event) {
  if (event.pointerType === "mouse" && event.button !== 0) return;
  const time = chart.time(xIn(chart, event));
  chart.holder.setPointerCapture(event.pointerId);
  if (event.pointerType === "touch") {
    fingers.set(event.pointerId, { x: xIn(chart, event), time });
    if (fingers.size === 2) read(null, null);
    if (fingers.size === 1) pointAt(chart, event);
  } else {
    drag = { x: xIn(chart, event), time };
  }
}

function pointAt(chart, event) {
  read(chart.time(xIn(chart, event)), chart);
  place(event.clientX, event.clientY);
}

function glide(chart, event) {
  if (fingers.size > 1 && fingers.has(event.pointerId)) {
    fingers.get(event.pointerId).x = xIn(chart, event);
    pinch(chart);
    return;
  }
  if (event.pointerType === "touch" && !fingers.has(event.pointerId)) return;
  pointAt(chart, event);
  if (drag) select(drag.time, reading.time);
}

// The times that two fingers hold stay under them.
function pinch(chart) {
  const [a, b] = [...fingers.values()].sort((one, other) => one.time - other.time);
  const apart = Math.max(10, b.x - a.x);
  const scale = Math.max(1, b.time - a.time) / apart;
  const from = a.time - (a.x - MARGIN.left) * scale;
  look(from, from + chart.width * scale);
}

function release(chart, event) {
  fingers.delete(event.pointerId);
  if (!drag) return;
  const { x, time } = drag;
  drag = null;
  select(0, 0);
  const end = xIn(chart, event);
  if (Math.abs(end - x) >= FEW) look(Math.min(time, chart.time(end)), Math.max(time, chart.time(end)));
}

function cancel(event) {
  fingers.delete(event.pointerId);
  drag = null;
  select(0, 0);
}

function leave(event) {
  if (event.pointerType !== "touch" && !drag) read(null, null);
}

// The keyboard.

function step(chart, way) {
  const { times } = chart.gpu;
  const at = reading.time === null ? lastAt(times, view.from) : lastAt(times, reading.time);
  let next = at + way;
  while (times[next] === reading.time) next += way;
  const time = times[Math.min(times.length - 1, Math.max(0, next))];
  if (time < view.from || time > view.to) {
    const span = view.to - view.from;
    look(time - span / 2, time + span / 2);
  }
  readout.setAttribute("aria-live", "polite");
  read(time, chart);
  placeBeside(chart);
}

function actionOf(chart, key) {
  return {
    ArrowLeft: () => step(chart, -1),
    ArrowRight: () => step(chart, 1),
    PageUp: () => move(-0.5),
    PageDown: () => move(0.5),
    Home: () => read(view.from, chart),
    End: () => read(view.to, chart),
    "+": () => zoom(0.5, reading.time),
    "=": () => zoom(0.5, reading.time),
    "-": () => zoom(2, reading.time),
    0: reset,
  }[key];
}

function pressKey(chart, event) {
  const action = event.ctrlKey || event.metaKey || event.altKey ? undefined : actionOf(chart, event.key);
  if (!action) return;
  event.preventDefault();
  action();
  if (reading.time !== null) placeBeside(chart);
}

function escape(event) {
  if (event.key !== "Escape") return;
  if (drag) {
    drag = null;
    select(0, 0);
  } else {
    read(null, null);
    reset();
  }
}

// A trackpad's pinch.
function wheel(chart, event) {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoom(Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 100), chart.time(xIn(chart, event)));
}

for (const chart of charts) {
  const { holder } = chart;
  holder.addEventListener("pointerdown", (event) => press(chart, event));
  holder.addEventListener("pointermove", (event) => glide(chart, event));
  holder.addEventListener("pointerup", (event) => release(chart, event));
  holder.addEventListener("pointercancel", cancel);
  holder.addEventListener("pointerleave", leave);
  holder.addEventListener("dblclick", reset);
  holder.addEventListener("keydown", (event) => pressKey(chart, event));
  holder.addEventListener("blur", () => read(null, null));
  holder.addEventListener("wheel", (event) => wheel(chart, event), { passive: false });
}
const actions = {
  in: () => zoom(0.5, null),
  out: () => zoom(2, null),
  earlier: () => move(-0.5),
  later: () => move(0.5),
  reset,
};
for (const [id, action] of Object.entries(actions)) document.getElementById(id).addEventListener("click", action);
document.addEventListener("keydown", escape);
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest(".chart")) read(null, null);
});
new ResizeObserver(draw).observe(document.querySelector("main"));
draw();
