// One key decides on a case. Without it the buttons do the same.
"use strict";

{
  const cases = [...document.querySelectorAll(".hy-case")];
  const focused = () => document.activeElement?.closest(".hy-case");
  const current = () => focused() ?? cases[0];

  function go(step) {
    const at = focused() ? cases.indexOf(focused()) + step : 0;
    cases[Math.min(Math.max(at, 0), cases.length - 1)]?.focus();
  }

  function buttonOf(key) {
    const own = current()?.querySelector(`button[data-key="${key}"]`);
    return own ?? document.querySelector(`.hy-undo button[data-key="${key}"]`);
  }

  document.addEventListener("keydown", (event) => {
    const typing = /^(input|textarea|select)$/i.test(event.target.tagName) || event.isComposing;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !/^[a-z]$/.test(event.key)) return;
    if (event.key === "n" || event.key === "p") return go(event.key === "n" ? 1 : -1);
    const button = buttonOf(event.key);
    if (!button || event.repeat) return;
    event.preventDefault();
    button.click();
  });

  for (const one of document.querySelectorAll(".hy-key, [data-keys-said]")) one.hidden = false;
  if (location.hash.startsWith("#case-")) {
    // what was decided on is gone: the next one stands in its place, or the last
    (document.getElementById(location.hash.slice(1)) ?? cases.at(-1))?.focus();
  }
}
