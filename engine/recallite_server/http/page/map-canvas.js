// Points on a canvas: zoom, pan and the point under the pointer, for 100,000 points in a frame.
// Points lie sorted by the cells of a grid, so that drawing and searching touch what is near only.

import { CELLS, disc, pixel } from "./map-points.js";

// Coordinates have four decimals.
const MOST_ZOOM = 64;
const PICK_PX = 12;
// Up to so many points in view are drawn as smooth discs.
const FINE_POINTS = 3000;

export class PointMap {
  // `look` is {colours: ["#rrggbb" of each category], under: a category or -1, background, mark, labels: [{text, x, y}]}; `on` has hover(place), pick(place), moved().
  constructor(canvas, points, on) {
    this.canvas = canvas;
    this.points = points;
    this.on = on;
    this.category = new Uint8Array(points.count);
    this.hidden = new Uint8Array(256);
    this.marked = [];
    this.hollows = [];
    this.hovered = -1;
    this.zoom = 1;
    this.centre = [0.5, 0.5];
    this.context = canvas.getContext("2d", { alpha: false });
    this.pointers = new Map();
    this.waiting = 0;
    this.frames = 0;
    this.listen();
    this.resizes = new ResizeObserver(() => this.resize());
    this.resizes.observe(canvas);
  }

  close() {
    this.resizes.disconnect();
    cancelAnimationFrame(this.waiting);
  }

  // `categories` are in the order in which the points were given.
  paint(categories, look) {
    for (let i = 0; i < this.points.count; i += 1) this.category[i] = categories[this.points.original[i]];
    this.look = look;
    this.pixels = Uint32Array.from(look.colours, pixel);
    this.draw();
  }

  hide(category, hidden) {
    this.hidden[category] = hidden ? 1 : 0;
    this.draw();
  }

  sorted(places) {
    const wanted = new Set(places);
    const found = [];
    if (wanted.size)
      for (let i = 0; i < this.points.count; i += 1) if (wanted.has(this.points.original[i])) found.push(i);
    return found;
  }

  mark(places) {
    this.marked = this.sorted(places);
    this.draw();
  }

  // Points that are drawn hollow.
  hollow(places) {
    this.hollows = this.sorted(places);
    this.draw();
  }

