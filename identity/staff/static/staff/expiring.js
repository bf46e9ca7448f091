// Ending soon: one checkbox selects all rows, and a button prints. Both are hidden without a script.
document.querySelectorAll("[data-select-all]").forEach((all) => {
  all.hidden = false;
  const boxes = all.closest("[data-select]").querySelectorAll("[name=selected]");
  all.addEventListener("change", () => boxes.forEach((box) => { box.checked = all.checked; }));
});
document.querySelectorAll("[data-print]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
});
