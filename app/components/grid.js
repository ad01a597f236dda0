// The grid of heads: pointing, choosing, and the words below it.

const NAMED = 3;
const FIRST = { layer: 0, head: 0 };

class Grid extends GridDrawing {
  constructor(root) {
    super(root);
    this.frame = element("div", "piece grid", root, { "data-testid": "grid-piece" });
    this.scroller = element("div", "scroller", this.frame);
    this.corner = element("div", "corner soft", this.scroller, { "aria-hidden": "true" });
    this.corner.textContent = "layer ↓";
    this.top = element("div", "top soft", this.scroller, { "aria-hidden": "true" });
    this.side = element("div", "side soft", this.scroller, { "aria-hidden": "true" });
    this.field = element("div", "field", this.scroller);
    this.canvas = element("canvas", "picture", this.field, { tabindex: "0", role: "application", "data-testid": "grid" });
    this.chosen = element("div", "chosen", this.field, { "data-testid": "grid-selected" });
    this.cursor = element("div", "cursor", this.field);
    this.legend = element("div", "legend soft", this.frame, { "data-testid": "grid-legend" });
    this.low = element("span", "", this.legend);
    this.legend.append(" ");
    this.bar = element("canvas", "bar", this.legend, { width: "256", height: "1", "aria-hidden": "true" });
    this.high = element("span", "", this.legend);
    this.maskKey = element("span", "mask-key", this.legend);
    this.maskKey.textContent = "masked";
    this.caption = element("div", "caption", this.frame, { "data-testid": "grid-caption" });
    this.ranking = element("div", "ranking", this.frame, { "data-testid": "grid-ranking" });
    this.speech = element("div", "unheard", this.frame, { "aria-live": "polite" });
    this.pointed = null;
    this.listen();
    this.resizer = new ResizeObserver(() => this.resized());
    this.resizer.observe(this.frame);
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.point(this.at(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => this.choose(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.typed(event));
    this.canvas.addEventListener("focus", () => {
      if (this.canvas.matches(":focus-visible")) this.point(this.selected() ?? FIRST, true);
    });
    this.canvas.addEventListener("blur", () => this.point(null));
    this.ranking.addEventListener("click", (event) => this.choose(event.target.closest(".item")?.cell ?? null));
    this.ranking.addEventListener("pointerover", (event) => this.point(event.target.closest(".item")?.cell ?? null));
    this.ranking.addEventListener("pointerleave", () => this.point(null));
  }

  load(data) {
    this.bytes = column(data.thumbs);
    [this.layers, this.heads, this.rows, this.columns] = data.shape;
    this.pointed = null;
    this.laidOut = null;
  }

  show() {
    const { colour, scale, log, shade, shadeRange } = this.view;
    const look = JSON.stringify([colour, scale, log, this.frame.clientWidth, colour === "shade" && [shade, shadeRange]]);
    if (this.stale || look !== this.look) {
      this.colours = scaleColours(this.theme);
      this.layOut();
      this.draw();
      this.drawLegend();
      [this.stale, this.look] = [false, look];
    }
    this.select();
    this.rank();
  }

  resized() {
    if (this.view && this.frame.clientWidth !== this.laidOut) this.show();
  }

  selected() {
    const { layer, head } = this.view;
    if (layer === null || head === null) return null;
    return layer < this.layers && head < this.heads ? { layer, head } : null;
  }

  select() {
    const cell = this.selected();
    this.place(this.chosen, cell);
    this.place(this.cursor, this.pointed);
    for (const [axis, index] of [[this.top, this.view.head], [this.side, this.view.layer]]) {
      axis.querySelectorAll("span").forEach((label, at) => label.classList.toggle("on", at === index));
    }
    this.say();
    const size = `${this.layers} layers of ${this.heads} heads`;
    const help = "Arrow keys move, Enter shows a head.";
    this.canvas.setAttribute("aria-label", `${size}; ${cell ? this.describe(cell) : this.view.note || "no single head"} is shown. ${help}`);
    if (!same(cell, this.revealed)) this.reveal(cell);
    this.revealed = cell;
  }

  point(cell, aloud = false) {
    if (!this.view || same(cell, this.pointed)) return;
    this.pointed = cell;
    this.place(this.cursor, cell);
    this.say();
    if (aloud) this.speech.textContent = this.describe(cell);
  }

  /** "layer 5, head 8: 29.4 % from she to customer", the words last, where an ellipsis may cut them. */
  say() {
    const { note, shadeTitle } = this.view;
    const cell = this.pointed ?? (note ? null : this.selected());
    this.caption.replaceChildren();
    if (!cell) {
      word(note, element("span", "note", this.caption));
      return;
    }
    const value = this.value(cell);
    const number = element("span", "number", this.caption);
    element("strong", "", number).textContent = headName(cell, this.data.firstLayer);
    if (!value) return;
    number.append(`: ${value} `);
    word(shadeTitle, element("span", "rest soft", this.caption));
  }

  describe(cell) {
    return cell ? [headName(cell, this.data.firstLayer), this.value(cell)].filter(Boolean).join(", ") : "none";
  }

  value(cell) {
    const value = this.view.shade?.[cell.layer * this.heads + cell.head];
    if (value === undefined) return "";
    return value === null ? "masked" : this.format(value);
  }

  format(value) {
    if (this.view.shadeUnit === "%") return percent(value);
    return `${Number(value.toPrecision(3))} ${this.view.shadeUnit}`.trim();
  }

  /** The heads with the three largest numbers, each a way to go there. */
  rank() {
    this.ranking.replaceChildren();
    this.ranking.hidden = !this.view.shade || !this.view.ranking;
    if (this.ranking.hidden) return;
    const order = this.view.shade.map((value, at) => [value, at]).filter(([value]) => value !== null);
    order.sort((one, other) => other[0] - one[0]);
    if (this.view.shadeTitle) word(`${this.view.shadeTitle}:`, this.ranking).classList.add("soft");
    for (const [value, at] of order.slice(0, NAMED)) this.rankItem(value, at);
  }

  rankItem(value, at) {
    this.ranking.append(" ");
    const cell = { layer: Math.floor(at / this.heads), head: at % this.heads };
    const item = element("button", "item", this.ranking, { type: "button", "data-testid": "grid-item" });
    item.cell = cell;
    item.title = headName(cell, this.data.firstLayer);
    item.append(`${cell.layer + this.data.firstLayer}.${cell.head} `);
    element("span", "soft", item).textContent = this.format(value);
  }

  choose(cell) {
    if (!cell) return;
    // Drawn at once; the page's answer comes as the next view.
    this.view = { ...this.view, ...cell, note: "" };
    this.select();
    this.pick({ layer: cell.layer, head: cell.head });
  }

  typed(event) {
    const cell = this.pointed ?? this.selected() ?? FIRST;
    const steps = moves(this.layers, this.heads);
    if (Object.hasOwn(steps, event.key)) this.step(cell, steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.choose(cell);
    else if (event.key === "Escape") this.point(null);
    else return;
    event.preventDefault();
  }

  step({ layer, head }, [down, across]) {
    const cell = { layer: clamp(layer + down, 0, this.layers - 1), head: clamp(head + across, 0, this.heads - 1) };
    this.point(cell, true);
    this.reveal(cell);
  }

  /** Scroll the grid, and only the grid, until the cell is in sight. */
  reveal(cell) {
    if (!cell) return;
    const box = this.scroller;
    const left = cell.head * this.cell.stepX;
    const top = cell.layer * this.cell.stepY;
    const room = { x: box.clientWidth - GUTTER - this.cell.stepX, y: box.clientHeight - HEADER - this.cell.stepY };
    box.scrollLeft = clamp(box.scrollLeft, left - room.x, left);
    box.scrollTop = clamp(box.scrollTop, top - room.y, top);
  }
}

export default piece(Grid);
