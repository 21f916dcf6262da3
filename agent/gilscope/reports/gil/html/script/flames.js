/* The two flame graphs, linked: what one is zoomed into is what the other shows. */

const ENDS = [
  { name: "waiters", index: 0, filtered: (name) => `Only what ${name} delayed` },
  { name: "holders", index: 1, filtered: (name) => `Only what ${name} waited for` },
];

function prepareFlames(section, facts, listeners) {
  const { data } = facts;
  const wholeNs = data.edges.reduce((sum, edge) => sum + edge[2], 0);
  const inverted = section.querySelector(".invert");
  const known = new Map();
  let isInverted = false;

  function path(edge, end) {
    const stack = edge[end.index];
    if (!known.has(stack)) known.set(stack, pathOf(data, stack, isInverted));
    return known.get(stack);
  }

  const views = ENDS.map((end) => {
    const figure = section.querySelector(`figure.${end.name}`);
    const view = { end, chip: figure.querySelector(".chip") };
    view.graph = flameGraph(
      figure,
      facts,
      wholeNs,
      () => filter(otherOf(view), view),
      () => otherOf(view).graph.reset(),
    );
    view.chip.querySelector("button").addEventListener("click", () => otherOf(view).graph.reset());
    return view;
  });

  function otherOf(view) {
    return views[1 - views.indexOf(view)];
  }

  /* Shows in *view* what belongs to the frame that *other* is zoomed into. */
  function filter(view, other) {
    const selected = other.graph.selection();
    const edges = data.edges.filter((edge) => isBelow(path(edge, other.end), selected.path));
    const isAsBefore = view.graph.show(edges.map((edge) => [path(edge, view.end), edge[2]]));
    const isFiltered = selected.path.length > 0;
    view.chip.hidden = !isFiltered;
    if (isFiltered) {
      const ns = edges.reduce((sum, edge) => sum + edge[2], 0);
      view.chip.firstChild.textContent =
        `${view.end.filtered(selected.name)}: ${timeLost(ns)}, ${share(ns, wholeNs)}`;
    }
    if (!isAsBefore) filter(other, view);
  }

  inverted.addEventListener("click", () => {
    for (const view of views) view.graph.reset();
    isInverted = !isInverted;
    known.clear();
    inverted.setAttribute("aria-pressed", String(isInverted));
    for (const view of views) filter(view, otherOf(view));
  });
  listeners.push((wanted) => {
    for (const view of views) view.graph.mark(wanted);
  });
  for (const view of views) filter(view, otherOf(view));
}
