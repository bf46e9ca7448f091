// The search box of every page: results while typing. Without this script it is a plain form.
//
// What is typed is sent in the body, never in an address: people paste secrets into search boxes,
// and addresses are logged.
"use strict";

const box = document.getElementById("search-box");

if (box !== null) {
  const field = box.querySelector("input[type=search]");
  const panel = document.getElementById("search-results");
  const status = document.getElementById("search-status");
  let timer;
  let request = new AbortController();
  let shownFor = "";

  const close = () => {
    request.abort();
    clearTimeout(timer);
    panel.hidden = true;
    shownFor = "";
  };

  const load = async () => {
    const term = field.value.trim();
    if (term === shownFor) return;
    request.abort();
    if (term.length < 2) return close();
    request = new AbortController();
    try {
      const answer = await fetch(box.action, {
        method: "POST",
        body: new FormData(box),
        headers: { "X-Requested-With": "XMLHttpRequest" },
        redirect: "error", // the session has ended: the whole form leads to the sign-in
        signal: request.signal,
      });
      if (!answer.ok) return;
      panel.innerHTML = await answer.text();
    } catch {
      return; // a newer search has replaced it, or there is no network: Enter still works
    }
    shownFor = term;
    panel.hidden = false;
    status.textContent = panel.querySelector("[data-status]")?.dataset.status ?? "";
  };

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, 200);
  });

  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault(); // the first Escape closes the results, the next one clears the field
      close();
      field.focus();
      return;
    }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined || panel.hidden) return;
    const stops = [field, ...panel.querySelectorAll("a[href]")];
    const next = stops[stops.indexOf(document.activeElement) + step];
    event.preventDefault();
    next?.focus();
  });

  box.addEventListener("focusout", (event) => {
    // Safari gives no focus to a link that is clicked, hence null.
    if (event.relatedTarget !== null && !box.contains(event.relatedTarget)) close();
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target)) close();
  });
}
