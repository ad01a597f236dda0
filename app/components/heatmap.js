// The map of one head: pointing, zooming, choosing. Hover text is read from the weights themselves.

class Heatmap extends HeatmapDrawing {
  constructor(root) {
    super(root);
    this.frame = element("div", "piece heatmap", root, { "data-testid": "heatmap-piece" });
    this.stage = element("div", "stage", this.frame);
    this.axes = element("canvas", "axes", this.stage, { "aria-hidden": "true" });
    this.plot = element("div", "plot", this.stage);
    this.canvas = element("canvas", "picture", this.plot, { tabindex: "0", role: "application", "data-testid": "heatmap" });
    this.bands = {};
    for (const name of ["rowPick", "columnPick", "rowHover", "columnHover"]) {
      this.bands[name] = element("div", `band ${name}`, this.plot);
    }
    this.reset = element("button", "reset", this.stage, { type: "button", "data-testid": "heatmap-reset" });
    this.reset.textContent = "whole map";
    this.tip = element("div", "tip", this.stage, { "data-testid": "heatmap-tip", "aria-hidden": "true" });
    this.buildFoot();
    this.cell = null;
    this.fingers = new Map();
    this.listen();
    this.resizer = new ResizeObserver(() => this.view && this.frame.clientWidth !== this.laidOut && this.show());
    this.resizer.observe(this.frame);
  }

  buildFoot() {
    this.foot = element("div", "foot", this.frame);
    this.caption = element("div", "caption", this.foot, { "data-testid": "heatmap-caption", "aria-live": "polite" });
    this.key = element("div", "key soft", this.foot, { "data-testid": "heatmap-key" });
    this.low = element("span", "", this.key);
    this.bar = element("canvas", "bar", this.key, { width: "256", height: "1", "aria-hidden": "true" });
    this.high = element("span", "", this.key);
    this.maskKey = element("span", "mask-key", this.key);
    this.maskKey.textContent = "masked";
    this.poolKey = element("span", "", this.key, { "data-testid": "heatmap-pooled" });
    this.poolKey.textContent = "max-pooled for display";
  }

  load(data) {
    this.weights = column(data.weights);
    this.visible = column(data.visible ?? null);
    this.rows = data.queries.length;
    this.columns = data.keys.length;
    this.rowLargest = new Uint16Array(this.rows);
    for (let row = 0; row < this.rows; row++) {
      let largest = 0;
      for (let at = row * this.columns; at < (row + 1) * this.columns; at++) {
        if (this.weights[at] > largest) largest = this.weights[at];
      }
      this.rowLargest[row] = largest;
    }
    this.largest = this.rowLargest.reduce((one, other) => Math.max(one, other), 0);
    this.window = { x: 0, y: 0, zoom: 1 };
    this.cell = null;
    this.named = { row: null, column: null };
  }

  show() {
    const look = `${this.view.scale} ${this.view.log} ${this.frame.clientWidth}`;
    if (this.stale || look !== this.look) {
      this.colours = scaleColours(this.theme);
      this.layOut();
      this.colourTable();
      this.draw();
      this.drawKey();
      [this.stale, this.look] = [false, look];
    }
    this.select();
  }

  // ---- pointing and choosing

  listen() {
    const options = { signal: this.aborter.signal, passive: true, capture: true };
    window.addEventListener("wheel", (event) => this.noteWheel(event), options);
    this.canvas.addEventListener("wheel", (event) => this.wheeled(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.pressed(event));
    this.canvas.addEventListener("pointermove", (event) => this.dragged(event));
    for (const name of ["pointerup", "pointercancel"]) this.canvas.addEventListener(name, (event) => this.lifted(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.dragging || this.choose(this.at(event)));
    this.canvas.addEventListener("dblclick", () => this.move({ x: 0, y: 0, zoom: 1 }));
    this.canvas.addEventListener("keydown", (event) => this.typed(event));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.reset.addEventListener("click", () => this.move({ x: 0, y: 0, zoom: 1 }));
  }

  /** A scroll that began elsewhere goes on scrolling the page when the map slides under the pointer. */
  noteWheel(event) {
    const now = event.timeStamp;
    if (now - (this.lastWheel ?? -1000) > 250) this.wheelIsOurs = event.composedPath().includes(this.canvas);
    this.lastWheel = now;
  }

  wheeled(event) {
    const out = event.deltaY > 0;
    if ((!this.wheelIsOurs && !event.ctrlKey) || (out && this.window.zoom === 1)) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoomAt(event, Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)));
  }

  pressed(event) {
    this.fingers.set(event.pointerId, event);
    this.dragging = false;
    this.grabbed = { x: event.clientX, y: event.clientY, window: this.window };
    this.canvas.setPointerCapture(event.pointerId);
  }

  dragged(event) {
    if (this.fingers.has(event.pointerId)) {
      const before = [...this.fingers.values()];
      this.fingers.set(event.pointerId, event);
      if (before.length === 2) return this.pinched(before, [...this.fingers.values()]);
      if (this.panned(event)) return undefined;
    }
    if (event.pointerType !== "touch") this.point(this.at(event), event);
    return undefined;
  }

  panned(event) {
    const [x, y] = [event.clientX - this.grabbed.x, event.clientY - this.grabbed.y];
    if (this.window.zoom === 1) return false;
    if (Math.hypot(x, y) > 4) this.dragging = true;
    if (!this.dragging) return false;
    const { window } = this.grabbed;
    this.move({ zoom: window.zoom, x: window.x - x / this.step.x, y: window.y - y / this.step.y });
    this.point(null);
    return true;
  }

