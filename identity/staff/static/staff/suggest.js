// Fields that name a taxpayer suggest some while one types. Without this script they work as well.
"use strict";

document.querySelectorAll("input[data-suggest]").forEach((input) => {
  const list = document.createElement("datalist");
  list.id = `${input.id}_suggestions`;
  input.after(list);
  input.setAttribute("list", list.id);

  let timer;
  let asked = "";
  const ask = async () => {
    const term = input.value.trim();
    if (term === asked || term.length < 3) return;
    asked = term;
    const answer = await fetch(`${input.dataset.suggest}?q=${encodeURIComponent(term)}`);
    if (!answer.ok || term !== asked) return;
    const { suggestions } = await answer.json();
    list.replaceChildren(
      ...suggestions.map(({ value, label }) => {
        const option = document.createElement("option");
        option.value = value;
        // Browsers show a suggestion only if it contains what was typed: so the name is there too.
        option.label = `${label} (${value})`;
        return option;
      }),
    );
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 250);
  });
});
