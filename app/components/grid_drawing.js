// The grid of heads: one canvas for the pictures, frames and labels as elements above it.

const SMALLEST = 13;
const LARGEST = 84;
const WIDEST = 1.8;
const GUTTER = 52;
const HEADER = 42;
const DIGIT = 6.6; // width and height of a label, in CSS pixels
const LINE = 13;

class GridDrawing extends Piece {
  layOut() {
    this.laidOut = this.frame.clientWidth;
    this.gap = Math.max(this.layers, this.heads) > 16 ? 2 : 3;
    const across = (this.laidOut - GUTTER - this.gap) / this.heads - this.gap;
    const down = (this.data.maxHeight - HEADER - this.gap) / this.layers - this.gap;
    const height = Math.floor(clamp(Math.min(across, down), SMALLEST, LARGEST));
    const width = Math.floor(clamp(across, SMALLEST, Math.min(LARGEST, height * WIDEST)));
    this.cell = { width, height, stepX: width + this.gap, stepY: height + this.gap };
    const fieldWidth = this.heads * this.cell.stepX + this.gap;
    const fieldHeight = this.layers * this.cell.stepY + this.gap;
    Object.assign(this.scroller.style, {
      gridTemplateColumns: `${GUTTER}px ${fieldWidth}px`,
      gridTemplateRows: `${HEADER}px ${fieldHeight}px`,
      maxHeight: `${this.data.maxHeight}px`,
    });
    const widest = DIGIT * String(this.heads - 1).length + 2;
    this.number(this.top, this.heads, this.cell.stepX, widest, "left", 0);
    this.number(this.side, this.layers, this.cell.stepY, LINE, "top", this.data.firstLayer);
    this.size(fieldWidth, fieldHeight);
  }

  size(width, height) {
    this.ratio = pixelRatio();
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
  }

  number(axis, count, step, room, side, first) {
    const every = Math.ceil(room / step);
    const labels = Array.from({ length: count }, (_, index) => {
      const label = element("span", "", null);
      label.textContent = index % every ? "" : String(index + first);
      label.style[side] = `${this.gap + (index + 0.5) * step - this.gap / 2}px`;
      return label;
    });
    axis.replaceChildren(...labels);
    if (axis === this.top) element("em", "", axis).textContent = "head →";
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const head = Math.floor((event.clientX - box.left - this.gap / 2) / this.cell.stepX);
    const layer = Math.floor((event.clientY - box.top - this.gap / 2) / this.cell.stepY);
    return layer >= 0 && layer < this.layers && head >= 0 && head < this.heads ? { layer, head } : null;
  }

  place(node, cell) {
    node.hidden = !cell;
    if (!cell) return;
    Object.assign(node.style, {
      left: `${this.gap + cell.head * this.cell.stepX}px`,
      top: `${this.gap + cell.layer * this.cell.stepY}px`,
      width: `${this.cell.width}px`,
      height: `${this.cell.height}px`,
    });
  }

  draw() {
    const image = new ImageData(this.canvas.width, this.canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const table = Uint32Array.from(this.colours, packed);
    for (let layer = 0; layer < this.layers; layer++) {
      for (let head = 0; head < this.heads; head++) this.drawCell(pixels, table, layer, head);
    }
    this.canvas.getContext("2d").putImageData(image, 0, 0);
  }

  drawCell(pixels, table, layer, head) {
    const edge = (value) => Math.round(value * this.ratio);
    const left = edge(this.gap + head * this.cell.stepX);
    const top = edge(this.gap + layer * this.cell.stepY);
    const width = edge(this.gap + head * this.cell.stepX + this.cell.width) - left;
    const height = edge(this.gap + layer * this.cell.stepY + this.cell.height) - top;
    const stride = this.canvas.width;
    if (this.view.colour === "shade") {
      const colour = this.shadeColour(table, layer * this.heads + head);
      for (let y = top; y < top + height; y++) pixels.fill(colour, y * stride + left, y * stride + left + width);
      return;
    }
    const colours = this.levels(table, layer * this.heads + head);
    this.drawThumbnail(pixels, colours, { left, top, width, height, stride }, layer, head);
  }

  /** The largest byte under each pixel: a lone bright cell stays, however small the picture. */
  drawThumbnail(pixels, colours, { left, top, width, height, stride }, layer, head) {
    const start = (layer * this.heads + head) * this.rows * this.columns;
    const down = ranges(height, 0, this.rows / height, this.rows);
    const across = ranges(width, 0, this.columns / width, this.columns);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        let largest = 0;
        for (let row = down.from[y]; row < down.to[y]; row++) {
          const base = start + row * this.columns;
          for (let at = base + across.from[x]; at < base + across.to[x]; at++) {
            if (this.bytes[at] > largest) largest = this.bytes[at];
          }
        }
        pixels[(top + y) * stride + left + x] = colours[largest];
      }
    }
  }

  /** The colour of each of the 256 bytes of one thumbnail: the byte is the root of the relative weight. */
  levels(table, cell) {
    const largest = this.view.scale === "unit" ? this.data.largest[cell] : 1;
    return Uint32Array.from({ length: 256 }, (_, byte) => {
      return table[Math.round(position(largest * (byte / 255) ** 2, 1, this.view.log) * 255)];
    });
  }

  shadeColour(table, cell) {
    const value = this.view.shade[cell];
    if (value === null) return packed(rgb(this.theme.masked));
    const [low, high] = this.shadeEnds();
    return table[Math.round(clamp((value - low) / (high - low || 1), 0, 1) * 255)];
  }

  /** The numbers at the two ends of the colour scale. */
  shadeEnds() {
    return this.view.shadeRange ?? [0, Math.max(0, ...this.view.shade.filter((value) => value !== null))];
  }

  /** Say what the two ends of the scale stand for. */
  drawLegend() {
    const { colour, scale, log } = this.view;
    let ends = ["each map from 0", scale === "own" ? "to its own largest weight" : `to ${percent(1)}`];
    if (log && scale === "own") ends = ["each map from 1/10,000 of", "its own largest weight, log"];
    else if (log) ends = [`each map from ${percent(1e-4, 2)}`, `to ${percent(1)}, log`];
    if (colour === "shade") ends = this.shadeEnds().map((value) => (value === 0 ? "0" : this.format(value)));
    [this.low.textContent, this.high.textContent] = ends;
    this.maskKey.hidden = colour !== "shade" || !this.view.shade.includes(null);
    drawScale(this.bar, this.colours);
  }
}

function same(one, other) {
  return one?.layer === other?.layer && one?.head === other?.head;
}

function headName({ layer, head }, first) {
  return `layer ${layer + first}, head ${head}`;
}