  pinched(before, after) {
    const spread = ([one, other]) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const between = (name) => (after[0][name] + after[1][name]) / 2;
    this.dragging = true;
    this.zoomAt({ clientX: between("clientX"), clientY: between("clientY") }, spread(after) / (spread(before) || 1));
  }

  lifted(event) {
    this.fingers.delete(event.pointerId);
    for (const finger of this.fingers.values()) this.grabbed = { x: finger.clientX, y: finger.clientY, window: this.window };
  }

  choose(cell) {
    if (!cell || !this.view) return;
    this.view = { ...this.view, ...cell };
    this.select();
    this.pick({ row: cell.row, column: cell.column });
  }

  point(cell, event = null, tell = true) {
    if (!this.view) return;
    if (event && cell && cell.row === this.cell?.row && cell.column === this.cell.column) {
      this.float(event);
      return;
    }
    this.cell = cell;
    this.outline(this.bands.rowHover, "y", cell?.row);
    this.outline(this.bands.columnHover, "x", cell?.column);
    this.nameAxes(cell ?? this.view);
    this.say();
    this.float(event);
    const [row, column] = [cell?.row ?? null, cell?.column ?? null];
    if (tell && (row !== this.told?.row || column !== this.told?.column)) this.tell(row, column);
    if (tell) this.told = { row, column };
  }

  /** Another piece points at a query, a key or both. */
  follow({ query, key }) {
    const row = query !== null && query < this.rows ? query : null;
    const column = key !== null && key < this.columns ? key : null;
    this.cell = row !== null && column !== null ? { row, column } : null;
    this.outline(this.bands.rowHover, "y", row);
    this.outline(this.bands.columnHover, "x", column);
    this.nameAxes(row === null && column === null ? this.view : { row, column });
    this.say();
  }

  select() {
    const { row, column } = this.view;
    this.outline(this.bands.rowPick, "y", row);
    this.outline(this.bands.columnPick, "x", column);
    this.point(this.cell, null, false);
    const size = `${this.rows} queries by ${this.columns} keys`;
    const help = "Arrow keys move, Enter picks, plus and minus zoom.";
    this.canvas.setAttribute("aria-label", `${this.view.label}: ${size}. ${help}`);
  }

  outline(band, side, index) {
    const count = side === "y" ? this.rows : this.columns;
    band.hidden = index === null || index === undefined || index >= count;
    if (band.hidden) return;
    const step = this.step[side];
    const thick = Math.max(step, 3);
    const start = (index - this.window[side]) * step - (thick - step) / 2;
    band.style[side === "y" ? "top" : "left"] = `${start}px`;
    band.style[side === "y" ? "height" : "width"] = `${thick}px`;
  }

  /** The names of the pointed or picked row and column stand out on the axes, thinned or not. */
  nameAxes({ row, column }) {
    if (row === this.named.row && column === this.named.column) return;
    this.named = { row, column };
    this.renaming ??= requestAnimationFrame(() => {
      this.renaming = undefined;
      this.drawAxes();
    });
  }

  /** "she → customer 29.4 %", as nodes, each word apart. */
  sentence({ row, column }) {
    const at = row * this.columns + column;
    const weight = this.weights[at] / 65535;
    const masked = weight === 0 && !seen(this.visible, at);
    const value = element("strong", "", null);
    value.textContent = masked ? "masked" : percent(weight);
    return [word(brief(this.data.queries[row])), " → ", word(brief(this.data.keys[column])), " ", value];
  }

  say() {
    const { row, column } = this.view;
    const inside = row !== null && column !== null && row < this.rows && column < this.columns;
    const cell = this.cell ?? (inside ? { row, column } : null);
    this.caption.replaceChildren(...(cell ? this.sentence(cell) : [hint()]));
    this.caption.classList.toggle("soft", !cell);
  }

  float(event) {
    this.tip.hidden = !event || !this.cell;
    if (this.tip.hidden) return;
    this.tip.replaceChildren(...this.sentence(this.cell));
    const box = this.stage.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const right = Math.min(x + 16, this.laidOut - this.tip.offsetWidth - 4);
    const above = y - this.tip.offsetHeight - 12;
    this.tip.style.transform = `translate(${Math.max(0, right)}px, ${above < 0 ? y + 20 : above}px)`;
  }

  typed(event) {
    const { row, column } = this.cell ?? { row: this.view.row ?? 0, column: this.view.column ?? 0 };
    const steps = moves(this.rows, this.columns);
    if (Object.hasOwn(steps, event.key)) this.walk(row, column, steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.choose({ row, column });
    else if (event.key === "+" || event.key === "=") this.zoomAt(this.middle(), 1.5);
    else if (event.key === "-") this.zoomAt(this.middle(), 1 / 1.5);
    else if (event.key === "0") this.move({ x: 0, y: 0, zoom: 1 });
    else if (event.key === "Escape") this.point(null);
    else return;
    event.preventDefault();
  }

  walk(row, column, [down, across]) {
    const cell = { row: clamp(row + down, 0, this.rows - 1), column: clamp(column + across, 0, this.columns - 1) };
    this.point(cell);
    this.reveal(cell);
  }

  /** Pan so that a cell reached by the keyboard is in sight. */
  reveal({ row, column }) {
    const { x, y, zoom } = this.window;
    const inside = (start, at, count) => Math.min(at, Math.max(start, at + 1 - count / zoom));
    const window = { zoom, x: inside(x, column, this.columns), y: inside(y, row, this.rows) };
    if (window.x !== x || window.y !== y) this.move(window);
  }

  middle() {
    const box = this.canvas.getBoundingClientRect();
    return { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
  }
}

function hint() {
  if (matchMedia("(hover: none)").matches) return "Tap a cell to read it; two fingers zoom.";
  return "Point at a cell to read it; the wheel zooms.";
}

export default piece(Heatmap);
