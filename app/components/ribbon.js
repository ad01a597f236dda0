// The token ribbon. Every hover is drawn from the weights already here; only a pick goes to Python.

const LONG = 160;
const HOLD_MS = 500;

class Ribbon extends RibbonDrawing {
  constructor(root) {
    super(root);
    this.frame = element("div", "piece ribbon", root, { "data-testid": "ribbon" });
    this.body = element("div", "body", this.frame);
    this.readout = element("div", "readout", this.frame, { "data-testid": "strongest", dir: "ltr" });
    this.active = null;
    this.pointed = null;
    this.buildReadout();
    this.listen();
  }

  // ---- building

  buildReadout() {
    this.lead = element("span", "lead", this.readout);
    this.items = Array.from({ length: STRONGEST }, () => {
      const item = element("button", "item", this.readout, { type: "button", "data-testid": "strongest-item" });
      item.label = word("", item);
      item.append(" ");
      item.share = element("span", "share", item);
      this.readout.append(" ");
      return item;
    });
    this.detail = element("span", "detail soft", this.readout, { "data-testid": "detail" });
  }

  load(data) {
    this.weights = column(data.weights);
    this.visible = column(data.visible ?? null);
    this.rows = data.queries.length;
    this.columns = (data.keys ?? data.queries).length;
    this.active = this.pointed = null;
    clearTimeout(this.holding);
    this.holding = undefined;
    const [words, scrolled] = [JSON.stringify([data.queries, data.keys]), this.body.scrollTop];
    this.body.replaceChildren();
    this.frame.classList.toggle("long", Math.max(this.rows, this.columns) > LONG);
    this.queryChips = this.buildLine(data.queries, "query", data.keys ? data.labels[0] : null);
    this.keyChips = data.keys ? this.buildLine(data.keys, "key", data.labels[1]) : this.queryChips;
    this.view = this.view && { ...this.view, fresh: true };
    if (words === this.words) this.body.scrollTop = scrolled;
    else this.picked = null;
    this.words = words;
  }

  buildLine(tokens, axis, label) {
    const line = element("div", "line", this.body, { "data-axis": axis });
    if (label) element("div", "axis soft", line).textContent = label;
    const box = element("div", "chips", line, { role: "toolbar", "aria-label": label ?? "tokens" });
    box.dir = direction(tokens);
    return tokens.map((token, index) => this.buildChip(token, axis, index, box));
  }

  buildChip(token, axis, index, box) {
    const chip = element("button", "chip", box, {
      type: "button",
      tabindex: "-1",
      "data-testid": "chip",
      "data-axis": axis,
      "data-index": index,
    });
    for (const mark of ["special", "padding", "glued", "generated", "unmet"]) chip.classList.toggle(mark, Boolean(token[mark]));
    word(token.text || "\u00a0", chip);
    chip.share = element("span", "share", chip, { "aria-hidden": "true", "data-testid": "percent" });
    Object.assign(chip, { token, axis, index, paint: -1 });
    // A space between the words, so that a copied sentence is a sentence.
    if (!token.glued) chip.before(" ");
    return chip;
  }

  // ---- events

  listen() {
    const over = (event) => event.pointerType !== "touch" && this.point(event.target.closest(".chip"));
    this.body.addEventListener("pointerover", over);
    this.body.addEventListener("pointerleave", () => this.point(null, true));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("focusin", (event) => this.focused(event.target.closest(".chip")));
    this.body.addEventListener("focusout", () => this.point(null, true));
    this.body.addEventListener("keydown", (event) => this.typed(event));
    this.body.addEventListener("pointerdown", (event) => this.held(event));
    for (const name of ["pointerup", "pointercancel", "pointermove"]) {
      this.body.addEventListener(name, (event) => this.released(event));
    }
    this.body.addEventListener("contextmenu", (event) => this.holding !== undefined && event.preventDefault());
    this.readout.addEventListener("click", (event) => this.partnered(event.target.closest(".item")?.target));
    this.readout.addEventListener("pointerover", (event) => this.echo(event.target.closest(".item")?.target));
    this.readout.addEventListener("pointerleave", () => this.echo(null));
    this.readout.addEventListener("focusin", (event) => this.echo(event.target.closest(".item")?.target));
    this.readout.addEventListener("focusout", () => this.echo(null));
  }

