// The first page: reloads while older logins are still being counted.
"use strict";

if (document.querySelector("[data-counting]")) {
  window.setTimeout(() => window.location.reload(), 2000);
}
