"use strict";
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const stored = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem(`reasonblocks-${key}`);
      localStorage.setItem(`reasonblocks-${key}`, value);
    } catch (_) { /* a page without storage forgets */ }
    return null;
  };
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const list = $("#list"), opened = $("#opened"), help = $(".help"), title = document.title;
  document.documentElement.dataset.ready = "";
  $(".tools").hidden = false;

  // theme
  const themes = ["auto", "light", "dark"];
  const setTheme = (name) => {
    const button = $('[data-do="theme"]');
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    button.setAttribute("aria-label", `Theme: ${name === "auto" ? "as the system" : name}`);
    stored("theme", name);
  };
  const theme = () => document.documentElement.dataset.theme || "auto";
  setTheme(themes.includes(stored("theme")) ? stored("theme") : "auto");
  $('[data-do="theme"]').addEventListener("click", () => setTheme(themes[(themes.indexOf(theme()) + 1) % 3]));

  // one run
  const run = () => all("[data-run]").find((one) => one.offsetParent !== null);
  const into = (element) => element.scrollIntoView({ block: "center", behavior: still ? "auto" : "smooth" });
  const focusStep = (row) => {
    const summary = row && $("summary", row);
    if (!summary) return;
    summary.focus({ preventScroll: true });
    into(row);
  };
  const goToCall = (within, call) => {
    const rows = all("tr.row", within), last = rows[rows.length - 1];
    const row = rows.filter((one) => Number(one.dataset.row) <= call).pop();
    if ($("[data-pages]", within) && (!row || call > Number(last.dataset.row))) {
      location.assign(`?call=${call}#call-${call}`);
      return;
    }
    if (!row) return;
    $("details", row).open = true;
    focusStep(row);
  };
  document.addEventListener("click", (event) => {
    const column = event.target.closest && event.target.closest(".col");
    if (column) goToCall(column.closest("[data-run]"), Number(column.dataset.call));
    const row = event.target.closest && event.target.closest("tr.row");
    if (row && !event.target.closest("summary, a") && !String(getSelection())) {
      $("details", row).open = !$("details", row).open;
    }
  });

  // a run of this file
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  };
  let shownRun = null, lastScroll = 0, wanted = 0;
  const showList = () => {
    if (!opened || shownRun === null) return;
    const link = $(`a[href="#run-${shownRun}"]`, list);
    opened.hidden = true;
    opened.replaceChildren();
    list.hidden = false;
    document.title = title;
    shownRun = null;
    if (link) link.focus({ preventScroll: true });
    scrollTo({ top: lastScroll, behavior: "instant" });
  };
  const showRun = async (index) => {
    const block = $(`#packed-${index}`), mine = ++wanted;
    if (!block) return false;
    if (shownRun === null) lastScroll = scrollY;
    let view;
    try {
      view = new DOMParser().parseFromString(await unpack(block.textContent.trim()), "text/html").body;
    } catch (_) {
      view = document.createElement("p");
      view.textContent = "This browser cannot unpack the run: it has no DecompressionStream. "
        + "reasonblocks report RUNS --pages DIR writes pages that do not need it.";
    }
    if (mine !== wanted) return false;
    opened.replaceChildren(...view.childNodes);
    opened.hidden = false;
    list.hidden = true;
    shownRun = index;
    const head = $("h1", opened);
    document.title = `${head ? head.textContent : "Run"} – ReasonBlocks`;
    if (head) head.focus({ preventScroll: true });
    scrollTo({ top: 0, behavior: "instant" });
    return true;
  };
  const route = async () => {
    if (!opened) return;
    const found = /^#run-(\d{1,9})(-.+)?$/.exec(location.hash);
    if (!found) { wanted += 1; showList(); return; }
    const index = Number(found[1]);
    if (shownRun !== index && !(await showRun(index))) return;
    const place = found[2] && document.getElementById(location.hash.slice(1));
    if (place) place.matches("tr") ? goToCall(opened, Number(place.id.split("-").pop())) : into(place);
  };
  if (opened) {
    const home = document.createElement("a");
    home.href = "#";
    home.textContent = "All runs";
    $(".bar nav").append(home);
    addEventListener("hashchange", route);
    route();
  } else if (/^#call-\d+$/.test(location.hash) && run()) {
    // The browser looks for the place itself when the page is loaded, and takes the focus away from the row.
    addEventListener("load", () => setTimeout(() => goToCall(run(), Number(location.hash.slice(6))), 0));
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href*="call-"]');
    if (link && link.hash === location.hash) goToCall(run(), Number(link.hash.split("-").pop()));
  });
  if (!opened) addEventListener("hashchange", () => {
    const found = /call-(\d+)$/.exec(location.hash);
    if (found && run()) goToCall(run(), Number(found[1]));
  });

  // the list
  const form = $(".filters");
  const rows = list ? all(".runs tbody tr", list) : [];
  if (form && !form.hasAttribute("action")) {
    form.hidden = false;
    const body = $(".runs tbody", list), status = $(".shown", list);
    const texts = [];
    const textOf = (index) => (texts[index] ??= $("th", rows[index]).textContent.toLowerCase());
    const orders = { told: "n", state: "hard", difficulty: "difficulty", steps: "steps", tokens: "tokens",
      seconds: "seconds", started: "started" };
    const has = (row, name, value) => !value || row.dataset[name].split("\n").includes(value);
    let sortedBy = "";
    const apply = () => {
      const given = Object.fromEntries(new FormData(form));
      const words = given.q.toLowerCase().split(/\s+/).filter(Boolean);
      if (given.sort !== sortedBy) {
        sortedBy = given.sort;
        const key = orders[sortedBy];
        const value = (row) => Number(key ? row.dataset[key] : row.dataset.at);
        const sorted = [...rows].sort((one, other) => key ? value(other) - value(one) : value(one) - value(other));
        body.append(...sorted);
      }
      let count = 0;
      rows.forEach((row, index) => {
        const fits = ["agent", "state", "outcome", "failure", "told"].every((name) => has(row, name, given[name]))
          && words.every((word) => textOf(index).includes(word));
        if (row.hidden === fits) row.hidden = !fits;
        count += fits;
      });
      const total = `${rows.length.toLocaleString("en")} ${rows.length === 1 ? "run" : "runs"}`;
      status.textContent = count === rows.length ? total : `${count.toLocaleString("en")} of ${total}`;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    if ([...new FormData(form).values()].some(Boolean)) apply(); // after a reload
  }

  // keys
  const keys = $('[data-do="keys"]');
  keys.checked = stored("keys") !== "off";
  keys.addEventListener("change", () => stored("keys", keys.checked ? "on" : "off"));
  $('[data-do="help"]').addEventListener("click", () => help.showModal());
  const near = (items, step) => {
    const at = items.findIndex((item) => item.contains(document.activeElement));
    if (at >= 0) return items[Math.min(items.length - 1, Math.max(0, at + step))];
    const after = items.findIndex((item) => item.getBoundingClientRect().top > 60);
    return items[step > 0 ? (after < 0 ? items.length - 1 : after) : Math.max(0, after - 1)];
  };
  const move = (step) => {
    const current = run();
    if (current) { focusStep(near(all("tr.row", current), step)); return; }
    const item = near([...all(".runs tbody tr:not([hidden])", list || document)], step);
    const link = item && $("a", item);
    if (link) { link.focus({ preventScroll: true }); into(item); }
  };
  const moveTold = (step) => {
    const item = run() && near(all("[data-told]", run()), step);
    if (item) { item.focus({ preventScroll: true }); into(item); }
  };
  const search = () => {
    const field = $('[name="q"]');
    if (!field) return;
    if (shownRun === null) { field.focus(); return; }
    addEventListener("hashchange", () => setTimeout(() => field.focus(), 0), { once: true });
    location.hash = "";
  };
  const does = { j: () => move(1), k: () => move(-1), n: () => moveTold(1), p: () => moveTold(-1), "/": search,
    "?": () => help.showModal() };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && typing) { event.target.blur(); return; }
    if (typing || help.open || !keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = does[event.key];
    if (act) { event.preventDefault(); act(); }
  });
})();
