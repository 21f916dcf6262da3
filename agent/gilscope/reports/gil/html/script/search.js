/* Searching: every box of one process holds the same words, and means the same by them. */

/* What tells whether a text is wanted; null where nothing is asked for. Throws SyntaxError. */
function wantedBy(query, isRegex) {
  if (!query.trim()) return null;
  if (isRegex) {
    const expression = new RegExp(query, "iu");
    return (text) => expression.test(text);
  }
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}

/* Returns the list of those who want to hear of it: each is called with what `wantedBy` says. */
function prepareSearch(part) {
  const listeners = [];
  const boxes = [...part.querySelectorAll("input[type=search]")];
  const outputs = [...part.querySelectorAll("output")];
  const switches = [...part.querySelectorAll("input.regex")];

  function tell(query, isRegex) {
    let wanted = null;
    let isWrong = false;
    try {
      wanted = wantedBy(query, isRegex);
    } catch {
      isWrong = true;
    }
    for (const box of boxes) {
      box.value = query;
      box.setAttribute("aria-invalid", String(isWrong));
    }
    for (const other of switches) other.checked = isRegex;
    for (const listener of listeners) listener(wanted);
    if (isWrong) {
      for (const output of outputs) output.textContent = "this is not a regular expression";
    }
  }

  for (const box of boxes) {
    box.addEventListener("input", () => tell(box.value, switches.some((it) => it.checked)));
  }
  for (const one of switches) {
    one.addEventListener("change", () => tell(boxes[0].value, one.checked));
  }
  return listeners;
}
