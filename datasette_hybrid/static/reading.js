// A memory that a search led to: the way to the result before and after it, and the words that were
// found, marked. Without it there is the way back to the results.
"use strict";

{
  const back = document.querySelector("a[data-results]");
  const text = document.querySelector(".hy-text");
  let ways = { "-1": null, 1: null };

  async function page(href) {
    const response = await fetch(href, { headers: { Accept: "text/html" } });
    const found = new DOMParser().parseFromString(response.ok ? await response.text() : "", "text/html");
    return [...found.querySelectorAll(".hy-result, a.hy-next")];
  }

  // a private search has buttons in the place of links; its name is in this page's address
  const way = (result) => {
    const found = result?.querySelector("h2 a, h2 button");
    return found && (found.getAttribute("href") ?? found.getAttribute("formaction") + location.search);
  };
  const leadsHere = (result) => new URL(way(result) ?? "", back.href).pathname === location.pathname;

  async function look() {
    const found = await page(back.href);
    const results = found.filter((one) => one.matches(".hy-result"));
    const here = results.findIndex(leadsHere);
    if (here < 0) return; // it is found no more
    const further = found.find((one) => one.matches("a.hy-next"));
    ways["-1"] = way(results[here - 1]);
    ways[1] = way(results[here + 1]);
    if (!ways[1] && further) {
      ways[1] = way((await page(further.getAttribute("href"))).find((one) => one.matches(".hy-result")));
    }
    show(-1, "Previous result", "k");
    show(1, "Next result", "j");
    mark(new Set(results.flatMap((one) => [...one.querySelectorAll("mark")].map((m) => m.textContent.toLowerCase()))));
  }

  function show(step, words, key) {
    if (!ways[step]) return;
    const link = document.createElement("a");
    link.href = ways[step];
    link.rel = step < 0 ? "prev" : "next";
    link.textContent = words;
    link.setAttribute("aria-keyshortcuts", key);
    back.parentNode.append(" ", link);
  }

  function mark(words) {
    if (!text || !words.size || !window.Highlight) return;
    const nodes = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    const found = [];
    while (nodes.nextNode()) {
      for (const word of nodes.currentNode.data.matchAll(/[\p{L}\p{M}\p{N}'’_-]+/gu)) {
        if (!words.has(word[0].toLowerCase())) continue;
        const range = new Range();
        range.setStart(nodes.currentNode, word.index);
        range.setEnd(nodes.currentNode, word.index + word[0].length);
        found.push(range);
      }
    }
    CSS.highlights.set("hy-found", new Highlight(...found));
  }

  const keys = { j: () => ways[1], k: () => ways["-1"], Escape: () => back.href };

  function onKey(event) {
    const [element] = event.composedPath();
    const typing = element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName);
    const modified = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
    if (typing || modified || event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const there = Object.hasOwn(keys, event.key) && keys[event.key]();
    if (!there) return;
    event.preventDefault();
    location.assign(there);
  }

  if (back) {
    document.addEventListener("keydown", onKey);
    look().catch(() => {}); // the way back is there all the same
  }
}
