// The token ribbon: shading, percentages and the line of the strongest.

class RibbonDrawing extends Piece {
  sources() {
    return this.view.direction === "by" ? this.keyChips : this.queryChips;
  }

  targets() {
    return this.view.direction === "by" ? this.queryChips : this.keyChips;
  }

  isSource(chip) {
    return this.sources()[chip.index] === chip;
  }

  isTarget(chip) {
    return this.targets()[chip.index] === chip;
  }

  show() {
    this.shades = shades(this.theme);
    for (const chip of [...this.queryChips, ...this.keyChips]) chip.paint = -1;
    // What is pointed at may have changed sides with the direction.
    if (this.pointed) this.active = this.isSource(this.pointed) ? this.pointed.index : null;
    this.mark();
    this.paint();
    this.describe(this.pointed);
    this.name();
    this.keepInSight();
    if (!this.view.fresh) return;
    this.view = { ...this.view, fresh: false };
    for (const line of new Set([this.queryChips, this.keyChips])) {
      const first = line[line === this.sources() ? (this.view.pinned ?? 0) : 0] ?? line[0];
      if (first) this.rove(first);
    }
  }

  /** Show the picked word of a long text, and its partner where there is room, whenever either is another one. */
  keepInSight() {
    const { pinned, partner, direction } = this.view;
    const picked = `${direction} ${pinned} ${partner}`;
    if (picked === this.picked) return;
    this.picked = picked;
    for (const chip of [this.targets()[partner ?? -1], this.sources()[pinned ?? -1]]) if (chip) this.reveal(chip);
  }

  mark() {
    const pin = this.sources()[this.view.pinned ?? -1];
    const partner = this.targets()[this.view.partner ?? -1];
    for (const chip of new Set([...this.queryChips, ...this.keyChips])) {
      chip.classList.toggle("pinned", chip === pin);
      chip.classList.toggle("partner", chip === partner);
      chip.setAttribute("aria-pressed", String(chip === pin));
    }
  }

  index(source, target) {
    return this.view.direction === "by" ? target * this.columns + source : source * this.columns + target;
  }

  weight(source, target) {
    return this.weights[this.index(source, target)] / 65535;
  }

  current() {
    const chosen = this.active ?? this.view.pinned;
    return chosen !== null && chosen !== undefined && chosen < this.sources().length ? chosen : null;
  }

  paint() {
    const source = this.current();
    const targets = this.targets();
    const shown = source === null ? [] : targets.map((_, target) => this.weight(source, target));
    const blind = source === null ? null : targets.map((_, target) => !seen(this.visible, this.index(source, target)));
    let largest = 1;
    if (this.view.scale === "row") {
      largest = 0;
      for (const weight of shown) if (weight > largest) largest = weight;
      if (largest < NOTHING) largest = 1;
    }
    const best = source === null ? [] : strongest(shown, Math.max(this.view.threshold, LEAST_RANKED));
    for (let target = 0; target < targets.length; target++) {
      const masked = source !== null && blind[target] && shown[target] === 0;
      this.shade(targets[target], source === null ? 0 : shown[target], largest, masked, best.includes(target));
    }
    if (targets !== this.sources()) for (const chip of this.sources()) this.shade(chip, 0, 1, false, false);
    this.signal(source);
    this.list(source, shown, blind, best);
  }

  /** Colour a chip, and number it where it has 1 % or more or is one of the strongest. */
  shade(chip, weight, largest, masked, listed) {
    const heavy = weight >= this.view.threshold && weight > 0;
    const level = heavy ? Math.round(position(weight, largest, this.view.log) * 255) : 0;
    const paint = masked ? 256 : level;
    if (chip.paint !== paint) {
      chip.classList.toggle("masked", masked);
      chip.style.backgroundColor = masked ? "" : this.shades[level].background;
      chip.style.color = masked ? "" : this.shades[level].ink;
      chip.paint = paint;
    }
    const label = listed || (heavy && !masked && weight >= 0.01) ? percent(weight) : "";
    if (chip.label !== label) chip.share.textContent = chip.label = label;
  }

  /** The chip whose weights are shown, when it is not the pinned one. */
  signal(source) {
    const chip = source === null || source === this.view.pinned ? null : this.sources()[source];
    if (this.signalled === chip) return;
    this.signalled?.classList.remove("source");
    chip?.classList.add("source");
    this.signalled = chip;
  }

  list(source, shown, blind, best) {
    this.lead.replaceChildren();
    if (source === null) this.lead.textContent = hint(this.view.direction);
    else {
      word(brief(this.sources()[source].token.text), this.lead);
      this.lead.append(` ${this.arrow()} `);
      if (!best.length) element("span", "soft", this.lead).textContent = nothing(blind, this.view);
    }
    this.items.forEach((item, rank) => {
      const target = best[rank];
      item.hidden = target === undefined;
      item.target = target;
      if (item.hidden) return;
      item.label.textContent = brief(this.targets()[target].token.text);
      item.share.textContent = percent(shown[target]);
      item.title = this.sentence(source, target);
      item.classList.toggle("partner", target === this.view.partner);
    });
  }

  sentence(source, target) {
    const [from, to] = [this.sources()[source].token.text, this.targets()[target].token.text];
    return `${from} ${this.arrow()} ${to} ${this.exact(source, target)}`;
  }

  exact(source, target) {
    const masked = !seen(this.visible, this.index(source, target));
    return masked ? "masked" : percent(this.weight(source, target));
  }

  arrow() {
    return this.view.direction === "by" ? "←" : "→";
  }

  /** Say exactly what is pointed at: the weight from the pinned word to it, and the model's own token. */
  describe(chip) {
    this.detail.replaceChildren();
    if (!chip) return;
    const pin = this.view.pinned;
    const related = this.isTarget(chip) && pin !== null && pin < this.sources().length;
    chip.title = [related && this.sentence(pin, chip.index), chip.token.hover].filter(Boolean).join("\n");
    if (related) {
      word(brief(this.sources()[pin].token.text), this.detail);
      this.detail.append(` ${this.arrow()} `);
      word(brief(chip.token.text), this.detail);
      this.detail.append(` ${this.exact(pin, chip.index)}  ·  `);
    }
    word(chip.token.hover, this.detail);
  }

  /** Outline the chip that a name in the line below, or a cell of a map, stands for. */
  echo(target) {
    const chip = target === null || target === undefined ? null : this.targets()[target];
    this.echoed?.classList.remove("echo");
    chip?.classList.add("echo");
    this.echoed = chip;
  }

  name() {
    const verb = this.view.direction === "by" ? "is attended by" : "attends to";
    this.sources().forEach((chip, source) => {
      const shown = this.targets().map((_, target) => this.weight(source, target));
      const best = strongest(shown, Math.max(this.view.threshold, 0.005));
      const list = best.map((target) => `${this.targets()[target].token.text} ${percent(shown[target])}`);
      const text = `${chip.token.text}${chip.token.unmet ? ", a word the model has never met" : ""}`;
      chip.setAttribute("aria-label", `${text}: ${list.length ? `${verb} ${list.join(", ")}` : "masked"}`);
    });
  }
}
