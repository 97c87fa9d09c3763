// Keeps fields that say nothing out of the address. Without it the search works all the same.
"use strict";

const forms = document.querySelectorAll("form.hy-form[method=get]");

function withoutEmptyFields(event) {
  for (const field of event.target.elements) {
    if (field.name && field.name !== "q" && field.value === "") {
      field.disabled = true;
    }
  }
}

function withAllFields() {
  for (const form of forms) {
    for (const field of form.elements) {
      field.disabled = false;
    }
  }
}

for (const form of forms) {
  form.addEventListener("submit", withoutEmptyFields);
}
window.addEventListener("pageshow", withAllFields); // also after “back”
