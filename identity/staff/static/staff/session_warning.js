// Shows a notice before the session ends, with a button that keeps it. Works by the clock, because
// timers stop while a computer sleeps.
"use strict";

document.querySelectorAll("[data-session-seconds]").forEach((notice) => {
  const WARN_SECONDS = 120;
  const [soon, over] = ["soon", "over"].map((name) => notice.querySelector(`[data-session-${name}]`));
  let end;
  const show = () => {
    const left = (end - Date.now()) / 1000;
    notice.hidden = left > WARN_SECONDS;
    soon.hidden = left <= 0;
    over.hidden = left > 0;
  };
  const restart = (seconds) => {
    end = Date.now() + seconds * 1000;
    show();
  };
  notice.querySelector("button").addEventListener("click", async () => {
    const answer = await fetch(notice.dataset.stay).catch(() => null);
    if (answer && answer.ok) restart((await answer.json()).seconds);
  });
  restart(Number(notice.dataset.sessionSeconds));
  setInterval(show, 5000);
  document.addEventListener("visibilitychange", show);
});
