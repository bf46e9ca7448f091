// Copies the text of the element that a button names in its data-copy attribute.
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
    const status = document.querySelector("[data-copied]");
    status.hidden = false;
  });
});
