// The frame of every page: keys that lead to a search, the switch of the navigation, and where to type.
"use strict";

const everything = document.getElementById("search-field");
const list = document.getElementById("searchbar");

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("textarea, select, input:not([type=checkbox])") !== null;
  const withControl = event.ctrlKey || event.metaKey;
  let field = null;
  if (withControl && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    field = everything;
  } else if (event.key === "/" && !withControl && !event.altKey && !isTyping) {
    field = list ?? everything;
  }
  if (field === null) return;
  event.preventDefault();
  field.focus();
  field.select();
});

const navigationSwitch = document.querySelector("[data-toggle-navigation]");
if (navigationSwitch !== null) {
  const root = document.documentElement;
  const show = () => {
    const isHidden = root.classList.contains("navigation-hidden");
    navigationSwitch.setAttribute("aria-expanded", String(!isHidden));
  };
  navigationSwitch.addEventListener("click", () => {
    const isHidden = root.classList.toggle("navigation-hidden");
    localStorage.setItem("isNavigationHidden", JSON.stringify(isHidden));
    show();
  });
  show();
}

// The first error of a form, or else its first field, without hiding what stands above the form.
const FIELD = "input:not([type=hidden]), select, textarea";
const error = document.querySelector(".staff form .field:has(.field-error)");
const first = error ?? document.querySelector(".staff form[method=post] .field");
const field = first?.querySelector("input:checked") ?? first?.querySelector(FIELD);
field?.focus({ preventScroll: error === null });
