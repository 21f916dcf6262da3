"""What can be asked of any page in a browser about how it looks, as JavaScript."""

__all__ = ["OVERFLOW", "TOO_FAINT"]

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""By how many pixels the page is wider than its window."""

# Relative luminance and contrast as WCAG 2 defines them. Backgrounds here are never transparent
# where a colour of their own matters, so that the nearest one that is set is the one that shows.
TOO_FAINT = """
(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = parts(colour).slice(0, 3).map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark, bright] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (bright + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (parts(colour)[3] !== 0) return colour;
    }
    return getComputedStyle(document.body).backgroundColor;
  };
  const told = [...document.querySelectorAll("td:not(.none), th, p, dt, dd, h1, h2, h3")]
    .filter((it) => it.textContent.trim())
    .map((it) => [it.textContent, getComputedStyle(it).color, behind(it)]);
  const drawn = [...document.querySelectorAll("g.frame:not(.note)")].map((it) => [
    it.getAttribute("aria-label"),
    getComputedStyle(it.querySelector("text")).fill,
    getComputedStyle(it.querySelector("rect")).fill,
  ]);
  const places = [...document.querySelectorAll(".site, .place, .quiet, .words, .outer")]
    .map((it) => [it.textContent, getComputedStyle(it).color, behind(it)]);
  return [...told, ...drawn, ...places]
    .map(([text, front, back]) => [contrast(front, back).toFixed(2), text, front, back])
    .filter(([ratio]) => ratio < 4.5).slice(0, 10);
})()
"""
"""The texts that are hard to read: contrast, words, colour, and the colour behind them."""
