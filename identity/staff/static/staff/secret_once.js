// The page that shows a new secret once: copies and prints it, asks before it is left without
// either, and hides the secret when it is left.
"use strict";

const secret = document.querySelector("[data-once]").textContent;
let isSaved = false;

// Without HTTPS a browser has no clipboard API: select the text and copy that.
const copySelected = (text) => {
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
};

const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
};

document.querySelectorAll("[data-copy]").forEach((button) => {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    if (!(await copy(text))) return;
    isSaved ||= text.includes(secret);
    const status = document.querySelector("[data-copied]");
    status.textContent = status.dataset.copied;
    button.focus();
  });
});

document.querySelectorAll("[data-print]").forEach((button) => {
  button.addEventListener("click", () => window.print());
});
window.addEventListener("beforeprint", () => {
  isSaved = true;
});

// Selected with the mouse or the keyboard and copied.
document.addEventListener("copy", () => {
  isSaved ||= String(window.getSelection()).includes(secret);
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
