// Points in the cells of a grid, and what draws them pixel by pixel.

export const CELLS = 256;

export function sortedPoints(x, y) {
  const count = x.length;
  const cell = new Uint32Array(count);
  const starts = new Uint32Array(CELLS * CELLS + 1);
  const at = (value) => Math.min(CELLS - 1, Math.max(0, Math.floor(value * CELLS)));
  for (let i = 0; i < count; i += 1) {
    cell[i] = at(y[i]) * CELLS + at(x[i]);
    starts[cell[i] + 1] += 1;
  }
  for (let i = 0; i < CELLS * CELLS; i += 1) starts[i + 1] += starts[i];
  const next = starts.slice();
  const points = {
    count,
    starts,
    original: new Uint32Array(count),
    x: new Float32Array(count),
    y: new Float32Array(count),
  };
  for (let i = 0; i < count; i += 1) {
    const place = next[cell[i]];
    next[cell[i]] += 1;
    points.original[place] = i;
    points.x[place] = x[i];
    points.y[place] = y[i];
  }
  return points;
}

// Half widths of the rows of a disc, from its top to its bottom.
export function disc(radius) {
  const reach = Math.ceil(radius);
  const rows = new Int32Array(2 * reach + 1);
  for (let dy = -reach; dy <= reach; dy += 1)
    rows[dy + reach] = Math.floor(Math.sqrt(Math.max(0, (radius + 0.3) ** 2 - dy * dy)));
  return rows;
}

export function pixel(colour) {
  const value = Number.parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
