/* The parts of the report that move. Names come from the traced process, so that they are only ever
   set as text. */

document.documentElement.classList.add("js");

/* *part* is what the page says of one process. */
function prepareProcess(part) {
  const facts = factsOf(part);
  const listeners = prepareSearch(part);
  const table = part.querySelector("table.pairs");
  const flames = part.querySelector("section.flames");
  if (table) preparePairs(table, part, facts, listeners);
  if (flames) prepareFlames(flames, facts, listeners);
}

document.querySelectorAll("article.process").forEach(prepareProcess);
