// Keeps a page current. When the server reports a change, this script reads the page again, replaces its marked parts,
// and adds the new rows to a table. The server makes all markup.
"use strict";
(() => {
  const place = document.querySelector("[data-live]");
  if (!place) return;
  const page = new URL(location.href), news = document.getElementById("announce");
  let source = null, skipped = false, ended = false, waiting = 0, pause = 250, reading = false, again = false;
  const last = () => [...document.querySelectorAll("[data-row]")].pop();
  const address = () => {
    const table = document.querySelector("[data-appends] tbody"), row = table && last();
    if (row) page.searchParams.set("after", row.dataset.row);
    return page;
  };
  const replaced = (old, fresh) => {
    if (old.isEqualNode(fresh)) return;
    const used = document.activeElement;
    if (old.contains(used) && used.matches("a, button, input, select, summary, textarea, [tabindex='0']")) {
      skipped = true;
      return;
    }
    const scrolled = old.querySelector(".plot-scroll");
    const left = scrolled && scrolled.scrollLeft;
    old.replaceWith(fresh);
    if (left) fresh.querySelector(".plot-scroll").scrollLeft = left;
  };
  const take = (fresh) => {
    for (const old of document.querySelectorAll("[data-part]")) {
      const part = fresh.getElementById(old.id);
      if (part) replaced(old, document.adoptNode(part));
      else old.remove();
    }
    const table = document.querySelector("[data-appends] tbody"), list = document.getElementById("list");
    let added = 0;
    for (const row of [...fresh.querySelectorAll("[data-row]")]) {
      const old = document.getElementById(row.id);
      if (old && list) replaced(old, document.adoptNode(row));
      if (old) continue;
      added += 1;
      if (!table) continue;
      const more = row.nextElementSibling;
      table.append(document.adoptNode(row), ...(more && !more.dataset.row ? [document.adoptNode(more)] : []));
    }
    const told = fresh.getElementById("news");
    if (told && news.textContent !== told.textContent) news.textContent = told.textContent;
    if (list && added) {
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = `${added} new run${added === 1 ? "" : "s"}: show`;
      if (news.textContent !== link.textContent) news.replaceChildren(link);
    }
    if (!fresh.querySelector("[data-live]")) end();
  };
  const read = async () => {
    if (reading) { again = true; return; }
    reading = true;
    const began = performance.now();
    try {
      const answer = await fetch(address(), { credentials: "same-origin", cache: "no-store" });
      if (answer.redirected) { end(); location.reload(); return; }
      if (answer.ok) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch (_) { /* the stream reconnects and reports the change again */ }
    reading = false;
    pause = Math.max(250, 4 * (performance.now() - began)); // a long run is read less often
    if (again) { again = false; soon(); }
  };
  const soon = () => { waiting ||= setTimeout(() => { waiting = 0; read(); }, pause); };
  const close = () => { if (source) source.close(); source = null; };
  const end = () => { ended = true; close(); };
  const connect = () => {
    if (document.hidden) { close(); return; }
    if (source || ended) return;
    source = new EventSource(place.dataset.live);
    source.addEventListener("changed", soon);
  };
  document.addEventListener("focusout", () => { if (skipped) { skipped = false; soon(); } });
  document.addEventListener("visibilitychange", connect);
  addEventListener("pagehide", close);
  addEventListener("pageshow", connect);
  connect();
})();
