/* The tree behind a flame graph, and what of it is drawn. */

const LEAST_WIDTH = 0.5;
const LEAST_REST = 2;
const MOST_FRAMES = 3000;
const FEW_ROWS = 12;
/* Rows further down that cover less than this part of the width are one box until one zooms in. */
const LEAST_COVERED = 0.05;

/* The levels of a stack from where the graph begins: its outermost frame, inverted its innermost.
   A level is a frame's number, or the state that says what is missing there. */
function pathOf(data, stack, isInverted) {
  const [state, frames] = data.stacks[stack];
  const path = frames.toReversed();
  if (state === "cut") path.unshift(state);
  else if (state) path.push(state);
  return isInverted ? path.reverse() : path;
}

/* The tree of *weighted*, which are [path, time]. */
function treeOf({ data, site }, weighted) {
  const root = { name: "all", kind: "root", key: null, ns: 0, depth: 0, parent: null };
  root.children = new Map();
  for (const [path, ns] of weighted) {
    let node = root;
    node.ns += ns;
    for (const key of path) {
      let child = node.children.get(key);
      if (!child) {
        const isFrame = typeof key === "number";
        child = {
          name: isFrame ? site(key) : data.words[key],
          kind: isFrame ? ORIGINS[data.frames[key][3]] : "note",
          key,
          ns: 0,
          depth: node.depth + 1,
          parent: node,
          children: new Map(),
        };
        node.children.set(key, child);
      }
      child.ns += ns;
      node = child;
    }
  }
  finish(root);
  return root;
}

function finish(node) {
  node.children = [...node.children.values()].sort((a, b) => b.ns - a.ns);
  node.size = 1;
  for (const child of node.children) node.size += finish(child);
  return node.size;
}

function ancestors(node) {
  const found = [];
  for (let at = node.parent; at; at = at.parent) found.unshift(at);
  return found;
}

/* The levels that lead to *node*, and back. */
const pathTo = (node) => [...ancestors(node), node].filter((it) => it.parent).map((it) => it.key);

function nodeAt(root, path) {
  let node = root;
  for (const key of path) {
    node = node && node.children.find((child) => child.key === key);
  }
  return node || null;
}

const isBelow = (path, beginning) => beginning.every((key, level) => path[level] === key);

/* A box in place of *nodes*, a click on which opens *opens*, if anything. */
function together(parent, nodes, name, opens) {
  return {
    name,
    kind: opens ? "note deeper" : "note rest",
    ns: nodes.reduce((sum, node) => sum + node.ns, 0),
    depth: parent.depth + 1,
    parent,
    opens,
    children: [],
  };
}

/* How deep a graph from *focus* on is drawn: to the last row that is worth its height. */
function lastRow(focus) {
  let row = [focus];
  let last = focus.depth;
  while (row.length) {
    const ns = row.reduce((sum, node) => sum + node.ns, 0);
    const { depth } = row[0];
    if (depth - focus.depth < FEW_ROWS || ns >= LEAST_COVERED * focus.ns) last = depth;
    row = row.flatMap((node) => node.children);
  }
  return last;
}

/* What is wide enough to be seen, parents before their children, the widest if there are more. */
function visible(focus, width) {
  const boxes = [{ node: focus, x: 0, width }];
  const last = lastRow(focus);
  for (let next = 0; next < boxes.length; next += 1) {
    const box = boxes[next];
    if (box.isRest) continue;
    const scale = box.width / Math.max(1, box.node.ns);
    const { children } = box.node;
    if (box.node.depth === last && children.length) {
      const count = box.node.size - 1;
      const deeper = together(box.node, children, `${count} deeper`, box.node);
      boxes.push({ node: deeper, x: box.x, width: deeper.ns * scale, isRest: true });
      continue;
    }
    let x = box.x;
    let at = 0;
    for (; at < children.length && children[at].ns * scale >= LEAST_WIDTH; at += 1) {
      boxes.push({ node: children[at], x, width: children[at].ns * scale });
      x += boxes.at(-1).width;
    }
    const rest = children.slice(at);
    const narrow = together(box.node, rest, `${rest.length} narrower frames`, null);
    if (narrow.ns * scale >= LEAST_REST) {
      boxes.push({ node: narrow, x, width: narrow.ns * scale, isRest: true });
    }
  }
  boxes.sort((a, b) => b.node.ns - a.node.ns || a.node.depth - b.node.depth);
  return boxes.slice(0, MOST_FRAMES);
}

/* The time below *root* in frames that are wanted; one below another does not count again. */
function foundNs(root, isHit) {
  let ns = 0;
  const open = [root];
  while (open.length) {
    const node = open.pop();
    if (isHit(node)) ns += node.ns;
    else open.push(...node.children);
  }
  return ns;
}
