// Warns before what was typed is left behind, and suggests topics after each comma. Without it
// the forms work all the same.
"use strict";

for (const form of document.querySelectorAll("form.hy-write")) {
  watch(form);
  suggestAfterCommas(form.querySelector("input[name=topics]"));
}

function watch(form) {
  // a form that came back unsaved holds something that is nowhere else
  let unsaved = document.querySelector(".hy-problem, .hy-conflict") !== null;
  form.addEventListener("input", () => { unsaved = true; });
  form.addEventListener("submit", (event) => {
    const text = form.querySelector("textarea");
    const limit = Number(text.dataset.limit);
    if (text.value.length > limit) {
      event.preventDefault();
      text.setCustomValidity(`This is too long for a page: ${limit} characters at most. Import it as a file instead.`);
      text.reportValidity();
      text.setCustomValidity("");
      return;
    }
    unsaved = false;
  });
  for (const other of document.querySelectorAll("form:not(.hy-write)")) {
    other.addEventListener("submit", () => { unsaved = false; });
  }
  for (const link of document.querySelectorAll("a.hy-button, .hy-buttons a")) {
    link.addEventListener("click", () => { unsaved = false; }); // keeping theirs, or cancelling
  }
  window.addEventListener("beforeunload", (event) => {
    if (unsaved) {
      event.preventDefault();
    }
  });
}

function suggestAfterCommas(field) {
  if (!field || !field.list) {
    return;
  }
  const options = [...field.list.options];
  const topics = options.map((option) => option.value);
  field.addEventListener("input", () => {
    const before = field.value.slice(0, field.value.lastIndexOf(",") + 1);
    const lead = before ? `${before.trimEnd()} ` : "";
    options.forEach((option, place) => { option.value = lead + topics[place]; });
  });
}
