// The page that shows a new secret once: copies the secret, and hides it when the page is left.
"use strict";

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const shown = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(shown.textContent);
    } catch {
      // Without HTTPS a browser has no clipboard API: select the text and copy that.
      window.getSelection().selectAllChildren(shown);
      document.execCommand("copy");
    }
    document.querySelector("[data-copied]").hidden = false;
  });
});

// A browser may store a page in memory and show it again on "back", despite the headers.
window.addEventListener("pagehide", () => {
  document.querySelectorAll("[data-once]").forEach((shown) => {
    shown.textContent = "••••••••";
  });
});