  resize() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    if (this.image && this.canvas.width === width && this.canvas.height === height) return;
    Object.assign(this.canvas, { width, height });
    this.ratio = ratio;
    this.image = this.context.createImageData(width, height);
    this.buffer = new Uint32Array(this.image.data.buffer);
    this.draw();
  }

  get scale() {
    return Math.min(this.canvas.width, this.canvas.height) * 0.96 * this.zoom;
  }

  // Pixels of the canvas to the unit square.
  toUnit(px, py) {
    return [
      this.centre[0] + (px - this.canvas.width / 2) / this.scale,
      this.centre[1] + (py - this.canvas.height / 2) / this.scale,
    ];
  }

  toPixel(place) {
    const { x, y } = this.points;
    return [
      (x[place] - this.centre[0]) * this.scale + this.canvas.width / 2,
      (y[place] - this.centre[1]) * this.scale + this.canvas.height / 2,
    ];
  }

  // Calls `each(from, to)` for the runs of sorted points whose cells meet this part of the unit square.
  runs(left, top, right, bottom, each) {
    const cell = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value * CELLS)));
    if (right < 0 || bottom < 0 || left > 1 || top > 1) return;
    const [first, last] = [cell(left), cell(right)];
    for (let row = cell(top); row <= cell(bottom); row += 1) {
      const [from, to] = [this.points.starts[row * CELLS + first], this.points.starts[row * CELLS + last + 1]];
      if (to > from) each(from, to);
    }
  }

  draw() {
    if (this.waiting || !this.image || !this.look) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const began = performance.now();
    const { width, height } = this.canvas;
    const [left, top] = this.toUnit(0, 0);
    const [right, bottom] = this.toUnit(width, height);
    let visible = 0;
    this.runs(left, top, right, bottom, (from, to) => {
      visible += to - from;
    });
    this.radius = this.ratio * Math.min(5, Math.max(1, 90 / Math.sqrt(visible + 1) + Math.log2(this.zoom) * 0.35));
    if (visible <= FINE_POINTS) this.drawFine(left, top, right, bottom);
    else this.drawPixels(left, top, right, bottom);
    this.holes();
    this.rings();
    this.names();
    this.drawn_ms = performance.now() - began;
    this.frames += 1;
    this.on.moved?.();
  }

  // Names at their places, the first of those that would meet.
  names() {
    const { context, ratio, scale, look } = this;
    context.font = `600 ${12 * ratio}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.lineWidth = 4 * ratio;
    context.lineJoin = "round";
    const taken = [];
    for (const { text, x, y } of look.labels) {
      const half = context.measureText(text).width / 2;
      const middle = (x - this.centre[0]) * scale + this.canvas.width / 2;
      const px = Math.max(half + 4 * ratio, Math.min(this.canvas.width - half - 4 * ratio, middle));
      const py = (y - this.centre[1]) * scale + this.canvas.height / 2;
      if (taken.some((each) => Math.abs(each.py - py) < 16 * ratio && Math.abs(each.px - px) < each.half + half)) continue;
      taken.push({ px, py, half });
      context.strokeStyle = look.background;
      context.fillStyle = look.mark;
      context.strokeText(text, px, py);
      context.fillText(text, px, py);
    }
  }

  // A few points: smooth discs.
  drawFine(left, top, right, bottom) {
    const { context, points, category, hidden, scale, radius } = this;
    context.fillStyle = this.look.background;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const paths = this.look.colours.map(() => new Path2D());
    this.runs(left, top, right, bottom, (from, to) => {
      for (let i = from; i < to; i += 1) {
        if (hidden[category[i]]) continue;
        const [px, py] = [(points.x[i] - left) * scale, (points.y[i] - top) * scale];
        paths[category[i]].moveTo(px + radius, py);
        paths[category[i]].arc(px, py, radius, 0, 2 * Math.PI);
      }
    });
    for (let at = paths.length - 1; at >= 0; at -= 1) {
      context.fillStyle = this.look.colours[at];
      context.fill(paths[at]);
    }
  }

  // Many points: pixels written one by one, those of the category `under` below all others.
  drawPixels(left, top, right, bottom) {
    this.buffer.fill(pixel(this.look.background));
    const { under } = this.look;
    if (under >= 0) this.drawLayer(left, top, right, bottom, (category) => category === under);
    this.drawLayer(left, top, right, bottom, (category) => category !== under);
    this.context.putImageData(this.image, 0, 0);
  }

  drawLayer(left, top, right, bottom, shown) {
    const { buffer, points, category, hidden, pixels, scale } = this;
    const { width, height } = this.canvas;
    const rows = disc(this.radius);
    const reach = (rows.length - 1) / 2;
    this.runs(left, top, right, bottom, (from, to) => {
      for (let i = from; i < to; i += 1) {
        if (hidden[category[i]] || !shown(category[i])) continue;
        const px = Math.round((points.x[i] - left) * scale);
        const py = Math.round((points.y[i] - top) * scale);
        if (px < -reach || py < -reach || px >= width + reach || py >= height + reach) continue;
        const colour = pixels[category[i]];
        for (let dy = -reach; dy <= reach; dy += 1) {
          const y = py + dy;
          if (y < 0 || y >= height) continue;
          const half = rows[dy + reach];
          const end = y * width + Math.min(width - 1, px + half);
          for (let at = y * width + Math.max(0, px - half); at <= end; at += 1) buffer[at] = colour;
        }
      }
    });
  }

  holes() {
    const { context, radius, category, hidden } = this;
    context.fillStyle = this.look.background;
    context.beginPath();
    for (const place of this.hollows) {
      if (hidden[category[place]]) continue;
      const [px, py] = this.toPixel(place);
      context.moveTo(px + radius / 2, py);
      context.arc(px, py, radius / 2, 0, 2 * Math.PI);
    }
    context.fill();
  }

  rings() {
    const { context } = this;
    context.strokeStyle = this.look.mark;
    context.lineWidth = 2 * this.ratio;
    for (const place of this.hovered < 0 ? this.marked : [...this.marked, this.hovered]) {
      const [px, py] = this.toPixel(place);
      context.beginPath();
      context.arc(px, py, this.radius + 4 * this.ratio, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  // The nearest shown point to a pixel of the canvas, or -1.
  nearest(px, py) {
    const { points, category, hidden, scale } = this;
    const [x, y] = this.toUnit(px, py);
    const reach = (PICK_PX * this.ratio) / scale;
    let best = reach * reach;
    let found = -1;
    this.runs(x - reach, y - reach, x + reach, y + reach, (from, to) => {
      for (let i = from; i < to; i += 1) {
        const far = (points.x[i] - x) ** 2 + (points.y[i] - y) ** 2;
        if (far <= best && !hidden[category[i]]) {
          best = far;
          found = i;
        }
      }
    });
    return found;
  }

  // The shown points in view nearest to its middle, by the order in which they were given.
  inView(most) {
    const { points, category, hidden } = this;
    const [left, top] = this.toUnit(0, 0);
    const [right, bottom] = this.toUnit(this.canvas.width, this.canvas.height);
    const found = [];
    this.runs(left, top, right, bottom, (from, to) => {
      for (let i = from; i < to; i += 1) {
        const inside = points.x[i] >= left && points.x[i] <= right && points.y[i] >= top && points.y[i] <= bottom;
        if (inside && !hidden[category[i]])
          found.push([(points.x[i] - this.centre[0]) ** 2 + (points.y[i] - this.centre[1]) ** 2, points.original[i]]);
      }
    });
    found.sort((one, other) => one[0] - other[0]);
    return { count: found.length, places: found.slice(0, most).map(([, place]) => place) };
  }

  zoomBy(factor, px = this.canvas.width / 2, py = this.canvas.height / 2) {
    const [x, y] = this.toUnit(px, py);
    this.zoom = Math.min(MOST_ZOOM, Math.max(0.5, this.zoom * factor));
    this.moveTo(x - (px - this.canvas.width / 2) / this.scale, y - (py - this.canvas.height / 2) / this.scale);
  }

  moveTo(x, y) {
    this.centre = [Math.min(1.2, Math.max(-0.2, x)), Math.min(1.2, Math.max(-0.2, y))];
    this.draw();
  }

  moveBy(dx, dy) {
    this.moveTo(this.centre[0] + dx / this.scale, this.centre[1] + dy / this.scale);
  }

  reset() {
    this.zoom = 1;
    this.moveTo(0.5, 0.5);
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.ratio, (event.clientY - box.top) * this.ratio];
  }

  hover(place) {
    if (place === this.hovered) return;
    this.hovered = place;
    this.canvas.classList.toggle("over", place >= 0);
    this.draw();
    this.on.hover(
      place < 0 ? -1 : this.points.original[place],
      place < 0 ? null : this.toPixel(place).map((each) => each / this.ratio),
    );
  }

  listen() {
    const { canvas, pointers } = this;
    let travelled = 0;
    canvas.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const lines = event.deltaMode === 1 ? 16 : 1;
        this.zoomBy(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), ...this.at(event));
        this.hover(-1);
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, this.at(event));
      travelled = pointers.size > 1 ? Infinity : 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      const now = this.at(event);
      const before = pointers.get(event.pointerId);
      if (before === undefined) {
        this.hover(this.nearest(...now));
        return;
      }
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, now);
      if (other) {
        const far = (one) => Math.max(1, Math.hypot(one[0] - other[0], one[1] - other[1]));
        this.zoomBy(far(now) / far(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
        this.moveBy((before[0] - now[0]) / 2, (before[1] - now[1]) / 2);
        return;
      }
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled > 3 * this.ratio) {
        this.hover(-1);
        this.moveBy(before[0] - now[0], before[1] - now[1]);
      }
    });
    const up = (event) => {
      if (!pointers.delete(event.pointerId) || event.type !== "pointerup" || travelled > 3 * this.ratio) return;
      const place = this.nearest(...this.at(event));
      if (place < 0) this.hover(-1);
      else if (event.pointerType !== "mouse" && place !== this.hovered) this.hover(place);
      else this.on.pick(this.points.original[place]);
    };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, up);
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = Math.min(this.canvas.width, this.canvas.height) / 8;
    const does = {
      "+": () => this.zoomBy(1.4),
      "=": () => this.zoomBy(1.4),
      "-": () => this.zoomBy(1 / 1.4),
      0: () => this.reset(),
      ArrowLeft: () => this.moveBy(-step, 0),
      ArrowRight: () => this.moveBy(step, 0),
      ArrowUp: () => this.moveBy(0, -step),
      ArrowDown: () => this.moveBy(0, step),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    this.hover(-1);
    does();
  }
}
