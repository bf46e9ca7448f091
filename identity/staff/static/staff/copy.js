// Copies the text of the element that a button names in its data-copy attribute, and says so in
// the element with data-copied. Other scripts hear of it by the event "copied".
"use strict";

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
    const status = document.querySelector("[data-copied]");
    status.textContent = status.dataset.copied;
    button.focus();
    document.dispatchEvent(new CustomEvent("copied", { detail: text }));
  });
});
