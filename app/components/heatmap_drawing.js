// The map of one head: layout and drawing. Colours come from 16-bit weights; where several share a
// pixel the largest is drawn.

const LEFT_MOST = 120;
const TOP_MOST = 96;
const TITLE = 22;
const UNDER = 76;
const CLOSEST = 4;
const SEAM = 13;
const TICK = 15;
const TILT = -Math.PI / 3.4;

class HeatmapDrawing extends Piece {
  // ---- where things are

  layOut() {
    this.laidOut = this.frame.clientWidth;
    this.ratio = pixelRatio();
    const pen = this.axes.getContext("2d");
    pen.font = this.fontOf(700);
    const narrow = this.laidOut < 520;
    const longest = (labels, most) => {
      let width = 24;
      for (const label of labels) width = Math.max(width, Math.min(most, pen.measureText(label.slice(0, 40)).width + 10));
      return Math.ceil(width);
    };
    const left = longest(this.data.queries, narrow ? 78 : LEFT_MOST) + TITLE;
    const top = Math.ceil(longest(this.data.keys, narrow ? 72 : TOP_MOST) * Math.sin(-TILT)) + TITLE + 8;
    const room = { x: this.laidOut - left - 14, y: Math.max(160, this.data.height - top - UNDER) };
    const cell = Math.min(room.x / this.columns, room.y / this.rows, 48);
    const side = (count) => Math.max(40, Math.floor(cell * count));
    this.place = { left, top, width: side(this.columns), height: side(this.rows) };
    this.fit(this.axes, this.laidOut, top + this.place.height + 2);
    this.fit(this.canvas, this.place.width, this.place.height);
    for (const [name, pixels] of Object.entries(this.place)) this.plot.style[name] = `${pixels}px`;
    // The scale stands under the map, not at the far edge of the page.
    this.foot.style.maxWidth = `${Math.max(left + this.place.width, 640)}px`;
    this.stage.style.height = `${top + this.place.height + 2}px`;
  }

  fit(canvas, width, height) {
    canvas.width = Math.round(width * this.ratio);
    canvas.height = Math.round(height * this.ratio);
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }

  fontOf(weight = "") {
    return `${weight} 14px ${this.theme.font}`.trim();
  }

  /** CSS pixels a cell takes. */
  get step() {
    const { width, height } = this.place;
    return { x: (width * this.window.zoom) / this.columns, y: (height * this.window.zoom) / this.rows };
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor(this.window.x + (event.clientX - box.left) / this.step.x);
    const row = Math.floor(this.window.y + (event.clientY - box.top) / this.step.y);
    return row >= 0 && row < this.rows && column >= 0 && column < this.columns ? { row, column } : null;
  }

  move(window) {
    const zoom = Math.min(this.mostZoom(), Math.max(1, window.zoom));
    const inside = (start, count) => Math.min(count - count / zoom, Math.max(0, start));
    this.window = { zoom, x: inside(window.x, this.columns), y: inside(window.y, this.rows) };
    this.later();
  }

  mostZoom() {
    return Math.max(1, Math.max(this.rows, this.columns) / CLOSEST);
  }

  zoomAt(event, factor) {
    const box = this.canvas.getBoundingClientRect();
    const held = { x: (event.clientX - box.left) / this.place.width, y: (event.clientY - box.top) / this.place.height };
    const zoom = Math.min(this.mostZoom(), Math.max(1, this.window.zoom * factor));
    const shift = 1 / this.window.zoom - 1 / zoom;
    this.move({ zoom, x: this.window.x + held.x * this.columns * shift, y: this.window.y + held.y * this.rows * shift });
  }

