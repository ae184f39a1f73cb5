// SPDX-License-Identifier: Apache-2.0
// The page's data; figures and times as words, the ticks of axes, and elements. Times are microseconds since the
// recording's first row; -1 stands for what isn't known.
const data = JSON.parse(document.getElementById("data").textContent);

// Words.

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"];

function trimmed(value, digits) {
  const text = value.toFixed(digits);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function sizeText(bytes, digits = 2) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return trimmed(bytes, digits) + " " + UNITS[unit];
}

function knownSize(bytes) {
  return bytes < 0 ? "not recorded" : sizeText(bytes);
}

const SCALES = [[3_600_000_000, "h"], [60_000_000, "min"], [1_000_000, "s"], [1000, "ms"], [1, "µs"]];

function durationText(time, digits = 3) {
  const [unit, name] = SCALES.find(([unit]) => time >= unit) || SCALES[4];
  return trimmed(time / unit, digits) + " " + name;
}

function clockText(time) {
  const whole = Math.floor((data.start + time) / 1_000_000);
  const two = (number) => String(number).padStart(2, "0");
  const fraction = String(Math.floor(data.start + time) % 1_000_000).padStart(6, "0");
  const hours = Math.floor(whole / 3600) % 24;
  return `${two(hours)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}.${fraction} UTC`;
}

// Ticks.

function sizeTicks(top, most) {
  let step = 1;
  while (top / step > most) step *= 2;
  const ticks = [];
  for (let size = 0; size <= top; size += step) ticks.push(size);
  return ticks;
}

function roundSteps() {
  const steps = [];
  for (let power = 1; power <= 10_000_000; power *= 10) steps.push(power, 2 * power, 5 * power);
  const seconds = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  return [...steps.filter((step) => step <= 10_000_000), ...seconds.map((second) => second * 1_000_000)];
}

const STEPS = roundSteps();

function timeTicks(from, to, most) {
  const step = STEPS.find((step) => (to - from) / step <= most) || Math.ceil((to - from) / most / 86.4e9) * 86.4e9;
  const ticks = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) ticks.push(time);
  return { step, ticks };
}

// As many ticks as have room beside each other, and their texts.
function labelledTicks(from, to, width) {
  for (const room of width < 500 ? [62, 90, 120, 180] : [96, 130, 180]) {
    const { step, ticks } = timeTicks(from, to, width / room);
    const texts = ticks.map((time) => tickText(time, step, to));
    const longest = Math.max(0, ...texts.map((text) => text.length)) * 7 + 16;
    if (longest <= (step / (to - from)) * width) return ticks.map((time, at) => [time, texts[at]]);
  }
  return [];
}

function tickText(time, step, to) {
  const [unit, name] = SCALES.find(([unit]) => to >= 2 * unit || unit === 1);
  if (unit <= 1_000_000) {
    const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
    return trimmed(time / unit, digits) + " " + name;
  }
  const hours = Math.floor(time / 3_600_000_000);
  const minutes = String(Math.floor(time / 60_000_000) % 60).padStart(2, "0");
  const seconds = trimmed((time / 1_000_000) % 60, Math.max(0, Math.ceil(6 - Math.log10(step) - 1e-9)));
  const padded = seconds.replace(/^\d(?!\d)/, "0$&");
  return to >= 3_600_000_000 || hours ? `${hours}:${minutes}:${padded}` : `${Number(minutes)}:${padded}`;
}

// Elements.

function element(name, attributes, parent, text) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function shape(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
