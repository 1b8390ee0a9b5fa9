"use strict";
/* All text from data, notes and names goes into the page as text, never as markup. */
(() => {
  const proof = document.querySelector('meta[name="proof"]').content;
  const at = (id) => document.getElementById(id);
  const LABELS = { a: 1, n: 0, u: -1 };
  const WORDS = { 1: "anomaly", 0: "normal", "-1": "unsure" };
  const WHY = {
    likely: "By its score, and by what was answered about rows like it",
    anomalous: "It has one of the highest scores",
    informative: "Members disagree about it, and it is close to the threshold",
  };
  let state = null;
  let current = 0;
  let last = "";
  let waiting = 0;
  let asked = 0; /* loads that somebody waits for */

  const el = (tag, attributes = {}, ...children) => {
    const found = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "on") for (const [event, run] of Object.entries(value)) found.addEventListener(event, run);
      else if (value !== null && value !== false) found.setAttribute(name, value === true ? "" : value);
    }
    found.append(...children.filter((child) => child !== null));
    return found;
  };
  const say = (words) => { at("said").textContent = words; };
  const trouble = (words) => { at("trouble").hidden = !words; at("trouble").textContent = words || ""; };
  const name = () => at("by").value.trim();
  const fresh = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

  /* The same request is sent until it is acknowledged or refused; the store never takes it twice. */
  const send = async (path, body) => {
    const request = fresh();
    const content = JSON.stringify({ by: name(), request, ...body });
    for (let pause = 250; ; pause = Math.min(2 * pause, 4000)) {
      const slow = setTimeout(() => trouble("It takes long; the server is still trying to keep it. Do not close the page."), 2000);
      let problem = "The server cannot be reached; trying again. Nothing is lost, do not close the page.";
      try {
        const answer = await fetch(path, {
          method: "POST",
          headers: { "Content-Type": "application/json", "X-Aloof-Review": proof },
          body: content,
        });
        const found = await answer.json();
        if (answer.ok) { trouble(""); return found; }
        if (!/cannot be used/.test(found.error || "")) throw new TypeError(found.error || "It was refused.");
        problem = found.error + " Trying again.";
      } catch (error) {
        if (error instanceof TypeError && !/fetch|network/i.test(error.message)) { trouble(error.message); throw error; }
      } finally {
        clearTimeout(slow);
      }
      trouble(problem);
      await new Promise((done) => setTimeout(done, pause));
    }
  };

  /* Nothing is drawn anew under the hands of somebody who types or chooses. */
  const busy = () => document.querySelector(".suppress, .asked") || (document.activeElement && document.activeElement.classList.contains("note"));
  const settle = () => {
    document.querySelectorAll(".suppress, .asked").forEach((box) => box.remove());
    if (busy()) document.activeElement.blur();
  };
  const query = () => new URLSearchParams({ way: at("way").value, show: at("show").value, search: at("search").value, by: name() });
  const load = async (force = false) => {
    if (force) asked += 1;
    try { await fetched(force); } finally { if (force) asked -= 1; }
  };
  const fetched = async (force) => {
    const mine = ++waiting;
    let found;
    try {
      const answer = await fetch("/api/state?" + query());
      if (answer.status === 401) { trouble("The page is locked. Open the printed address again."); return; }
      found = await answer.json();
      if (!answer.ok) { trouble(found.error); return; }
    } catch { trouble("The server cannot be reached; trying again."); return; }
    if (mine !== waiting || busy()) return;
    if (!at("trouble").hidden && /cannot be|trying/i.test(at("trouble").textContent)) trouble("");
    const text = JSON.stringify(found);
    if (text === last && !force) return;
    last = text;
    const key = state && state.rows[current] ? state.rows[current].source + "\0" + state.rows[current].row : null;
    state = found;
    const place = state.rows.findIndex((row) => row.source + "\0" + row.row === key);
    if (place >= 0) current = place;
    current = Math.max(0, Math.min(current, state.rows.length - 1));
    draw();
  };

  const answer = async (label, rows) => {
    if (!name()) { say("Say who you are first."); at("by").focus(); return; }
    const row = state.rows[current];
    if (!row && !rows) return;
    const note = document.querySelector("li.current input.note");
    const given = rows || [[row.source, row.row]];
    const words = note ? note.value : "";
    settle();
    await send("/api/answer", { rows: given, label, note: words });
    say(given.length > 1 ? `${given.length} rows kept as ${WORDS[label]}.` : `${given[0][1]} kept as ${WORDS[label]}.`);
    await load(true);
    focus();
  };
  const group = (row) => [[row.source, row.row], ...row.alike];
  const undo = async () => {
    const found = await send("/api/undo", {});
    say(found.undone ? `Taken back: ${found.undone.row}, ${found.undone.word}.` : "There is nothing to take back.");
    await load(true);
    const place = found.undone ? state.rows.findIndex((row) => row.row === found.undone.row && row.source === found.undone.source) : -1;
    if (place >= 0) { mark(place); focus(); }
  };

  const moved = (row) => {
    if (row.is_new) return el("span", { class: "mark", title: "Not among the first before" }, "new");
    if (row.was === null || row.was === row.rank) return null;
    const up = row.was - row.rank;
    return el("span", { class: "mark" }, `${up > 0 ? "▲ up" : "▼ down"} ${Math.abs(up)} from ${row.was}`);
  };

  const drawRow = (row, place) => {
    const told = row.answers.map((a) => el("span", { class: "mark " + a.word, title: a.at }, `${a.by}: ${a.word}${a.note ? " (" + a.note + ")" : ""}`));
    if (row.label === "conflict") told.push(el("span", { class: "mark conflict" }, "in conflict"));
    const others = row.alike.length;
    const head = el("div", { class: "head" },
      el("span", { class: "name" }, row.row),
      el("span", { class: "muted" }, `place ${row.rank}, score ${row.score.toPrecision(4)}${row.p_value === null ? "" : ", p-value " + row.p_value.toPrecision(2)}`),
      row.flagged ? el("span", { class: "mark anomaly" }, "flagged") : null,
      el("span", { class: "mark", title: WHY[row.why] }, row.why),
      moved(row), ...told);
    const item = el("li", { class: "row" + (place === current ? " current" : ""), id: "row-" + place, "aria-current": place === current ? "true" : false, tabindex: "-1", on: { focusin: () => { if (current !== place) mark(place); } } }, head);
    if (state.has_pictures) item.append(el("img", { class: "picture", src: "/picture/" + row.place, alt: `${row.row}: the image, as it would be if it were normal, and where they differ` }));
    if (row.reasons.length) item.append(el("ul", { class: "reasons" }, ...row.reasons.map((r) => el("li", {}, r.words))));
    if (row.values.length) {
      const list = el("dl", { class: "values" });
      for (const [column, value] of row.values) {
        list.append(el("dt", {}, column), el("dd", {}, value === "" ? "–" : value),
          el("dd", {}, el("button", { type: "button", title: "Known to be harmless: hide rows with this value", "aria-label": `Hide rows where ${column} is ${value}`, on: { click: () => suppress(column, value) } }, "harmless…")));
      }
      const more = el("details", { open: place === current }, el("summary", {}, "Values, those that matter first"), list);
      item.append(more);
    }
    item.append(el("div", { class: "actions" },
      ...Object.entries(LABELS).map(([key, label]) => el("button", { type: "button", class: key, on: { click: () => { mark(place); answer(label); } } }, WORDS[label][0].toUpperCase() + WORDS[label].slice(1) + " ", el("kbd", {}, key))),
      el("input", { class: "note", maxlength: "10000", placeholder: "Note", "aria-label": "Note about " + row.row }),
      others ? el("button", { type: "button", class: "group", on: { click: () => { mark(place); askGroup(); } } }, `${others} alike… `, el("kbd", {}, "g")) : null));
    return item;
  };

  const askGroup = () => {
    const row = state.rows[current];
    if (!row || !row.alike.length) { say("No other row is strange for the same reasons."); return; }
    const item = at("row-" + current);
    if (item.querySelector(".asked")) { item.querySelector(".asked button").focus(); return; }
    const box = el("div", { class: "actions asked", role: "group", "aria-label": "Answer all rows that are alike" },
      el("span", {}, `All ${row.alike.length + 1} rows that are strange for the same reasons are:`),
      ...Object.values(LABELS).map((label) => el("button", { type: "button", on: { click: () => answer(label, group(row)) } }, WORDS[label])));
    item.append(box);
    box.querySelector("button").focus();
  };

  const suppress = async (column, value) => {
    const item = at("row-" + current);
    const old = document.querySelector(".suppress");
    if (old) old.remove();
    const until = el("input", { type: "date", "aria-label": "Until" });
    const note = el("input", { maxlength: "10000", placeholder: "Why", "aria-label": "Why it is harmless" });
    const box = el("div", { class: "actions suppress", role: "group", "aria-label": "Hide rows" },
      el("span", {}, `Hide rows where ${column} is ${value}, until`), until, note,
      el("button", { type: "button", on: { click: async () => { const rule = { column, value, until: until.value, note: note.value }; settle(); await send("/api/rule", rule); say("Hidden."); await load(true); } } }, "Hide"),
      el("button", { type: "button", on: { click: () => box.remove() } }, "Cancel"));
    item.append(box);
    until.focus();
  };

  const mark = (place) => {
    current = place;
    document.querySelectorAll("li.row").forEach((item, k) => {
      item.classList.toggle("current", k === place);
      if (k === place) item.setAttribute("aria-current", "true"); else item.removeAttribute("aria-current");
      const values = item.querySelector("details");
      if (values && k === place) values.open = true;
    });
  };
  const focus = () => { const item = at("row-" + current); if (item) { item.focus({ preventScroll: true }); item.scrollIntoView({ block: "nearest" }); } };
  const go = (step) => { if (!state.rows.length) return; mark(Math.max(0, Math.min(current + step, state.rows.length - 1))); focus(); };

  const drawRefit = () => {
    const box = at("refitting"), refit = state.refit;
    box.hidden = refit.state === "none";
    box.replaceChildren();
    if (refit.state === "running") box.append(el("p", {}, `A refit is running: ${refit.words.join(" ")} ${refit.total ? `Epoch ${refit.done} of ${refit.total}.` : ""}`), el("progress", { max: refit.total || 1, value: refit.total ? refit.done : false, "aria-label": "Refit" }));
    if (refit.state === "failed") box.append(el("p", { class: "trouble" }, "The refit failed: " + refit.words.join(" ")), el("button", { type: "button", on: { click: () => send("/api/dismiss", {}).then(() => load(true)) } }, "Dismiss"));
    if (refit.state !== "done") return;
    const worse = refit.comparison && refit.comparison.is_worse;
    box.append(el("h2", {}, worse ? `Version ${refit.version} is worse` : `Version ${refit.version} is ready`), ...refit.words.map((words) => el("p", {}, words)));
    const alerts = refit.comparison && refit.comparison.alerts;
    for (const [title, moves] of alerts ? [["Rows that rise", alerts.rises], ["Rows that fall", alerts.falls]] : []) {
      if (!moves.length) continue;
      box.append(el("table", {}, el("caption", {}, title), el("thead", {}, el("tr", {}, ...["Row", "Place before", "Place now"].map((h) => el("th", { scope: "col" }, h)))),
        el("tbody", {}, ...moves.slice(0, 8).map((m) => el("tr", {}, el("td", {}, m.name), el("td", {}, String(m.old_rank)), el("td", {}, String(m.new_rank)))))));
    }
    box.append(el("div", { class: "actions" },
      el("button", { type: "button", id: "accept", on: { click: () => send("/api/accept", {}).then(() => { say("Accepted."); return load(true); }) } }, worse ? "Use it all the same" : "Accept"),
      el("button", { type: "button", id: "dismiss", on: { click: () => send("/api/dismiss", {}).then(() => load(true)) } }, "Keep the old version")));
  };

  const drawRules = () => {
    const box = at("rules");
    box.hidden = !state.rules.length;
    box.replaceChildren(el("h2", {}, "Known to be harmless"), el("ul", { class: "reasons" }, ...state.rules.map((rule) => el("li", {},
      `${rule.column} is ${rule.value}${rule.until ? ", until " + rule.until : ""}: hides ${rule.hides} of the rows on this page (${rule.by}${rule.note ? ": " + rule.note : ""}) `,
      el("button", { type: "button", on: { click: () => send("/api/lift", { number: rule.number }).then(() => load(true)) } }, "Lift")))));
  };

  const drawDrift = () => {
    const box = at("drift"), found = state.drift.changed;
    box.hidden = !found.length;
    if (!found.length) return;
    box.replaceChildren(el("details", {}, el("summary", {}, `${found.length} of ${state.drift.n_tested} tests say that these rows are not as in training`),
      el("ul", { class: "reasons" }, ...found.map((each) => el("li", {}, `${each.name}: ${each.words || "changed"} `, el("span", { "aria-hidden": "true" }, each.picture), ` (${each.test}, p-value ${each.p_value.toPrecision(2)})`))),
      el("p", {}, "If they are what is to come, set thresholds by them, which trains nothing; or learn from them on the command line: aloof refit MODEL DATA. "),
      el("button", { type: "button", on: { click: calibrate } }, "Calibrate again")));
  };

  const draw = () => {
    const p = state.progress;
    at("progress").textContent = `${p.answered} of ${p.goal} answered, ${p.found} found, ${p.normal} normal${p.conflicts ? `, ${p.conflicts} in conflict` : ""}.`;
    at("bar").max = p.goal; at("bar").value = Math.min(p.goal, p.answered);
    at("version").textContent = state.version.number;
    at("rollback").hidden = state.version.parent === null;
    at("calibrate").disabled = state.refit.state === "running";
    at("refit").disabled = state.refit.state === "running" || p.found + p.normal === 0;
    at("listed").textContent = state.rows.length ? `${state.rows.length} of ${state.n_listed} ${state.things} that may be asked about; ${state.n_flagged} of ${state.n_rows} are flagged.` : "Nothing is left to answer here.";
    const note = document.querySelector("li.current input.note");
    const kept = note && note.value ? { row: current, value: note.value } : null;
    const active = document.activeElement && document.activeElement.closest ? document.activeElement.closest("li.row") : null;
    at("rows").replaceChildren(...state.rows.map(drawRow));
    if (kept && kept.row === current) { const again = document.querySelector("li.current input.note"); if (again) again.value = kept.value; }
    if (active) focus();
    drawRefit();
    drawRules();
    drawDrift();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !state) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) { if (event.key === "Escape") { event.target.blur(); focus(); } return; }
    const keys = {
      a: () => answer(1), n: () => answer(0), u: () => answer(-1), z: undo, g: askGroup,
      j: () => go(1), k: () => go(-1),
      o: () => { const note = document.querySelector("li.current input.note"); if (note) note.focus(); },
      "/": () => at("search").focus(),
    };
    if (keys[event.key]) { event.preventDefault(); Promise.resolve(keys[event.key]()).catch(() => {}); }
  });
  at("undo").addEventListener("click", () => undo().catch(() => {}));
  at("refit").addEventListener("click", () => send("/api/refit", {}).then(() => load(true)).catch(() => {}));
  const calibrate = () => {
    say("Calibrating…");
    return send("/api/calibrate", {}).then((found) => { say(`Calibrated by these ${state.things}: version ${found.version}.`); return load(true); }).catch(() => {});
  };
  at("calibrate").addEventListener("click", calibrate);
  at("rollback").addEventListener("click", () => send("/api/rollback", {}).then((found) => { say(`Back at version ${found.version}.`); return load(true); }).catch(() => {}));
  for (const id of ["way", "show"]) at(id).addEventListener("change", () => { settle(); load(true); });
  let timer = 0;
  at("search").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => load(true), 150); });
  const remembered = localStorage.getItem("aloof-by");
  if (remembered && !at("by").readOnly) at("by").value = remembered;
  at("by").addEventListener("change", () => { localStorage.setItem("aloof-by", name()); load(true); });
  load(true);
  setInterval(() => { if (!busy() && !asked) load(); }, 1500);
})();
