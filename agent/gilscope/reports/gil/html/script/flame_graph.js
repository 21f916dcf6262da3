/* One flame graph: drawn, zoomed, and walked with the keyboard. */

const ROW = 20;

/* Wide characters, as those of East Asia, count for two. */
function cut(text, room) {
  let used = 0;
  let kept = "";
  for (const char of text) {
    used += char.codePointAt(0) >= 0x1100 ? 2 : 1;
    if (used > room) return room < 4 ? "" : `${kept.slice(0, -1)}…`;
    kept += char;
  }
  return kept;
}

/* *onZoom* is called when another frame takes the whole width, *onEscape* when none can any more. */
function flameGraph(figure, facts, wholeNs, onZoom, onEscape) {
  const canvas = figure.querySelector(".canvas");
  const detail = figure.querySelector(".detail");
  const found = figure.querySelector(".found");
  const reset = figure.querySelector(".reset");
  let root = treeOf(facts, []);
  let focus = root;
  let wanted = null;
  let width = 0;
  let nodes = new Map();
  let charWidth = 7;

  function label(node) {
    return `${node.name}: ${timeLost(node.ns)}, ${share(node.ns, wholeNs)} of the time lost`;
  }

  function isHit(node) {
    return wanted !== null && node.parent !== null && wanted(node.name);
  }

  function rest(boxes) {
    const folded = boxes.filter((box) => box.node.opens);
    const left = folded.reduce(
      (sum, box) => sum - (box.node.parent.size - 1),
      focus.size - boxes.filter((box) => !box.isRest).length,
    );
    const narrow = left === 1 ? "1 frame is" : `${left} frames are`;
    const words = left > 0 ? ` ${narrow} too narrow to be drawn at this width.` : "";
    return folded.length ? `${words} Stacks that go deeper are open when zoomed into.` : words;
  }

  function foundWords() {
    if (wanted === null) return "";
    const ns = foundNs(root, isHit);
    return `found in ${timeLost(ns)}, ${share(ns, wholeNs)} of the time lost`;
  }

  function draw(selected) {
    width = canvas.clientWidth;
    const inside = visible(focus, width);
    const above = ancestors(focus).map((node) => ({ node, x: 0, width, isAbove: true }));
    const boxes = [...above, ...inside];
    const rows = 1 + Math.max(...boxes.map((box) => box.node.depth));
    const svg = shape("svg", {
      viewBox: `0 0 ${width} ${rows * ROW}`,
      role: "group",
      "aria-label": figure.querySelector("h3").textContent,
    });
    nodes = new Map();
    for (const box of boxes) svg.append(drawn(box));
    canvas.replaceChildren(svg);
    measure(svg);
    for (const [group, box] of nodes) {
      const room = Math.floor((box.width - 8) / charWidth);
      group.querySelector("text").textContent = cut(box.node.name, room);
    }
    const start = [...nodes].find(([, box]) => box.node === (selected || focus));
    start[0].setAttribute("tabindex", "0");
    if (selected) start[0].focus();
    reset.hidden = focus === root;
    detail.textContent = `${label(focus)}.${rest(inside)}`;
    found.textContent = foundWords();
  }

  function drawn(box) {
    const { node } = box;
    const classes = ["frame", node.kind];
    if (box.isAbove) classes.push("above");
    if (isHit(node)) classes.push("hit");
    const group = shape("g", {
      class: classes.join(" "),
      role: "button",
      tabindex: "-1",
      "aria-label": label(node),
    });
    const title = shape("title", {});
    title.textContent = label(node);
    const y = node.depth * ROW;
    group.append(
      title,
      shape("rect", { x: box.x, y, width: Math.max(box.width - 1, 0.5), height: ROW - 1 }),
      shape("text", { x: box.x + 4, y: y + 14 }),
    );
    nodes.set(group, box);
    return group;
  }

  function measure(svg) {
    const text = svg.querySelector("text");
    text.textContent = "0000000000";
    charWidth = text.getComputedTextLength() / 10 || charWidth;
  }

  /* The frame *node*, or what a box in place of several opens. */
  function zoom(node, keepFocus) {
    focus = node;
    draw(keepFocus ? node : null);
    onZoom();
  }

  function open(box, keepFocus) {
    if (!box.isRest) zoom(box.node, keepFocus);
    else if (box.node.opens) zoom(box.node.opens, keepFocus);
  }

  function boxOf(target) {
    const group = target.closest && target.closest("g.frame");
    return group ? nodes.get(group) : undefined;
  }

  function step(node, key) {
    const siblings = node.parent ? node.parent.children : [node];
    const at = siblings.indexOf(node);
    if (key === "ArrowUp") return node.parent;
    if (key === "ArrowDown") return node.children[0];
    return siblings[at + (key === "ArrowRight" ? 1 : -1)];
  }

  function move(node, key) {
    const next = step(node, key);
    const target =
      next && [...nodes].find(([, box]) => box.node === next || box.node.opens === next.parent);
    if (!target) return;
    for (const group of nodes.keys()) group.setAttribute("tabindex", "-1");
    target[0].setAttribute("tabindex", "0");
    target[0].focus();
  }

  canvas.addEventListener("click", (event) => {
    const box = boxOf(event.target);
    if (box) open(box, false);
  });
  for (const kind of ["mouseover", "focusin"]) {
    canvas.addEventListener(kind, (event) => {
      const box = boxOf(event.target);
      if (box) detail.textContent = `${label(box.node)}.`;
    });
  }
  canvas.addEventListener("keydown", (event) => {
    const box = boxOf(event.target);
    if (!box) return;
    if (event.key === "Enter" || event.key === " ") open(box, true);
    else if (event.key === "Escape") {
      if (focus === root) onEscape();
      else zoom(root, true);
    } else if (event.key.startsWith("Arrow")) move(box.node, event.key);
    else return;
    event.preventDefault();
  });
  reset.addEventListener("click", () => zoom(root, true));
  new ResizeObserver(() => {
    if (canvas.clientWidth !== width) draw(null);
  }).observe(canvas);

  return {
    /* Draws *weighted*, [path, time], and stays where it was zoomed to if that is among them, which
       it returns. */
    show(weighted) {
      const path = pathTo(focus);
      root = treeOf(facts, weighted);
      const before = nodeAt(root, path);
      focus = before || root;
      draw(null);
      return before !== null;
    },
    mark(query) {
      wanted = query;
      draw(null);
    },
    reset() {
      if (focus !== root) zoom(root, false);
    },
    selection: () => ({ path: pathTo(focus), name: focus.name, ns: focus.ns }),
  };
}
