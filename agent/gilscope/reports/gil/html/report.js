/* The parts of the report that move: the table of pairs and the two flame graphs. Names come from
   the traced process, so that they are only ever set as text. */
(() => {
  "use strict";

  document.documentElement.classList.add("js");

  /* *part* is what the page says of one process. */
  function prepareProcess(part) {
    const data = JSON.parse(part.querySelector("script[type='application/json']").textContent);

    const SVG = "http://www.w3.org/2000/svg";
    const ORIGINS = ["app", "lib", "boot"]; // by the numbers of Origin
    const MOST_STACKS = 5;
    const FIRST_ROWS = 25;

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

    const timeLost = (ns) =>
      ns > 0 && ns < 1e6 ? duration(ns) : `${(ns / 1e9).toFixed(3)}\u00a0s`;

    function share(part, whole) {
      const value = (100 * part) / Math.max(1, whole);
      if (value > 0 && value < 0.01) return "< 0.01\u00a0%";
      const digits = value >= 1 || value === 0 ? value.toFixed(0) : Number(value.toPrecision(2));
      return `${digits}\u00a0%`;
    }

    function place(frame) {
      const [, file, line] = data.frames[frame];
      return `${data.files[file][0]}:${line}`;
    }

    const site = (frame) => `${data.frames[frame][0]} (${place(frame)})`;

    const words = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (text, wanted) => wanted.every((word) => text.includes(word));

    /* ---- Searching: every box holds the same words. ---- */

    const listeners = [];
    const boxes = [...part.querySelectorAll("input[type=search]")];
    for (const box of boxes) {
      box.addEventListener("input", () => {
        for (const other of boxes) other.value = box.value;
        for (const listener of listeners) listener(words(box.value));
      });
    }

    /* ---- The table of pairs. ---- */

    function preparePairs(table) {
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row, rank) => ({ row, rank, opened: null, text: null }));
      const found = part.querySelector(".pairs-found");
      const heads = [...table.tHead.rows[0].cells];
      const more = part.querySelector(".more");
      let wanted = [];
      let isWhole = rows.length <= FIRST_ROWS + 5;

      for (const entry of rows) {
        const cell = entry.row.cells[0];
        const button = element("button", "opener", cell.textContent);
        button.type = "button";
        button.setAttribute("aria-expanded", "false");
        cell.replaceChildren(button);
        entry.row.addEventListener("click", () => {
          if (String(getSelection()) === "") toggle(entry);
        });
      }

      function toggle(entry) {
        if (entry.opened) {
          entry.opened.remove();
          entry.opened = null;
        } else {
          entry.opened = stacksRow(data.pairs[entry.row.dataset.pair], heads.length);
          entry.row.after(entry.opened);
        }
        const isOpen = entry.opened !== null;
        entry.row.classList.toggle("open", isOpen);
        entry.row.cells[0].firstChild.setAttribute("aria-expanded", String(isOpen));
      }

      function sortBy(column) {
        const head = heads[column];
        const isNumber = head.classList.contains("n");
        const first = isNumber ? "descending" : "ascending";
        const second = isNumber ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? second : first;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const key = (entry) => {
          const cell = entry.row.cells[column];
          return isNumber ? Number(cell.dataset.v) : cell.textContent;
        };
        const compare = isNumber ? (a, b) => a - b : (a, b) => a.localeCompare(b);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => sign * compare(key(a), key(b)) || a.rank - b.rank);
        for (const entry of rows) body.append(...[entry.row, entry.opened].filter(Boolean));
        show();
      }

      function textOf(entry) {
        if (entry.text === null) {
          const frames = new Set();
          for (const edge of data.pairs[entry.row.dataset.pair]) {
            for (const stack of data.edges[edge].slice(0, 2)) {
              for (const frame of data.stacks[stack][1]) frames.add(frame);
            }
          }
          entry.text = [entry.row.textContent, ...[...frames].map(site)].join("\n").toLowerCase();
        }
        return entry.text;
      }

      function show() {
        const most = isWhole ? rows.length : FIRST_ROWS;
        let fitting = 0;
        let lost = 0;
        for (const entry of rows) {
          const fits = wanted.length === 0 || matches(textOf(entry), wanted);
          if (fits) {
            fitting += 1;
            lost += Number(entry.row.cells[3].dataset.v);
          }
          entry.row.hidden = !fits || fitting > most;
          if (entry.opened) entry.opened.hidden = entry.row.hidden;
        }
        more.hidden = fitting <= most;
        more.firstChild.textContent = `Show all ${fitting} pairs`;
        found.textContent = wanted.length
          ? `${fitting} of ${rows.length} pairs, ${timeLost(lost)}`
          : "";
      }

      heads.forEach((head, column) => {
        head.firstChild.addEventListener("click", () => sortBy(column));
      });
      more.firstChild.addEventListener("click", () => {
        isWhole = true;
        show();
      });
      listeners.push((query) => {
        wanted = query;
        show();
      });
      show();
    }

    function stacksRow(edges, columns) {
      const row = element("tr", "stacks");
      const cell = element("td");
      cell.colSpan = columns;
      edges.slice(0, MOST_STACKS).forEach((number, index) => {
        const [waiter, holder, ns, count] = data.edges[number];
        const part = element("div", "both");
        if (edges.length > 1) {
          const text = `${index + 1} of ${edges.length}: ${timeLost(ns)}, ${count} times`;
          part.append(element("p", "quiet", text));
        }
        part.append(stackList("waiter", "The waiter stood in", waiter));
        part.append(stackList("holder", "The holder stood in", holder));
        cell.append(part);
      });
      const rest = edges.slice(MOST_STACKS);
      if (rest.length) {
        const ns = rest.reduce((sum, number) => sum + data.edges[number][2], 0);
        const text = `${rest.length} more combinations of stacks, ${timeLost(ns)} together`;
        cell.append(element("p", "quiet", text));
      }
      row.append(cell);
      return row;
    }

    function stackList(end, heading, number) {
      const [state, frames] = data.stacks[number];
      const part = element("section", end);
      part.append(element("h3", "", heading));
      const list = element("ol", "stack");
      const note = state && element("li", "note", data.words[state]);
      if (note && state !== "cut") list.append(note);
      for (const frame of frames) {
        const [name, file, , origin, source] = data.frames[frame];
        const item = element("li", ORIGINS[origin]);
        item.append(element("b", "", name), " ");
        const where = element("span", "place", place(frame));
        where.title = data.files[file][1];
        item.append(where);
        if (source !== null) item.append(element("code", "source", source));
        list.append(item);
      }
      if (note && state === "cut") list.append(note);
      part.append(list);
      return part;
    }

    const table = part.querySelector("table.pairs");
    if (table) preparePairs(table);

    /* ---- Flame graphs. ---- */

    const ROW = 20;
    const LEAST_WIDTH = 0.5;
    const LEAST_REST = 2;
    const MOST_FRAMES = 3000;

    function tree(end) {
      const root = { name: "all", kind: "root", ns: 0, depth: 0, parent: null, size: 1 };
      root.children = new Map();
      for (const edge of data.edges) {
        const [state, frames] = data.stacks[edge[end]];
        const path = frames.toReversed();
        if (state === "cut") path.unshift(state);
        else if (state) path.push(state);
        let node = root;
        node.ns += edge[2];
        for (const key of path) {
          let child = node.children.get(key);
          if (!child) {
            const isFrame = typeof key === "number";
            child = {
              name: isFrame ? site(key) : data.words[key],
              kind: isFrame ? ORIGINS[data.frames[key][3]] : "note",
              ns: 0,
              depth: node.depth + 1,
              parent: node,
              children: new Map(),
            };
            node.children.set(key, child);
          }
          child.ns += edge[2];
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

    function together(parent, nodes) {
      return {
        name: `${nodes.length} narrower frames`,
        kind: "note rest",
        ns: nodes.reduce((sum, node) => sum + node.ns, 0),
        depth: parent.depth + 1,
        parent,
        children: [],
      };
    }

    /* What is wide enough to be seen, parents before their children, the widest if there are more. */
    function visible(focus, width) {
      const boxes = [{ node: focus, x: 0, width }];
      for (let next = 0; next < boxes.length; next += 1) {
        const box = boxes[next];
        const scale = box.width / Math.max(1, box.node.ns);
        const { children } = box.node;
        let x = box.x;
        let at = 0;
        for (; at < children.length && children[at].ns * scale >= LEAST_WIDTH; at += 1) {
          boxes.push({ node: children[at], x, width: children[at].ns * scale });
          x += boxes.at(-1).width;
        }
        const narrow = together(box.node, children.slice(at));
        if (narrow.ns * scale >= LEAST_REST) {
          boxes.push({ node: narrow, x, width: narrow.ns * scale, isRest: true });
        }
      }
      boxes.sort((a, b) => b.node.ns - a.node.ns || a.node.depth - b.node.depth);
      return boxes.slice(0, MOST_FRAMES);
    }

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

    function prepareFlame(figure) {
      const end = figure.classList.contains("waiters") ? 0 : 1;
      const root = tree(end);
      const canvas = figure.querySelector(".canvas");
      const detail = figure.querySelector(".detail");
      const found = figure.querySelector(".found");
      const reset = figure.querySelector(".reset");
      let focus = root;
      let wanted = [];
      let width = 0;
      let nodes = new Map();
      let charWidth = 7;

      function label(node) {
        return `${node.name}: ${timeLost(node.ns)}, ${share(node.ns, root.ns)} of the time lost`;
      }

      function isHit(node) {
        return wanted.length > 0 && node !== root && matches(node.name.toLowerCase(), wanted);
      }

      function rest(boxes) {
        const left = focus.size - boxes.filter((box) => !box.isRest).length;
        if (!left) return "";
        const frames = left === 1 ? "1 frame is" : `${left} frames are`;
        return ` ${frames} too narrow to be drawn at this width.`;
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

      function zoom(node, keepFocus) {
        focus = node;
        draw(keepFocus ? node : null);
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
        const target = next && [...nodes].find(([, box]) => box.node === next);
        if (!target) return;
        for (const group of nodes.keys()) group.setAttribute("tabindex", "-1");
        target[0].setAttribute("tabindex", "0");
        target[0].focus();
      }

      canvas.addEventListener("click", (event) => {
        const box = boxOf(event.target);
        if (box && !box.isRest) zoom(box.node, false);
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
        if (event.key === "Enter" || event.key === " ") {
          if (!box.isRest) zoom(box.node, true);
        } else if (event.key === "Escape") zoom(root, true);
        else if (event.key.startsWith("Arrow")) move(box.node, event.key);
        else return;
        event.preventDefault();
      });
      reset.addEventListener("click", () => zoom(root, true));

      listeners.push((query) => {
        wanted = query;
        draw(null);
        let ns = 0;
        const open = [root];
        while (open.length) {
          const node = open.pop();
          if (isHit(node)) ns += node.ns;
          else open.push(...node.children);
        }
        found.textContent = query.length
          ? `found in ${timeLost(ns)}, ${share(ns, root.ns)} of the time lost`
          : "";
      });
      new ResizeObserver(() => {
        if (canvas.clientWidth !== width) draw(null);
      }).observe(canvas);
      draw(null);
    }
    part.querySelectorAll("figure.flame").forEach(prepareFlame);
  }

  document.querySelectorAll("article.process").forEach(prepareProcess);
})();
