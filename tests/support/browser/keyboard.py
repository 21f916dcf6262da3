"""Walks over a page by Tab, as those do who use no mouse."""

from dataclasses import dataclass

from support.browser.browser import Page

__all__ = ["Walk", "walked"]

_MOST_STEPS = 500

_NUMBER_ALL = """
(() => {
  // Of buttons of which one is chosen, Tab reaches that one; arrows go to the others.
  const wanted = "a[href], button, summary, select, textarea, input:not([type=radio]), "
    + "input[type=radio]:checked, [tabindex='0']";
  window.controls = [...document.querySelectorAll(wanted)]
    .filter((it) => it.checkVisibility() && !it.disabled);
  window.unfocused = window.controls.map(looks);
  document.activeElement.blur();
  return window.controls.length;

  function looks(it) {
    const inner = it.querySelector(":scope > rect");
    const own = getComputedStyle(it);
    return [own.outlineStyle, own.outlineWidth, inner && getComputedStyle(inner).stroke].join();
  }
})()
"""
_WHERE = """
(() => {
  const it = document.activeElement;
  if (it === document.body) return null;
  const place = window.controls.indexOf(it);
  const inner = it.querySelector(":scope > rect");
  const own = getComputedStyle(it);
  const looks =
    [own.outlineStyle, own.outlineWidth, inner && getComputedStyle(inner).stroke].join();
  const box = it.getBoundingClientRect();
  const isInView = box.bottom > 0 && box.top < innerHeight;
  return [place, looks !== window.unfocused[place], isInView];
})()
"""


@dataclass(frozen=True, slots=True)
class Walk:
    """What Tab has come to, in its order."""

    controls: int
    """How many things there are to come to."""
    places: tuple[int, ...]
    """Which of them it came to, by their order on the page; -1: something else."""
    unseen: tuple[int, ...]
    """Those that did not show that they had the focus, or were out of view."""


def walked(page: Page) -> Walk:
    """Press Tab from the top of *page* until it leaves it; raises AssertionError if not ever."""
    controls = int(page.evaluate(_NUMBER_ALL))
    places: list[int] = []
    unseen: list[int] = []
    for _ in range(_MOST_STEPS):
        page.press("Tab")
        where = page.evaluate(_WHERE)
        if where is None:
            return Walk(controls, tuple(places), tuple(unseen))
        place, is_shown, is_in_view = where
        places.append(place)
        if not (is_shown and is_in_view):
            unseen.append(place)
    raise AssertionError(f"Tab goes on after {_MOST_STEPS} steps")
