// The search page, quicker: results while one types, and keys. Without it everything works, too.
"use strict";

const PAUSE = 250; // milliseconds after the last key; as long as an answer takes, if that is longer
const LONGEST_PAUSE = 2000;
// what makes a list without a query
const ALONE = "collection type topic status since until as_of by meta narrow like".split(" ");

const form = document.querySelector("form.hy-form");
const field = form?.querySelector("input[name=q]");
const answer = document.getElementById("hy-answer");
const keys = document.getElementById("hy-keys");

/* Empty fields stay out of the address. */

function withoutEmptyFields() {
  for (const one of form.elements) {
    if (one.name && one.name !== "q" && one.value === "") one.disabled = true;
  }
}

function withAllFields() {
  for (const one of form.elements) one.disabled = false;
}

if (form?.method === "get") {
  form.addEventListener("submit", withoutEmptyFields);
  window.addEventListener("pageshow", withAllFields); // also after “back”
}

/* Results while one types. A private search stays out of addresses, so it is sent by hand. */

const line = navigator.connection;
const sparing = line?.saveData || /2g/.test(line?.effectiveType); // nothing is asked ahead
let live = form?.method === "get" && !!answer && !sparing;
let shown = form && address();
let pause = PAUSE;
let timer = 0;
let request = null;

function address() {
  const pairs = [...new FormData(form)].filter(([name, value]) => value !== "" || name === "q");
  const asked = new URLSearchParams(pairs);
  if (asked.get("q").trim()) return `${form.action}?${asked}`;
  asked.delete("q");
  if (!ALONE.some((name) => asked.has(name))) return form.action;
  return `${form.action}?${asked}`;
}

function stop() {
  clearTimeout(timer);
  request?.abort();
  request = null;
  answer?.removeAttribute("aria-busy");
}

function later(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(ask, milliseconds);
}

async function ask() {
  const wanted = address();
  if (!live || wanted === shown) return;
  stop();
  request = new AbortController();
  answer.setAttribute("aria-busy", "true");
  const asked = request;
  const started = performance.now();
  try {
    const response = await fetch(wanted, { signal: asked.signal, headers: { Accept: "text/html" } });
    const text = await response.text();
    if (asked !== request) return;
    if (response.status === 429) return busy(Number(response.headers.get("Retry-After")) || 1);
    const page = new DOMParser().parseFromString(text, "text/html");
    const found = page.getElementById("hy-answer");
    // locked meanwhile, or signed out: the page itself says so, and keeps the query
    if (!found) return location.assign(wanted);
    // half a query may be no query: what was found for the one before stays until it is whole
    if (response.ok) show(found, page.title, wanted);
  } catch (error) {
    if (error.name !== "AbortError") live = false; // the form still works
  } finally {
    if (asked === request) request = null;
    answer.toggleAttribute("aria-busy", request !== null);
  }
  pause = Math.min(Math.max(PAUSE, performance.now() - started), LONGEST_PAUSE);
}

function show(found, title, wanted) {
  answer.replaceChildren(...document.importNode(found, true).childNodes);
  form.querySelector(".hy-problem")?.remove(); // what was refused was another query
  document.title = title;
  history.replaceState(null, "", wanted);
  shown = wanted;
  const said = [answer.querySelector("[data-said]")?.textContent, new URL(wanted).searchParams.get("q")];
  const more = [...answer.querySelectorAll("[data-said-too]")].map((one) => one.textContent);
  say([said.filter(Boolean).join(": "), ...new Set(more)].filter(Boolean).join(". "));
}

function busy(seconds) {
  say(`Many are searching. Trying again in ${seconds} s.`);
  later(seconds * 1000);
}

function say(text) {
  document.getElementById("hy-live").textContent = text;
}

if (live) {
  form.addEventListener("input", (event) => {
    if (!event.isComposing) later(event.target === field ? pause : 0);
  });
  form.addEventListener("compositionend", () => later(pause));
  form.addEventListener("submit", stop);
}