  /** Point at a chip: on the side that is asked it becomes the source, on the other it is only described. */
  point(chip, leaving = false) {
    if (!this.view || (!chip && !leaving) || chip === this.pointed) return;
    this.pointed = chip;
    this.active = chip && this.isSource(chip) ? chip.index : null;
    this.paint();
    this.describe(chip);
    const by = this.view.direction === "by";
    this.tell(by ? null : this.active, by ? this.active : null);
  }

  /** Another piece is pointed at: show the same query, or the same key where keys are asked. */
  follow({ query, key }) {
    const index = this.view.direction === "by" ? key : query;
    const inside = index !== null && index < this.sources().length;
    this.active = inside ? index : null;
    this.paint();
    if (inside) this.reveal(this.sources()[index]);
    this.echo(this.view.direction === "by" ? query : key);
  }

  focused(chip) {
    if (!chip) return;
    this.rove(chip);
    if (chip.matches(":focus-visible")) this.point(chip);
  }

  clicked(event) {
    const chip = event.target.closest(".chip");
    if (!chip || !this.view) return;
    if (this.heldLong) {
      this.heldLong = false;
      return;
    }
    const second = event.shiftKey || event.altKey || !this.isSource(chip);
    if (second) this.partnered(chip.index);
    else this.pinned(chip.index);
  }

  pinned(index) {
    this.view = { ...this.view, pinned: index };
    this.mark();
    this.paint();
    this.describe(this.pointed);
    this.pick({ pin: index });
  }

  partnered(index) {
    if (index === undefined || index === null) return;
    this.view = { ...this.view, partner: index };
    this.mark();
    this.pick({ partner: index });
  }

  held(event) {
    const chip = event.target.closest(".chip");
    this.heldLong = false;
    if (!chip || event.pointerType !== "touch" || !this.isTarget(chip)) return;
    this.holdAt = [event.clientX, event.clientY];
    this.holding = setTimeout(() => {
      this.heldLong = true;
      this.partnered(chip.index);
    }, HOLD_MS);
  }

  released(event) {
    if (this.holding === undefined) return;
    const moved = Math.hypot(event.clientX - this.holdAt[0], event.clientY - this.holdAt[1]);
    if (event.type === "pointermove" && moved < 10) return;
    clearTimeout(this.holding);
    this.holding = undefined;
  }

  typed(event) {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    const line = chip.axis === "query" ? this.queryChips : this.keyChips;
    const forward = chip.parentNode.dir === "rtl" ? "ArrowLeft" : "ArrowRight";
    const backward = forward === "ArrowLeft" ? "ArrowRight" : "ArrowLeft";
    const last = line.length - 1;
    const targets = { [forward]: chip.index + 1, [backward]: chip.index - 1, Home: 0, End: last };
    if (event.key in targets) this.goto(line[Math.max(0, Math.min(last, targets[event.key]))]);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") this.goto(nextRow(chip, line, event.key));
    else if (event.key === "Escape") this.point(null, true);
    else return;
    event.preventDefault();
  }

  goto(chip) {
    if (!chip) return;
    chip.focus();
    this.point(chip);
  }

  rove(chip) {
    const line = chip.axis === "query" ? this.queryChips : this.keyChips;
    for (const other of line) if (other.tabIndex === 0) other.tabIndex = -1;
    chip.tabIndex = 0;
  }

  /** Scroll a long ribbon, and only the ribbon, until the chip is in sight. */
  reveal(chip) {
    const { body } = this;
    if (body.scrollHeight <= body.clientHeight + 1) return;
    const room = body.clientHeight - chip.offsetHeight - 40;
    body.scrollTop = Math.min(chip.offsetTop - 12, Math.max(body.scrollTop, chip.offsetTop - room));
  }
}

export default piece(Ribbon);
