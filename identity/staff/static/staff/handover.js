// The page that shows a new secret once: copies it, and forgets it when the page is left.
"use strict";

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const shown = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(shown.textContent);
    } catch {
      // Without HTTPS a browser has no clipboard: mark the text, so that Ctrl+C takes it.
      window.getSelection().selectAllChildren(shown);
      document.execCommand("copy");
    }
    document.querySelector("[data-copied]").hidden = false;
  });
});

// A browser may keep a page that was left and show it again on "back", whatever its headers say.
window.addEventListener("pagehide", () => {
  document.querySelectorAll("[data-once]").forEach((shown) => {
    shown.textContent = "••••••••";
  });
});
