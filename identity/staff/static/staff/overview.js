// The first page: comes again by itself while older logins are still being counted.
"use strict";

if (document.querySelector("[data-counting]")) {
  window.setTimeout(() => window.location.reload(), 2000);
}
