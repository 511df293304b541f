"""Reads the feed, ``/_control/events``."""

from __future__ import annotations

SCRIPT = r"""
// ---- The feed ------------------------------------------------------------------------------------------------------

let source = null, retry = 0, heardAt = 0;

function connect() {
  clearTimeout(retry);
  source?.close();
  const mine = source = new EventSource("/_control/events");
  heardAt = performance.now();
  const on = (name, take) => mine.addEventListener(name, event => {
    if (mine !== source) return;
    heardAt = performance.now();
    take(JSON.parse(event.data));
  });
  on("snapshot", all => { learnAll(all); link("live"); });
  on("change", some => learn(some));
  on("ping", ({ now_ms }) => { heard = { now: now_ms, at: performance.now() }; });
  on("stopped", () => lose("The head-end was stopped", "Stopped"));
  mine.onerror = () => { if (mine === source) lose("The head-end does not answer", "No answer"); };
}

// The word for each state of the connection. The title begins with it, except while the page is live.
const LINK_WORDS = { live: "Live", connecting: "Connecting", resting: "Paused", lost: "" };

function lose(why, short) {
  source.close();
  source = null;
  clearTimeout(retry);
  retry = setTimeout(connect, 1000);
  if (document.body.dataset.link === "lost") return;
  LINK_WORDS.lost = short;
  heard = { now: clockNow(), at: performance.now() };
  const seen = known.he ? "The page shows the state of that moment; " : "";
  const at = new Date().toLocaleTimeString([], { hour12: false });
  put($("notice"), `${why} (${at}). ${seen}the page tries to connect again.`);
  link("lost");
}

function link(state) {
  document.body.dataset.link = state;
  put($("link-text"), LINK_WORDS[state]);
  $("notice").hidden = state !== "lost";
  const doing = "#advance button, form .main, #release, #clear, .card .foot button";
  for (const button of document.querySelectorAll(doing)) button.disabled = state !== "live";
  for (const row of $("sessions").children) lease(row);
  sayTitle();
  draw();
}

/* Browsers draw nothing in a hidden tab, but they show its title. So this does not wait for drawAll(). */
function sayTitle() {
  const waiting = known.held.size ? `(${known.held.size} waiting) ` : "";
  const words = live() ? `${waiting}${many(known.totals.active, "session")}` : LINK_WORDS[document.body.dataset.link];
  document.title = `${words} · Usher head-end`;
}

// A hidden tab closes its connection after a minute, because browsers allow only a few connections per server.
let rest = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(rest);
  if (document.hidden) rest = setTimeout(pause, 60000);
  else if (!source) connect();
});

function pause() {
  clearTimeout(retry);
  source?.close();
  source = null;
  if (live()) link("resting");
}

function learnAll(all) {
  known.he = all.head_end;
  known.manual = all.clock === "manual";
  known.began = all.began_ms;
  known.faults = [];
  for (const map of [known.accounts, known.sessions, known.requests, known.held]) map.clear();
  for (const list of ["sessions", "requests", "accounts"]) $(list).nodesByKey?.forEach(node => { node.item = null; });
  learn(all);
  drawOnce();
}

function learn(some) {
  heard = { now: some.now_ms, at: performance.now() };
  known.totals = some.totals;
  for (const account of some.accounts ?? []) known.accounts.set(account.name, account);
  for (const session of some.sessions ?? []) known.sessions.set(session.id, session);
  for (const request of some.requests ?? []) known.requests.set(request.number, request);
  if (some.faults) known.faults = some.faults;
  if (some.held) known.held = new Set(some.held);
  if (some.held || some.requests) {
    for (const row of $("requests").children) if (row.item?.outcome === "pending") row.item = null;
  }
  forget();
  sayTitle();
  draw();
}

function forget() {
  for (const number of known.requests.keys()) {
    if (known.requests.size <= MOST.requests) break;
    if (!known.held.has(number)) known.requests.delete(number);
  }
  for (const [state, most] of [[true, MOST.active], [false, MOST.ended]]) {
    const ids = [...known.sessions.values()].filter(s => (s.state === "active") === state).map(s => s.id);
    for (const id of ids.slice(0, Math.max(0, ids.length - most))) known.sessions.delete(id);
  }
}
"""
