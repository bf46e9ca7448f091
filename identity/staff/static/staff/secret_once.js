// The page that shows a new secret once: prints it, asks before it is left without a copy or a print,
// and hides the secret when it is left. Copying is done by copy.js.
"use strict";

const secret = document.querySelector("[data-once]").textContent;
let isSaved = false;

document.addEventListener("copied", (event) => {
  isSaved ||= event.detail.includes(secret);
});

// Selected with the mouse or the keyboard and copied.
document.addEventListener("copy", () => {
  isSaved ||= String(window.getSelection()).includes(secret);
});

document.getElementById("codes-saved")?.addEventListener("change", (event) => {
  isSaved = event.target.checked;
});
document.querySelectorAll("[data-print]").forEach((button) => {
  button.addEventListener("click", () => window.print());
});
window.addEventListener("beforeprint", () => {
  isSaved = true;
});

window.addEventListener("beforeunload", (event) => {
  if (!isSaved) event.preventDefault();
});

// A browser may store a page in memory and show it again on "back", despite the headers.
window.addEventListener("pagehide", () => {
  document.querySelectorAll("[data-once]").forEach((shown) => {
    shown.textContent = "••••••••";
  });
});