/* Words that begin as the last one of the query does, to choose from, unless it is one itself. None
   where they may not be known, or where queries stay out of addresses. */

const FEWEST_LETTERS = 2;
const known = new Map();

async function wordsBeginning(prefix) {
  if (!known.has(prefix)) {
    const response = await fetch(`${field.dataset.words}?${new URLSearchParams({ prefix })}`);
    known.set(prefix, response.ok ? (await response.json()).rows.map((row) => row.word) : []);
  }
  return known.get(prefix);
}

async function complete() {
  const typed = field.value;
  const [last] = typed.match(/[\p{L}\p{M}\p{N}'’]*$/u);
  const before = typed.slice(0, typed.length - last.length);
  if (last.length < FEWEST_LETTERS) return field.list.replaceChildren();
  const words = await wordsBeginning(last).catch(() => []); // without them it searches all the same
  if (field.value !== typed) return;
  const whole = words.includes(last.toLowerCase()); // then the arrows lead to the results
  const offered = whole ? [] : words;
  field.list.replaceChildren(...offered.map((word) => new Option("", before + word)));
}

if (field?.list && field.dataset.words && !sparing) {
  let timer = 0;
  field.addEventListener("input", (event) => {
    clearTimeout(timer);
    if (!event.isComposing) timer = setTimeout(complete, PAUSE / 2);
  });
}

/* Keys: one at a time, never while one types, never with Ctrl, Alt or the like. */

const stops = ".hy-result, .hy-far > summary"; // what is folded is opened by Enter, then walked
const folded = ".hy-far:not([open]) > ol";
const targets = () => [...document.querySelectorAll(stops)].filter((one) => !one.closest(folded));
const handle = (result) => result?.querySelector("h2 a, h2 button") ?? result;
const current = () => document.activeElement?.closest(stops);

function move(step) {
  const results = targets();
  const here = results.indexOf(current());
  const next = results[here < 0 ? 0 : here + step];
  handle(next)?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const commands = {
  "/": () => (field.focus(), field.select()),
  "?": () => keys.showModal(),
  j: () => move(1),
  k: () => move(-1),
  m: () => current()?.querySelector(".hy-like")?.click(),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Escape: () => (field.focus(), field.setSelectionRange(field.value.length, field.value.length)),
};
const inList = ["k", "m", "ArrowDown", "ArrowUp", "Escape"]; // elsewhere these are the browser's

function typing(event) {
  const [element] = event.composedPath(); // also within another plugin's own element
  const inField = element.isContentEditable || /^(input|textarea|select)$/i.test(element.tagName);
  return inField || event.isComposing || document.querySelector("dialog[open]");
}

// from the query: down into the list, where no words are offered there, and Enter, where what was
// typed is answered already
function fromQuery(event) {
  if (event.target !== field || event.isComposing || !targets().length) return false;
  if (event.key === "Enter") return live && shown === address();
  return event.key === "ArrowDown" && !field.list?.options.length;
}

function onKey(event) {
  if (!event.ctrlKey && !event.metaKey && !event.altKey && !event.defaultPrevented && fromQuery(event)) {
    event.preventDefault();
    return move(1);
  }
  const command = Object.hasOwn(commands, event.key) && commands[event.key];
  const modified = event.ctrlKey || event.metaKey || event.altKey;
  if (!command || modified || event.defaultPrevented || typing(event)) return;
  if (inList.includes(event.key) && !current()) return;
  event.preventDefault();
  command();
}

if (field && keys) {
  document.addEventListener("keydown", onKey, true); // before Datasette 1.0's own menu, by “/”
  for (const button of document.querySelectorAll("[data-keys]")) {
    button.hidden = false;
    button.addEventListener("click", commands["?"]);
  }
}

/* The path of a file: no browser opens one from a page, so it is copied. */

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) continue; // not on this machine, and without https
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  });
}
