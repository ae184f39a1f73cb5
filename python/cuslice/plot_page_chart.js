// SPDX-License-Identifier: Apache-2.0
// One GPU's chart: areas of live memory by the blocks' size, what is held, the limit, and refusals.
const MARGIN = { top: 24, right: 14, bottom: 26, left: 70 };
const NARROW = 640; // pixels: the same as in the style
const APART = 36; // pixels between the sizes of refusals
const NEAR = 7; // pixels from the cursor to a refusal that it shows

// The last of these rising times that isn't later; -1 before the first.
function lastAt(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

class Chart {
  constructor(gpu, holder, number) {
    this.gpu = gpu;
    this.holder = holder;
    this.clip = `plot-${number}`;
    this.top = gpu.most * 1.04 || 1;
    this.svg = shape("svg", { "aria-hidden": "true" }, holder);
    holder.setAttribute("aria-roledescription", "chart");
    holder.setAttribute("aria-label", `${gpu.name}: memory over time. Arrow keys read it, plus and minus zoom.`);
  }

  // Sizes and scales, for the window as it is.
  measure() {
    const wide = Math.max(this.holder.clientWidth, 200);
    this.width = wide - MARGIN.left - MARGIN.right;
    this.height = wide < NARROW ? 190 : Math.min(280, Math.max(190, Math.round(window.innerHeight * 0.3)));
    const high = this.height + MARGIN.top + MARGIN.bottom;
    this.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    this.svg.setAttribute("height", high);
  }

  x(time) {
    return MARGIN.left + ((time - view.from) / (view.to - view.from)) * this.width;
  }

  // The same of a path's points, of which those out of sight stay near: dashes of a line as long as a whole recording in
  // microseconds take a browser seconds to draw.
  nearX(time) {
    return Math.min(MARGIN.left + this.width + 40, Math.max(MARGIN.left - 40, this.x(time))).toFixed(1);
  }

  time(x) {
    const share = Math.min(1, Math.max(0, (x - MARGIN.left) / this.width));
    return view.from + share * (view.to - view.from);
  }

  y(size) {
    return MARGIN.top + this.height * (1 - size / this.top);
  }

  draw() {
    this.measure();
    this.svg.replaceChildren();
    const clip = shape("clipPath", { id: this.clip }, shape("defs", {}, this.svg));
    shape("rect", { x: MARGIN.left, y: 0, width: this.width, height: this.height + MARGIN.top }, clip);
    this.drawAxes();
    const inside = shape("g", { "clip-path": `url(#${this.clip})` }, this.svg);
    this.drawAreas(inside);
    this.drawLine(inside, "held", this.gpu.held);
    this.drawLine(inside, "limit", this.gpu.limit);
    this.drawRefusals(inside);
    const hidden = { visibility: "hidden" };
    this.selection = shape("rect", { class: "select", y: MARGIN.top, height: this.height, ...hidden }, inside);
    const ends = { y1: MARGIN.top - 8, y2: MARGIN.top + this.height };
    this.cursor = shape("line", { class: "cursor", ...ends, ...hidden }, inside);
  }

  drawAxes() {
    const bottom = MARGIN.top + this.height;
    const right = MARGIN.left + this.width;
    for (const size of sizeTicks(this.top, this.height < 220 ? 4 : 6)) {
      const y = Math.round(this.y(size)) + 0.5;
      shape("line", { class: size ? "grid" : "axis", x1: MARGIN.left, x2: right, y1: y, y2: y }, this.svg);
      const text = size ? sizeText(size) : "0";
      shape("text", { x: MARGIN.left - 8, y: y + 4, "text-anchor": "end" }, this.svg, text);
    }
    for (const [time, text] of labelledTicks(view.from, view.to, this.width)) {
      const x = Math.round(this.x(time)) + 0.5;
      shape("line", { class: "grid", x1: x, x2: x, y1: MARGIN.top, y2: bottom }, this.svg);
      const anchor = right - x < 30 ? "end" : "middle";
      const at = anchor === "end" ? right + MARGIN.right - 2 : x;
      shape("text", { class: "time", x: at, y: bottom + 18, "text-anchor": anchor }, this.svg, text);
    }
  }

  // The moments that are in sight, and the one before them.
  visible() {
    const { times } = this.gpu;
    return [Math.max(0, lastAt(times, view.from)), Math.min(times.length - 1, lastAt(times, view.to) + 1)];
  }

  // A path in steps, of values by moment; it breaks off where one isn't known.
  steps(values) {
    const [begin, end] = this.visible();
    let path = "";
    let open = false;
    for (let at = begin; at <= end; at += 1) {
      const [x, known] = [this.nearX(this.gpu.times[at]), values(at) >= 0];
      if (open) path += `H${x}`;
      if (known) path += `${open ? "V" : `M${x},`}${this.y(values(at)).toFixed(1)}`;
      open = known;
    }
    return path;
  }

  // Stacked from the largest class upwards: each covers the sum of itself and all below it.
  drawAreas(inside) {
    const { classes, live, times } = this.gpu;
    const [begin, end] = this.visible();
    const base = this.y(0).toFixed(1);
    classes.forEach((name, from) => {
      const sums = (at) => live[at].slice(from).reduce((sum, size) => sum + size, 0);
      const left = this.nearX(times[begin]);
      const right = this.nearX(times[end]);
      const path = `M${left},${base}${this.steps(sums).replace(/^M[^,]*,/, "V")}H${right}V${base}Z`;
      shape("path", { class: `area class-${name}`, d: path }, inside);
    });
  }

  drawLine(inside, name, values) {
    shape("path", { class: name, d: this.steps((at) => values[at]) }, inside);
  }

  drawRefusals(inside) {
    const seen = this.gpu.refusals.filter(([time]) => time >= view.from && time <= view.to);
    const taken = [];
    for (const [time] of seen) {
      const x = this.x(time);
      shape("path", { class: "refused", d: `M${x - 5},${MARGIN.top - 8}h10l-5,8z` }, inside);
    }
    for (const [time, size] of [...seen].sort((a, b) => b[1] - a[1])) {
      const text = sizeText(size, 1);
      const half = text.length * 3.8;
      const right = MARGIN.left + this.width - half;
      const x = Math.min(right, Math.max(MARGIN.left + half, this.x(time)));
      if (taken.some((other) => Math.abs(other.x - x) < other.half + half + APART)) continue;
      taken.push({ x, half });
      shape("text", { class: "refused-text", x, y: MARGIN.top - 12, "text-anchor": "middle" }, this.svg, text);
    }
  }

  showCursor(time) {
    const seen = time !== null && time >= view.from && time <= view.to;
    this.cursor.setAttribute("visibility", seen ? "visible" : "hidden");
    if (!seen) return;
    this.cursor.setAttribute("x1", this.x(time));
    this.cursor.setAttribute("x2", this.x(time));
  }

  showSelection(from, to) {
    this.selection.setAttribute("visibility", from === to ? "hidden" : "visible");
    this.selection.setAttribute("x", this.x(Math.min(from, to)));
    this.selection.setAttribute("width", Math.abs(this.x(to) - this.x(from)));
  }

  refusalsNear(time) {
    return this.gpu.refusals.filter(([at]) => Math.abs(this.x(at) - this.x(time)) <= NEAR);
  }
}
