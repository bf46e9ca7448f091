// The first page: reloads while older logins are still being counted; a bar opens its logins.
"use strict";

if (document.querySelector("[data-counting]")) {
  window.setTimeout(() => window.location.reload(), 2000);
}

document.querySelectorAll("canvas[data-urls]").forEach((canvas) => {
  const urls = JSON.parse(canvas.dataset.urls);
  canvas.addEventListener("click", (event) => {
    // The theme has drawn the chart. Also beside a low bar: its whole column counts.
    const chart = window.Chart.getChart(canvas);
    const [bar] = chart.getElementsAtEventForMode(event, "index", { intersect: false }, true);
    if (bar) {
      window.location.assign(urls[bar.index]);
    }
  });
});
