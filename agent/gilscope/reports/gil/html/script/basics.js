/* What all parts of the script need: elements, words, and what the page knows of one process. */

const SVG = "http://www.w3.org/2000/svg";
const ORIGINS = ["app", "lib", "boot"]; // by the numbers of Origin

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function shape(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/* To three digits, as the tables say it. */
function duration(ns) {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]) {
    if (ns >= unit - Math.floor(unit / 2000)) {
      return `${Number((ns / unit).toPrecision(3))}\u00a0${name}`;
    }
  }
  return "0\u00a0ns";
}

function timeLost(ns) {
  return ns > 0 && ns < 1e6 ? duration(ns) : `${(ns / 1e9).toFixed(3)}\u00a0s`;
}

function share(part, whole) {
  const value = (100 * part) / Math.max(1, whole);
  if (value > 0 && value < 0.01) return "< 0.01\u00a0%";
  const digits = value >= 1 || value === 0 ? value.toFixed(0) : Number(value.toPrecision(2));
  return `${digits}\u00a0%`;
}

/* What *part* of the page has embedded, and how its places are called. */
function factsOf(part) {
  const data = JSON.parse(part.querySelector("script[type='application/json']").textContent);

  function place(frame) {
    const [, file, line] = data.frames[frame];
    return `${data.files[file][0]}:${line}`;
  }

  const site = (frame) => `${data.frames[frame][0]} (${place(frame)})`;
  return { data, place, site };
}
