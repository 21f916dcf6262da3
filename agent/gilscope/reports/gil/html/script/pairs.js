/* The table of pairs: sorted, searched, and opened to both stacks. */

const MOST_STACKS = 5;
const FIRST_ROWS = 25;

function preparePairs(table, part, facts, listeners) {
  const { data, site } = facts;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, rank) => ({ row, rank, opened: null, text: null }));
  const found = part.querySelector(".pairs-found");
  const heads = [...table.tHead.rows[0].cells];
  const more = part.querySelector(".more");
  let wanted = null;
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
      entry.opened = stacksRow(facts, data.pairs[entry.row.dataset.pair], heads.length);
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
      entry.text = [entry.row.textContent, ...[...frames].map(site)].join("\n");
    }
    return entry.text;
  }

  function show() {
    const most = isWhole ? rows.length : FIRST_ROWS;
    let fitting = 0;
    let lost = 0;
    for (const entry of rows) {
      const fits = wanted === null || wanted(textOf(entry));
      if (fits) {
        fitting += 1;
        lost += Number(entry.row.cells[3].dataset.v);
      }
      entry.row.hidden = !fits || fitting > most;
      if (entry.opened) entry.opened.hidden = entry.row.hidden;
    }
    more.hidden = fitting <= most;
    more.firstChild.textContent = `Show all ${fitting} pairs`;
    found.textContent = wanted
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

function stacksRow(facts, edges, columns) {
  const { data } = facts;
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
    part.append(stackList(facts, "waiter", "The waiter stood in", waiter));
    part.append(stackList(facts, "holder", "The holder stood in", holder));
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

function stackList({ data, place }, end, heading, number) {
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
