// Fields for a taxpayer show suggestions while typing: a combobox with a list of options (WAI-ARIA).
// Not the browser's own <datalist>, which hides what does not contain the typed text: words in
// another order, or without their accents. The fields also work without this script.
"use strict";

document.querySelectorAll("input[data-suggest]").forEach((input) => {
  const list = document.createElement("ul");
  const frame = document.createElement("div");
  const hasFocus = input === document.activeElement; // which it loses with its place
  frame.className = "suggestions";
  input.replaceWith(frame);
  frame.append(input, list);
  if (hasFocus) input.focus({ preventScroll: true });
  list.id = `${input.id}_suggestions`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.dataset.suggestTitle);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);

  let timer;
  let lastTerm = "";
  let active = -1;

  const mark = (place) => {
    active = place;
    [...list.children].forEach((option, index) => {
      option.setAttribute("aria-selected", String(index === place));
    });
    const option = list.children[place];
    if (option === undefined) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  };
  const show = (isOpen) => {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    mark(-1);
  };
  const choose = (option) => {
    input.value = option.dataset.value;
    lastTerm = input.value;
    show(false);
  };
  const load = async () => {
    const term = input.value.trim();
    if (term === lastTerm) return;
    lastTerm = term;
    if (term.length < 3) return show(false);
    const answer = await fetch(`${input.dataset.suggest}?q=${encodeURIComponent(term)}`);
    if (!answer.ok || term !== lastTerm) return;
    const { suggestions } = await answer.json();
    list.replaceChildren(
      ...suggestions.map(({ value, label }, index) => {
        const option = document.createElement("li");
        option.id = `${list.id}_${index}`;
        option.dataset.value = value;
        option.textContent = `${label} (${value})`;
        option.setAttribute("role", "option");
        return option;
      }),
    );
    show(suggestions.length > 0 && document.activeElement === input);
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 250);
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) mark(Math.min(Math.max(active + step, -1), list.children.length - 1));
    else if (event.key === "Enter" && active >= 0) choose(list.children[active]);
    else if (event.key === "Escape") show(false);
    else return;
    event.preventDefault();
  });
  input.addEventListener("blur", () => show(false));
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option !== null) choose(option);
  });
  show(false);
});
