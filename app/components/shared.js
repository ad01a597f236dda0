// What the pieces share: typed arrays out of frames, the page's theme, colour tables, the two events.

const VIEW_EVENT = "attention-explorer:view";
const HOVER_EVENT = "attention-explorer:hover";
const DECADES = 4;
const THIN_SPACE = "\u202f"; // narrow, and no line ends at it
const LONGEST_WORD = 24;

/** One instance per mounted root: Streamlit calls the module again on new data and on a theme switch. */
function piece(Class) {
  const instances = new WeakMap();
  return (component) => {
    const root = component.parentElement;
    let instance = instances.get(root);
    if (!instance) {
      instance = new Class(root);
      instances.set(root, instance);
    }
    const call = (instance.calls = (instance.calls ?? 0) + 1);
    instance.receive(component);
    return () => {
      // Streamlit also runs the clean-up of a call that was overtaken while loading: keep what is newer.
      if (instance.calls !== call) return;
      instance.stop();
      instances.delete(root);
    };
  };
}

/** The base of the three: keeps data, view and theme, listens on the window, tells others of hovers. */
class Piece {
  constructor(root) {
    this.root = root;
    this.aborter = new AbortController();
    const options = { signal: this.aborter.signal };
    window.addEventListener(VIEW_EVENT, (event) => this.heardView(event.detail), options);
    window.addEventListener(HOVER_EVENT, (event) => this.heardHover(event.detail), options);
  }

  receive({ data, setTriggerValue }) {
    this.pick = (value) => setTriggerValue("pick", value);
    this.theme = readTheme(this.root.host ?? this.root);
    const fresh = data !== this.data;
    this.data = data;
    this.view = window.attentionExplorer?.views.get(data.channel) ?? this.view;
    this.dress();
    this.stale = true;
    if (fresh) this.load(data);
    if (this.view) this.show();
  }

  heardView({ channel }) {
    if (!this.data || channel !== this.data.channel) return;
    this.view = window.attentionExplorer.views.get(channel);
    this.show();
  }

  heardHover(hover) {
    const own = !this.data || hover.source === this.data.channel;
    if (own || hover.group !== this.data.group || !this.view) return;
    this.follow(hover);
  }

  follow() {}

  /** Tell the others which query or key is pointed at; null where none is. */
  tell(query, key) {
    const detail = { source: this.data.channel, group: this.data.group, query, key };
    window.dispatchEvent(new CustomEvent(HOVER_EVENT, { detail }));
  }

  dress() {
    const frame = this.root.querySelector(".piece");
    frame.toggleAttribute("data-dark", this.theme.dark);
    for (const name of ["accent", "masked", "hatch"]) frame.style.setProperty(`--ae-${name}`, this.theme[name]);
  }

  stop() {
    this.aborter.abort();
    this.resizer?.disconnect();
  }
}

/** The one column of a frame, as the typed array it was packed from. */
function column(table) {
  return table ? table.getChildAt(0).toArray() : null;
}

/** Eight cells a byte, first cell highest, as numpy's packbits has them; null means all is visible. */
function seen(bits, index) {
  return bits === null || ((bits[index >> 3] >> (7 - (index & 7))) & 1) === 1;
}

function element(tag, className, parent, attributes = {}) {
  const node = document.createElement(tag);
  node.className = className;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  parent?.append(node);
  return node;
}

/** A word from the reader: literal, and apart from the direction of what surrounds it. */
function word(text, parent) {
  const node = element("bdi", "word", parent);
  node.textContent = text;
  return node;
}

/** The word, cut to what leaves room for the number beside it. */
function brief(text) {
  if (text.length <= LONGEST_WORD) return text;
  const letters = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
  return letters.length <= LONGEST_WORD ? text : `${letters.slice(0, LONGEST_WORD - 1).join("")}…`;
}

/** One decimal, as app.phrases.percent has it: nothing rounds to 0 or to 100 that is neither. */
function percent(value, digits = 1) {
  const [step, least] = [1 / 10 ** digits, 0.5 / 10 ** (digits + 2)];
  let number = (value * 100).toFixed(digits);
  if (value <= 0) number = "0";
  else if (value >= 1) number = "100";
  else if (value < least) number = `<${step.toFixed(digits)}`;
  else if (value >= 1 - least) number = `>${(100 - step).toFixed(digits)}`;
  return `${number}${THIN_SPACE}%`;
}

/** What each key does to a place in a table: how far down and across. */
function moves(rows, columns) {
  return {
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1],
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    Home: [0, -columns],
    End: [0, columns],
    PageUp: [-rows, 0],
    PageDown: [rows, 0],
  };
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** A bar of all colours, one pixel high, to be stretched. */
function drawScale(canvas, colours) {
  const image = new ImageData(256, 1);
  new Uint32Array(image.data.buffer).set(colours.map(packed));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** Where a value lies on the colour scale, 0 to 1; the logarithm spans four decades below the largest. */
function position(value, largest, log) {
  if (!(largest > 0) || !(value > 0)) return 0;
  const part = value / largest;
  return Math.min(1, log ? Math.max(0, 1 + Math.log10(part) / DECADES) : part);
}

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgb(colour) {
  probe.clearRect(0, 0, 1, 1);
  probe.fillStyle = "#000";
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data.subarray(0, 3)];
}

function luminance(colour) {
  const [red, green, blue] = colour.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function mixed(from, to, share) {
  return from.map((part, index) => Math.round(part + (to[index] - part) * share));
}

const css = (colour) => `rgb(${colour.join(" ")})`;

function readTheme(host) {
  const style = getComputedStyle(host);
  const page = rgb(style.getPropertyValue("--st-background-color").trim() || "#ffffff");
  const ink = rgb(style.getPropertyValue("--st-text-color").trim() || "#1c2024");
  const dark = luminance(page) < 0.2;
  const colours = PALETTE[dark ? "dark" : "light"];
  return { ...colours, page, ink, dark, font: style.getPropertyValue("--st-font").trim() || "sans-serif" };
}

/** 256 colours along the theme's scale. */
function scaleColours(theme) {
  const stops = theme.stops.map(([at, colour]) => [at, rgb(colour)]);
  return Array.from({ length: 256 }, (_, step) => {
    const at = step / 255;
    const next = Math.max(1, stops.findIndex(([end]) => end >= at));
    const [[start, from], [end, to]] = [stops[next - 1], stops[next]];
    return mixed(from, to, (at - start) / (end - start));
  });
}

/** A colour as one little-endian RGBA number, to be written into image data whole. */
const packed = ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;

/** For each of `length` pixels that show cells from `start` on, the first cell and the one past the last. */
function ranges(length, start, cellsPerPixel, count) {
  const from = new Int32Array(length);
  const to = new Int32Array(length);
  for (let pixel = 0; pixel < length; pixel++) {
    const first = Math.min(count - 1, Math.max(0, Math.floor(start + pixel * cellsPerPixel + 1e-9)));
    from[pixel] = first;
    to[pixel] = Math.min(count, Math.max(first + 1, Math.ceil(start + (pixel + 1) * cellsPerPixel - 1e-9)));
    // A pixel on the edge of two large cells belongs to the first; only small cells share one.
    if (cellsPerPixel < 1) to[pixel] = first + 1;
  }
  return { from, to };
}

function pixelRatio() {
  return Math.min(3, window.devicePixelRatio || 1);
}
