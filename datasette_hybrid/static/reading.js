// The keys of a memory that a search led to: what its links to other results do.
"use strict";

{
  const keys = { j: "a[rel=next]", k: "a[rel=prev]", Escape: "a[data-results]" };

  document.addEventListener("keydown", (event) => {
    const [element] = event.composedPath();
    const typing = element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName);
    const modified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (typing || modified || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const link = Object.hasOwn(keys, event.key) && document.querySelector(`.hy-back ${keys[event.key]}`);
    if (!link) return;
    event.preventDefault();
    link.click();
  });
}