  later() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = undefined;
      this.draw();
      this.select();
    });
  }

  // ---- drawing

  draw() {
    const { width, height } = this.canvas;
    const image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const across = ranges(width, this.window.x, this.columns / this.window.zoom / width, this.columns);
    const down = ranges(height, this.window.y, this.rows / this.window.zoom / height, this.rows);
    const shared = (zoom) => this.columns > width * zoom || this.rows > height * zoom;
    // Zooming in may end the pooling: the words go, their room stays, and nothing jumps.
    this.poolKey.hidden = !shared(1);
    this.poolKey.style.visibility = shared(this.window.zoom) ? "visible" : "hidden";
    for (let y = 0; y < height; y++) this.drawRow(pixels, y, down.from[y], down.to[y], across);
    const pen = this.canvas.getContext("2d");
    pen.putImageData(image, 0, 0);
    if (Math.min(this.step.x, this.step.y) >= SEAM) this.seams(pen);
    this.drawAxes();
    this.reset.hidden = this.window.zoom === 1;
    this.canvas.style.touchAction = this.window.zoom === 1 ? "pan-y" : "none";
  }

  drawRow(pixels, y, firstRow, endRow, { from, to }) {
    const { weights, visible, columns, table } = this;
    const width = this.canvas.width;
    const scaled = this.view.scale === "row" ? this.rowScale(firstRow, endRow) : null;
    for (let x = 0; x < width; x++) {
      let largest = 0;
      let masked = visible !== null;
      for (let row = firstRow; row < endRow; row++) {
        const base = row * columns;
        for (let at = base + from[x]; at < base + to[x]; at++) {
          let weight = weights[at];
          if (scaled !== null) weight = Math.min(65535, Math.round(weight * scaled[row - firstRow]));
          if (weight > largest) largest = weight;
          if (masked && (weight > 0 || seen(visible, at))) masked = false;
        }
      }
      pixels[y * width + x] = masked ? this.hatched(x, y) : table[largest];
    }
  }

  rowScale(first, end) {
    return Float64Array.from({ length: end - first }, (_, row) => 65535 / (this.rowLargest[first + row] || 1));
  }

  hatched(x, y) {
    const period = Math.round(8 * this.ratio);
    return (x + y) % period < 1.5 * this.ratio ? this.hatchColour : this.maskedColour;
  }

  /** The colour of each 16-bit weight, looked up once per cell. */
  colourTable() {
    const top = this.top() * 65535;
    const steps = Uint32Array.from(this.colours, packed);
    this.maskedColour = packed(rgb(this.theme.masked));
    this.hatchColour = packed(rgb(this.theme.hatch));
    this.table = new Uint32Array(65536);
    for (let weight = 0; weight < 65536; weight++) {
      this.table[weight] = steps[Math.round(position(weight, top, this.view.log) * 255)];
    }
  }

  top() {
    return this.view.scale === "map" ? this.largest / 65535 : 1;
  }

  seams(pen) {
    pen.fillStyle = css(this.theme.page);
    const seam = Math.max(1, Math.round(this.ratio));
    const edge = (start, at, step) => Math.ceil((at - start) * step * this.ratio) - Math.ceil(seam / 2);
    for (let column = Math.ceil(this.window.x); column <= this.columns; column++) {
      pen.fillRect(edge(this.window.x, column, this.step.x), 0, seam, this.canvas.height);
    }
    for (let row = Math.ceil(this.window.y); row <= this.rows; row++) {
      pen.fillRect(0, edge(this.window.y, row, this.step.y), this.canvas.width, seam);
    }
  }

  drawAxes() {
    const pen = this.axes.getContext("2d");
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.axes.width, this.axes.height);
    pen.textBaseline = "middle";
    this.titles(pen);
    const { left, top, width, height } = this.place;
    const [rows, columns] = [this.data.queries, this.data.keys];
    const { x, y } = this.window;
    pen.textAlign = "right";
    this.label(pen, rows.length, y, this.step.y, height, TICK, this.named.row, (row, at) => {
      pen.fillText(shortened(pen, rows[row], left - TITLE - 4), left - 7, top + at);
    });
    pen.textAlign = "left";
    const room = (top - TITLE - 8) / Math.sin(-TILT);
    this.label(pen, columns.length, x, this.step.x, width, TICK + 3, this.named.column, (column, at) => {
      pen.save();
      pen.translate(left + at, top - 6);
      pen.rotate(TILT);
      const beside = (this.laidOut - left - at - 4) / Math.cos(TILT);
      pen.fillText(shortened(pen, columns[column], Math.min(room, beside)), 0, 0);
      pen.restore();
    });
  }

  titles(pen) {
    const { left, top, height } = this.place;
    pen.font = this.fontOf();
    pen.fillStyle = css(mixed(this.theme.page, this.theme.ink, 0.76));
    pen.textAlign = "left";
    pen.fillText(`${this.data.columnTitle} →`, left, 9);
    pen.save();
    pen.translate(10, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(`← ${this.data.rowTitle}`, 0, 0);
    pen.restore();
  }

  /** Write every n-th label, n the least that keeps them `apart` pixels, and always the named one. */
  label(pen, count, start, step, length, apart, named, write) {
    const every = thinning(apart / step);
    const place = (index) => (index + 0.5 - start) * step;
    const special = named === null || named === undefined || named >= count ? -1 : named;
    pen.font = this.fontOf();
    pen.fillStyle = css(this.theme.ink);
    for (let index = Math.ceil(start / every) * every; index < count && place(index) <= length; index += every) {
      const crowded = special >= 0 && Math.abs(place(index) - place(special)) < apart;
      if (place(index) >= 0 && !crowded) write(index, place(index));
    }
    if (special < 0 || place(special) < 0 || place(special) > length) return;
    pen.font = this.fontOf(700);
    pen.fillStyle = this.theme.accent;
    write(special, place(special));
  }

  drawKey() {
    drawScale(this.bar, this.colours);
    const named = { row: "row's largest", map: `largest ${percent(this.top())}`, unit: percent(1) };
    const top = named[this.view.scale];
    this.low.textContent = this.view.log ? "1/10,000" : "0";
    this.high.textContent = this.view.log ? `${top}, log` : top;
    this.maskKey.hidden = this.visible === null;
  }
}

/** The label, cut with an ellipsis where it would be wider than there is room. */
function shortened(pen, label, room) {
  if (pen.measureText(label).width <= room) return label;
  const letters = [...label];
  while (letters.length > 1 && pen.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
}

/** The next of 1, 2, 5, 10, 20, 50, … that is at least `least`. */
function thinning(least) {
  let power = 1;
  for (;;) {
    for (const step of [1, 2, 5]) if (step * power >= least) return step * power;
    power *= 10;
  }
}
