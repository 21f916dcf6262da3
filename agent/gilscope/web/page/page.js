"use strict";

// Refreshes the page every few seconds, and changes nothing of it that has not changed.

const main = document.querySelector("main");
const state = document.getElementById("state");
const problem = document.getElementById("problem");
const pause = document.getElementById("pause");
const everyMs = Number(main.dataset.everyMs);
const PATIENCE_MS = 10000;
// Firefox keeps a name and a password that the page was asked for with, and fetches no such URL.
const source = new URL("live", location.href);
source.username = "";
source.password = "";

let timer = 0;
let isPaused = false;
let isBusy = false;
let updates = 0;

function become(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((node, number) => {
    const there = before[number];
    if (!there) old.append(node);
    else if (there.isEqualNode(node)) return;
    else if (there.nodeName !== node.nodeName) there.replaceWith(node);
    else if (node.nodeType === Node.ELEMENT_NODE) {
      copyAttributes(there, node);
      become(there, node);
    } else there.data = node.data;
  });
  before.slice(after.length).forEach((node) => node.remove());
}

function copyAttributes(old, fresh) {
  for (const { name } of [...old.attributes]) {
    // What was opened by hand stays open.
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

async function update() {
  clearTimeout(timer);
  if (isBusy) return;
  isBusy = true;
  try {
    const answer = await fetch(source, {
      cache: "no-store",
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    const text = `<main>${await answer.text()}</main>`;
    const fresh = new DOMParser().parseFromString(text, "text/html");
    become(main, fresh.querySelector("main"));
    state.textContent = `of ${new Date().toLocaleTimeString()}, again every ${everyMs / 1000} s`;
    problem.hidden = true;
    main.classList.remove("stale");
    updates += 1;
  } catch (error) {
    if (problem.hidden) {
      problem.textContent =
        `There are no new figures (${error.message}). These are the last ones that came.`;
      problem.hidden = false;
    }
    main.classList.add("stale");
  } finally {
    isBusy = false;
    document.documentElement.dataset.updates = updates;
    again();
  }
}

function again() {
  clearTimeout(timer);
  // A hidden tab costs nothing.
  if (!isPaused && !document.hidden) timer = setTimeout(update, everyMs);
}

pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? "Resume" : "Pause";
  if (isPaused) again();
  else update();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !isPaused) update();
});
pause.hidden = false;
again();
