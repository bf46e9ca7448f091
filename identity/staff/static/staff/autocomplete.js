// Fields for a taxpayer show suggestions while typing. They also work without this script.
"use strict";

document.querySelectorAll("input[data-suggest]").forEach((input) => {
  const list = document.createElement("datalist");
  list.id = `${input.id}_suggestions`;
  input.after(list);
  input.setAttribute("list", list.id);

  let timer;
  let lastTerm = "";
  const load = async () => {
    const term = input.value.trim();
    if (term === lastTerm || term.length < 3) return;
    lastTerm = term;
    const answer = await fetch(`${input.dataset.suggest}?q=${encodeURIComponent(term)}`);
    if (!answer.ok || term !== lastTerm) return;
    const { suggestions } = await answer.json();
    list.replaceChildren(
      ...suggestions.map(({ value, label }) => {
        const option = document.createElement("option");
        option.value = value;
        // Browsers show a suggestion only if it contains the typed text, so it includes the name.
        option.label = `${label} (${value})`;
        return option;
      }),
    );
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 250);
  });
});
