// What the ribbon computes without touching the page: order, wording, direction, colours.

const STRONGEST = 5;
const NOTHING = 0.0005; // a row whose largest weight is below it is next to nothing, and stays blank
const LEAST_RANKED = 1.5 / 65535; // what is sent as one step above 0 is next to nothing, and has no order
const STRONG_RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/g;
const LETTER = /\p{L}/gu;

function strongest(weights, least) {
  const best = [];
  for (let index = 0; index < weights.length; index++) {
    if (weights[index] < least) continue;
    if (best.length === STRONGEST && weights[index] <= weights[best[STRONGEST - 1]]) continue;
    let place = best.length;
    while (place > 0 && weights[best[place - 1]] < weights[index]) place--;
    best.splice(place, 0, index);
    if (best.length > STRONGEST) best.pop();
  }
  return best;
}

function nothing(blind, { direction, threshold }) {
  if (!blind.every(Boolean)) return threshold > LEAST_RANKED ? "nothing above the threshold" : "next to nothing";
  return direction === "by" ? "masked: no token sees this one" : "masked: this token sees nothing";
}

function hint(direction) {
  const what = direction === "by" ? "what attends to it" : "what it attends to";
  if (matchMedia("(hover: none)").matches) return `Tap a word to see ${what}.`;
  return `Point at a word to see ${what}; click to keep it.`;
}

/** Right to left where most letters are: the line then runs as the script does. */
function direction(tokens) {
  const text = tokens.filter((token) => !token.special).map((token) => token.text).join("");
  const letters = text.match(LETTER)?.length ?? 0;
  const rightToLeft = text.match(STRONG_RTL)?.length ?? 0;
  return rightToLeft * 2 > letters ? "rtl" : "ltr";
}

/** The chip nearest below or above, in a line that wraps. */
function nextRow(chip, line, key) {
  const down = key === "ArrowDown";
  const others = line.filter((other) => (down ? other.offsetTop > chip.offsetTop : other.offsetTop < chip.offsetTop));
  if (!others.length) return null;
  const tops = others.map((other) => other.offsetTop);
  const top = down ? Math.min(...tops) : Math.max(...tops);
  const middle = (node) => node.offsetLeft + node.offsetWidth / 2;
  const apart = (other) => Math.abs(middle(other) - middle(chip));
  return others.filter((other) => other.offsetTop === top).sort((a, b) => apart(a) - apart(b))[0];
}

/** 256 steps of accent over page, each with an ink that can be read on it (4.5 to 1 or better). */
function shades(theme) {
  const accent = rgb(theme.accent);
  return Array.from({ length: 256 }, (_, level) => {
    if (level === 0) return { background: "", ink: "" };
    const background = mixed(theme.page, accent, level / 255);
    const ink = [theme.ink, [255, 255, 255], [0, 0, 0]].find((choice) => contrast(choice, background) >= 4.5);
    return { background: css(background), ink: css(ink ?? theme.ink) };
  });
}
