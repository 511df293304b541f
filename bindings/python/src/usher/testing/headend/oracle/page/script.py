"""The page's JavaScript. It inserts all data as text, and never parses data as HTML."""

from __future__ import annotations

SCRIPT = r"""
"use strict";
(() => {
// ---- State ---------------------------------------------------------------------------------------------------------

const MOST = { active: 1000, ended: 300, requests: 300, fullCards: 12, slots: 6 };
const STEP = { accounts: 48, sessions: 60, requests: 60 };
const known = {
  he: null, manual: false, began: 0, totals: {}, faults: [],
  accounts: new Map(), sessions: new Map(), requests: new Map(), held: new Set(),
};
const shown = { text: "", account: null, state: "all", errors: false, ...STEP };
let heard = { now: 0, at: 0 };

const clockNow = () => known.manual || !live() ? heard.now : heard.now + performance.now() - heard.at;
const live = () => document.body.dataset.link === "live";
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// ---- Small tools ---------------------------------------------------------------------------------------------------

const $ = id => document.getElementById(id);
const many = (count, one, more = one + "s") => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;

function make(tag, kind, ...inside) {
  const node = document.createElement(tag);
  if (kind) node.className = kind;
  node.append(...inside);
  return node;
}

function put(node, text) { if (node.textContent !== text) node.textContent = text; }
function cell(kind, ...inside) {
  const node = make("span", kind, ...inside);
  node.setAttribute("role", "cell");
  return node;
}
function named(node, text) { put(node, text); node.title = text; return node; }

/* Gives `parent` one child per item, in order: builds a child for a new key; refills a child if its item changed. */
function children(parent, items, keyOf, build, fill) {
  const nodes = parent.nodesByKey ??= new Map();
  const gone = new Set(nodes.keys());
  let next = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    gone.delete(key);
    let node = nodes.get(key);
    if (!node) { node = build(item); nodes.set(key, node); }
    if (node.item !== item) { node.item = item; fill(node, item); }
    if (node === next) next = next.nextSibling; else parent.insertBefore(node, next);
  }
  for (const key of gone) { nodes.get(key).remove(); nodes.delete(key); }
}

const two = n => String(Math.floor(n)).padStart(2, "0");
function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s <= 120) return `${s} s`;
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)} min` : `${Math.floor(s / 3600)}:${two(s % 3600 / 60)} h`;
}
function exact(ms) { return ms % 1000 ? `${ms / 1000} s` : span(ms); }
function stamp(ms, fraction = true) {
  if (known.manual) {
    const t = ms - known.began, whole = `+${Math.floor(t / 3600000)}:${two(t / 60000 % 60)}:${two(t / 1000 % 60)}`;
    return fraction ? `${whole}.${String(t % 1000).padStart(3, "0")}` : whole;
  }
  const d = new Date(ms), whole = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  return fraction ? `${whole}.${String(d.getMilliseconds()).padStart(3, "0")}` : whole;
}

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

let lostWord = "";  // in the title, and beside the red dot

function lose(why, short) {
  source.close();
  source = null;
  clearTimeout(retry);
  retry = setTimeout(connect, 1000);
  if (document.body.dataset.link === "lost") return;
  lostWord = short;
  heard = { now: clockNow(), at: performance.now() };
  const seen = known.he ? "The page shows the state of that moment; " : "";
  const at = new Date().toLocaleTimeString([], { hour12: false });
  put($("notice"), `${why} (${at}). ${seen}the page tries to connect again.`);
  link("lost");
}

function link(state) {
  document.body.dataset.link = state;
  put($("link-text"), { live: "Live", lost: lostWord, connecting: "Connecting" }[state]);
  $("notice").hidden = state !== "lost";
  const doing = document.querySelectorAll("#advance button, #form .main, #release, #clear, .card .foot button");
  for (const button of doing) button.disabled = state !== "live";
  for (const row of $("sessions").children) lease(row);
  draw();
}

// A hidden tab closes its connection after a minute, because browsers allow only a few connections per server.
let rest = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(rest);
  if (document.hidden) rest = setTimeout(() => { clearTimeout(retry); source?.close(); source = null; }, 60000);
  else if (!source) connect();
});

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

// ---- Drawing -------------------------------------------------------------------------------------------------------

let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; drawAll(); });
}

function drawAll() {
  if (!known.he) return;
  drawAccounts();
  drawSessions();
  drawRequests();
  drawFaults();
  sayTimes();
  const waiting = known.held.size ? `(${known.held.size} waiting) ` : "";
  const sessions = `${waiting}${many(known.totals.active, "session")}`;
  document.title = `${document.body.dataset.link === "lost" ? lostWord : sessions} · Usher head-end`;
}

function drawOnce() {
  const he = known.he, rules = $("rules");
  put($("address"), ssmAddress());
  rules.replaceChildren();
  const words = [
    ["Streams per account", `${he.limit}`],
    ["Keep-alive", `every ${exact(he.period_ms)}`],
    ["Expiry", `after ${exact(he.lifetime_ms)}`],
    ["Session token",
      { strict: "newest only", accept_previous: "newest or previous", none: "never changes" }[he.rotation]
        ?? he.rotation],
  ];
  if (he.enforced.length) words.push(["Enforced by licence", he.enforced.join(", ")]);
  for (const [term, text] of words) rules.append(make("div", "", make("dt", "", term), make("dd", "", text)));
  put($("clock-kind"), known.manual ? "manual: moves only by advance" : "system");
  $("advance").hidden = !known.manual;
}

function drawClock() {
  const now = clockNow();
  put($("time"), stamp(now, known.manual));
  put($("date"), known.manual ? `${new Date(now).toISOString().replace("T", " ").slice(0, 19)} UTC on its clock`
    : new Date(now).toLocaleDateString("en", { weekday: "long", year: "numeric", month: "long", day: "numeric" }));
}

// Accounts

function drawAccounts() {
  const all = [...known.accounts.values()];
  const dense = all.length > MOST.fullCards;
  const rank = account => recent(account) ? 0 : account.held >= account.limit ? 1 : account.held ? 2 : 3;
  const list = dense ? [...all].sort((a, b) => rank(a) - rank(b)) : all;
  const full = all.filter(account => account.held >= account.limit).length;
  const counts = [many(all.length, "account"), `${many(known.totals.active, "session")} held`];
  if (full) counts.push(`${full} at the limit`);
  put($("accounts-count"), all.length ? counts.join(", ") : "");
  document.querySelector(".accounts").classList.toggle("dense", dense);
  const items = list.slice(0, shown.accounts);
  const bySlot = new Map();
  for (const session of known.sessions.values()) {
    if (session.state !== "active") continue;
    const held = bySlot.get(session.account) ?? [];
    held.push(session);
    bySlot.set(session.account, held);
  }
  const fill = (card, account) => fillAccount(card, account, bySlot.get(account.name) ?? []);
  children($("accounts"), items, account => account.name, buildAccount, fill);
  for (const card of $("accounts").children) card.classList.toggle("chosen", card.item.name === shown.account);
  const begin = ["No account has asked for a session. Point a player at ", make("code", "", ssmAddress()),
    " and it appears here."];
  empty("accounts-empty", all.length === 0, false, begin, []);
  const scope = $("scope");
  scope.hidden = shown.account === null;
  named(scope, `Only ${shown.account} \u00d7`);
  children($("names"), items.slice(0, 50), account => account.name, account => new Option("", account.name), () => {});
}

/* Whether a set-up of the account was refused within the lifetime of a session. */
function recent(account) {
  return account.refused_ms !== null && clockNow() - account.refused_ms < known.he.lifetime_ms;
}

function buildAccount() {
  const card = make("article", "card");
  card.name_ = make("button", "who name");
  card.name_.type = "button";
  card.name_.onclick = () => choose({ account: shown.account === card.item.name ? null : card.item.name });
  card.ratio = make("span", "ratio");
  card.slots = make("div", "slots");
  card.said = make("span", "name");
  card.kill = make("button", "", "Kill");
  card.kill.title = "Kill the sessions of this account, as an operator would";
  card.kill.type = "button";
  card.kill.onclick = () => twice(card.kill, "Kill", `Kill ${card.item.held}?`, () => kill(card.item));
  card.append(make("div", "line", card.name_, card.ratio), card.slots, make("div", "line foot", card.said, card.kill));
  return card;
}

function fillAccount(card, account, held) {
  const full = account.held >= account.limit;
  card.classList.toggle("full", full);
  named(card.name_, account.name);
  card.ratio.replaceChildren(make("b", "", String(account.held)), ` of ${account.limit}`);
  if (account.limit <= MOST.slots) {
    card.slots.className = "slots";
    card.slots.replaceChildren(...Array.from({ length: Math.max(account.limit, account.held) }, (_, i) => {
      const taken = i < account.held;
      return named(make("span", taken ? "slot taken name" : "slot name"), taken ? held[i]?.device ?? "in use" : "free");
    }));
  } else {
    const bar = make("i");
    bar.style.transform = `scaleX(${Math.min(1, account.held / account.limit)})`;
    card.slots.className = "meter";
    card.slots.replaceChildren(bar);
  }
  card.kill.hidden = account.held === 0;
  card.kill.disabled = !live();
  sayAccount(card);
}

function sayAccount(card) {
  const { held, limit, refused, refused_ms } = card.item;
  const ago = clockNow() - refused_ms;
  card.classList.toggle("refusing", recent(card.item));
  card.said.className = refused ? "name refused" : "name";
  const quiet = held >= limit ? "At its limit" : held ? "" : "Nothing held";
  named(card.said, refused ? `${refused.toLocaleString("en")} refused, ${span(ago)} ago` : quiet);
}

// Sessions

const STATE_WORDS = { active: "held", torn_down: "torn down", expired: "expired", killed: "killed" };

function matches(...texts) {
  return !shown.text || texts.some(text => text && text.toLowerCase().includes(shown.text));
}

function drawSessions() {
  const { totals } = known, all = [...known.sessions.values()].reverse();
  const chosen = all.filter(s => (shown.account === null || s.account === shown.account)
    && (shown.state === "all" || (shown.state === "active") === (s.state === "active"))
    && matches(s.account, s.device, s.token, STATE_WORDS[s.state], ...s.contents));
  const over = chosen.filter(s => s.state !== "active").sort((a, b) => b.ended_ms - a.ended_ms);
  const list = [...chosen.filter(s => s.state === "active"), ...over];
  children($("sessions"), list.slice(0, shown.sessions), s => s.id, buildSession, fillSession);
  const counted = ["active", ...["torn_down", "expired", "killed"].filter(state => totals[state])];
  const words = counted.map(state => `${totals[state].toLocaleString("en")} ${STATE_WORDS[state]}`).join(", ");
  put($("sessions-count"), all.length ? words : "");
  const total = totals.active + totals.torn_down + totals.expired + totals.killed;
  const hidden = list.length > shown.sessions ? 0 : total - all.length;
  const none = all.length ? ["No session matches. ", clearer()] : ["No session yet."];
  empty("sessions-empty", chosen.length === 0, hidden > 0, none, [`${many(hidden, "older session")} not shown`]);
}

// Only visible rows update their times and move their bars.
const inSight = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) {
    target.inSight = isIntersecting;
    if (target.isConnected) lease(target); else inSight.unobserve(target);
  }
});

function buildSession(session) {
  const row = make("div", "row");
  row.setAttribute("role", "row");
  row.state = make("span");
  row.account = cell("name"); row.device = cell("name"); row.content = cell("name");
  row.period = cell(""); row.token = cell("mono");
  row.since = make("span"); row.left = make("span"); row.bar = make("i"); row.mark = make("b");
  row.mark.style.insetInlineStart = `${100 - 100 * known.he.period_ms / known.he.lifetime_ms}%`;
  const track = make("div", "track", row.bar, row.mark);
  const lease = cell("lease", make("div", "words", row.since, row.left), track);
  row.append(cell("state", make("i"), row.state), row.account, row.device, row.content, row.period, lease, row.token);
  if (clockNow() - session.created_ms < 2000 && !known.manual) row.classList.add("fresh");
  inSight.observe(row);
  return row;
}

function fillSession(row, session) {
  row.dataset.state = session.state;
  put(row.state, STATE_WORDS[session.state]);
  named(row.account, session.account);
  named(row.device, session.device ?? "\u2013");
  const more = session.more_contents ? ` and ${session.more_contents} more` : "";
  named(row.content, (session.contents.join(", ") || "\u2013") + more);
  put(row.period, exact(known.he.period_ms));
  named(row.token, session.token);
  row.token.title = `session ${session.id}: ${many(session.beats, "keep-alive")}, ${many(session.licenses, "licence")}`;
  lease(row);
}

function share(session) {
  return `scaleX(${Math.max(0, Math.min(1, (session.expires_ms - clockNow()) / known.he.lifetime_ms))})`;
}

/* One animation shrinks the bar until the expiry; a keep-alive starts a new one. */
function lease(row) {
  const session = row.item;
  if (!session) return;
  row.shrinking?.cancel();
  row.shrinking = null;
  if (session.state !== "active") return sayLease(row);
  if (!row.inSight) return;
  sayLease(row);
  row.bar.style.transition = known.manual ? "transform .35s" : "";
  if (known.manual || !live() || calm.matches) return;
  const duration = Math.max(0, session.expires_ms - clockNow());
  const frames = [{ transform: share(session) }, { transform: "scaleX(0)" }];
  row.shrinking = row.bar.animate(frames, { duration, fill: "forwards" });
}

function sayLease(row) {
  const session = row.item, now = clockNow();
  const late = session.state === "active" && now - session.kept_ms > known.he.late_ms;
  if (late !== "late" in row.dataset) late ? row.dataset.late = "" : delete row.dataset.late;
  if (session.state === "active") {
    put(row.since, `${span(now - session.kept_ms)} ago`);
    put(row.left, `${late ? "late, " : ""}${span(session.expires_ms - now)} left`);
    if (!row.shrinking) row.bar.style.transform = share(session);
  } else {
    put(row.since, `at ${stamp(session.ended_ms, false)}`);
    put(row.left, many(session.beats, "keep-alive"));
  }
}

// Requests

function wrong(r) {
  const unanswered = r.status === null && r.outcome !== "pending";
  return r.status >= 400 || r.code !== null || unanswered || r.outcome === "damaged";
}

function drawRequests() {
  const all = [...known.requests.values()].sort((a, b) => b.number - a.number);
  const chosen = all.filter(r => (shown.account === null || r.account === shown.account) && (!shown.errors || wrong(r))
    && matches(r.account, r.route, r.key_system, r.line, r.given, r.fault, String(r.code ?? r.status ?? ""),
      ...r.sent));
  children($("requests"), chosen.slice(0, shown.requests), r => r.number, buildRequest, fillRequest);
  const errors = all.filter(wrong).length, total = known.totals.requests, forgotten = total - all.length;
  const among = forgotten > 0 ? ` among the last ${all.length}` : "";
  put($("requests-count"), total ? many(total, "request") + (errors ? `, ${many(errors, "error")}${among}` : "") : "");
  const none = all.length ? ["No request matches. ", clearer()] : ["No request has arrived."];
  const older = [`${many(forgotten, "older request")} in the journal`];
  empty("requests-empty", chosen.length === 0, forgotten > 0, none, older);
}

function buildRequest(request) {
  const row = make("div", "row");
  row.setAttribute("role", "row");
  row.time = cell("time-of"); row.route = cell("route"); row.account = cell("name");
  row.tokens = cell("mono"); row.answer = cell("answer"); row.why = cell("why");
  row.append(row.time, row.route, row.account, row.tokens, row.answer, row.why);
  if (!known.manual && clockNow() - request.at_ms < 2000) row.classList.add("fresh");
  return row;
}

const ROUTE_WORDS = {
  setup: "set-up", license: "licence", "license-renewal": "licence renewal", "renewal-wv": "renewal",
  ckc: "key request", rights: "rights licence", "kill-account": "kill account", "kill-device": "kill device",
};
const routeWords = route => ROUTE_WORDS[route] ?? route;

function fillRequest(row, r) {
  const pending = r.outcome === "pending", error = wrong(r);
  row.classList.toggle("error", error);
  row.classList.toggle("pending", pending);
  put(row.time, stamp(r.at_ms));
  row.time.title = `request ${r.number}`;
  const name = named(make("span", "name"), r.line ?? routeWords(r.route));
  row.route.replaceChildren(name, make("small", "", r.key_system ?? ""));
  named(row.account, r.account ?? "");
  named(row.tokens, `${r.sent.join(", ") || "no token"}${r.given ? ` → ${r.given}${r.lost ? " lost" : ""}` : ""}`);
  const badges = [];
  if (pending) badges.push(badge("wait", known.held.has(r.number) ? "held" : "under way"));
  else if (r.status === null) badges.push(badge("no", r.outcome === "client-gone" ? "client gone" : "no reply"));
  else {
    const words = r.code === null ? String(r.status) : `${r.status} · ${r.code}`;
    badges.push(badge(r.status < 400 && !error ? "ok" : "no", words));
  }
  if (r.status !== null && r.outcome === "damaged") badges.push(badge("gone", "damaged"));
  if (r.fault) badges.push(badge("fault", `fault: ${r.fault}`));
  const took = r.answered_ms === null ? 0 : r.answered_ms - r.at_ms;
  if (took >= 100) badges.push(make("small", "", took < 1000 ? `${took} ms` : `${(took / 1000).toFixed(1)} s`));
  row.answer.replaceChildren(...badges);
  row.why.hidden = !r.message;
  put(row.why, r.message ?? "");
}

function badge(kind, text) { return named(make("span", `badge ${kind}`), text); }

// Faults and held requests

function drawFaults() {
  const held = [...known.held], routes = new Map();
  for (const number of held) {
    const word = routeWords(known.requests.get(number)?.route ?? "request");
    routes.set(word, (routes.get(word) ?? 0) + 1);
  }
  $("held").hidden = held.length === 0;
  put($("held-count"), `${many(held.length, "request")} held`);
  put($("held-what"), [...routes].map(([word, count]) => count > 1 ? `${count} \u00d7 ${word}` : word).join(", "));
  const lines = known.faults.map((fault, index) => ({ ...fault, index }));
  children($("faults"), lines, line => line.index, () => make("li"), (node, line) => {
    const to = [line.route === "*" ? "any request" : routeWords(line.route)];
    if (line.key_system) to.push(`(${line.key_system})`);
    if (line.account !== null) to.push(`of ${line.account}`);
    const left = line.left === null ? "every time" : `${line.left}\u00d7`;
    node.replaceChildren(make("span", "", line.label), make("span", "left", left), make("small", "", to.join(" ")));
  });
  const count = lines.reduce((sum, line) => sum + (line.left ?? 0), 0);
  put($("faults-count"), lines.length ? count ? String(count) : "standing" : "");
  $("clear").hidden = lines.length === 0;
  empty("faults-empty", lines.length === 0, false, ["None. Every request gets its normal reply."], []);
}

function ssmAddress() { return `${location.origin}/${encodeURIComponent(known.he.tenant)}/ssm`; }
function clearer() { const b = make("button", "quiet", "Show all"); b.type = "button"; b.onclick = showAll; return b; }
function empty(id, none, some, words, more) {
  const node = $(id), kind = none ? `none ${words.length}` : some ? more.join() : "";
  node.hidden = !none && !some;
  if (node.kind === kind) return;
  node.kind = kind;
  node.replaceChildren(...(none ? words : more));
}

// Updates the texts that change with time: how long ago something happened, and the clock.
function sayTimes() {
  drawClock();
  for (const row of $("sessions").children) if (row.inSight && row.item?.state === "active") sayLease(row);
  for (const card of $("accounts").children) if (card.item?.refused) sayAccount(card);
}

setInterval(() => {
  if (!known.he) return;
  if (live() && source && performance.now() - heardAt > 25000) return lose("The head-end has been silent");
  if (known.manual || document.hidden || !live()) return;
  sayTimes();
}, 500);

// ---- Actions -------------------------------------------------------------------------------------------------------

async function post(name, body, done) {
  try {
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(`/_control/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
    const value = await reply.json();
    if (!reply.ok) throw new Error(value.error ?? `status ${reply.status}`);
    toast(done(value));
    return null;
  } catch (error) {
    const text = error instanceof TypeError ? "the head-end does not answer" : error.message;
    if (name !== "faults") toast(text, true);
    return text;
  }
}

let fading = 0;
function toast(text, bad = false) {
  if (!text) return;
  const node = $("toast");
  put(node, text);
  node.className = bad ? "toast shown bad" : "toast shown";
  clearTimeout(fading);
  fading = setTimeout(() => { node.className = "toast"; }, 3500);
}

/* A button that kills sessions asks for a second click. */
function twice(button, words, question, act) {
  if (button.classList.contains("sure")) { button.classList.remove("sure"); put(button, words); act(); return; }
  button.classList.add("sure");
  put(button, question);
  setTimeout(() => { button.classList.remove("sure"); put(button, words); }, 3000);
}

function kill(account) {
  const session = [...known.sessions.values()].find(s => s.account === account.name && s.state === "active");
  const whose = session ? { account_of: session.id } : { account: account.name };
  post("kill", whose, ({ killed }) => `${many(killed, "session")} of ${account.name} killed`);
}

for (const button of $("advance").children) {
  button.onclick = () => post("advance", { ms: Number(button.dataset.ms) }, () => "");
}
$("release").onclick = () => post("release", {}, ({ released }) => `${many(released, "request")} released`);
$("clear").onclick = () => post("faults", { clear: true }, () => "The fault script is empty");
$("address").onclick = async () => {
  try {
    await navigator.clipboard.writeText(ssmAddress());
    toast("Address copied");
  } catch { toast("The browser does not allow copying", true); }
};

/* Shows the chosen rows from the first one. */
function choose(choice) {
  Object.assign(shown, STEP, choice);
  for (const box of document.querySelectorAll(".scroll")) box.scrollTop = 0;
  draw();
}

// Long lists render only some rows, and more rows when the viewer scrolls near the end.
const boxes = { accounts: $("accounts"), sessions: $("sessions").parentNode, requests: $("requests").parentNode };
for (const [list, box] of Object.entries(boxes)) {
  box.addEventListener("scroll", () => {
    if (box.scrollTop + 2 * box.clientHeight < box.scrollHeight || $(list).children.length < shown[list]) return;
    shown[list] += STEP[list];
    draw();
  }, { passive: true });
}

function press(group, button) {
  for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
}
function showAll() {
  $("search").value = "";
  for (const group of document.querySelectorAll(".switch")) press(group, group.firstElementChild);
  choose({ text: "", account: null, state: "all", errors: false });
}
for (const button of document.querySelectorAll(".switch button")) button.onclick = () => {
  press(button.parentNode, button);
  choose(button.dataset.state ? { state: button.dataset.state } : { errors: button.dataset.errors === "true" });
};
$("search").oninput = () => choose({ text: $("search").value.trim().toLowerCase() });
$("scope").onclick = () => choose({ account: null });

// The form: a route, a kind of fault, and the arguments of that kind.

const WHEN = { name: "when", words: "when",
  choices: [["before", "before it takes effect"], ["after", "after it took effect"]] };
const number = (name, words, value, optional = false) => ({ name, words, value, optional, number: true });
const KINDS = [
  ["status", "an HTTP status", number("status", "status", 503), number("retry_after", "retry after", "", true)],
  ["rights_error", "an ExpressPlay error", { ...number("number", "number", -2002), min: -9999 }],
  ["error", "an error code", number("code", "code", 1007), number("status", "status", 400)],
  ["stall", "no reply until released", WHEN],
  ["delay", "a late reply", number("ms", "ms", 3000), WHEN],
  ["drop", "a closed connection", WHEN],
  ["reset", "a reset connection", WHEN],
  ["reset_in_headers", "a reset amid the headers"],
  ["reset_in_body", "a reset amid the body"],
  ["truncate", "half a body"],
  ["short_length", "a length too short"],
  ["trickle", "a trickle", number("piece_bytes", "bytes", 1), number("every_ms", "each ms", 1000)],
  ["bad_chunks", "unreadable chunks"],
  ["truncated_chunks", "chunks without an end"],
  ["endless", "100 MB of blanks", number("size_bytes", "bytes", 100000000)],
  ["empty_body", "an empty body"],
  ["non_json", "text in place of JSON"],
  ["html_page", "a sign-in page"],
  ["without", "JSON without a field", { name: "fields", words: "field", value: "sessionToken", list: true }],
  ["redirect", "a redirect", { name: "location", words: "to", value: "https://example.com/" }],
  ["oversized", "a huge body", number("size_bytes", "bytes", 1000000)],
  ["latency", "toxiproxy: latency", number("latency", "ms", 1000), number("jitter", "jitter", 200)],
  ["bandwidth", "toxiproxy: bandwidth", { ...number("rate", "KB/s", 1), min: 1 }],
  ["slow_close", "toxiproxy: slow_close", number("delay", "ms", 1000)],
  ["timeout", "toxiproxy: timeout", number("timeout", "ms", 1000)],
  ["reset_peer", "toxiproxy: reset_peer", number("timeout", "ms", 0)],
  ["slicer", "toxiproxy: slicer", { ...number("average_size", "bytes", 64), min: 1 },
    number("size_variation", "plus or minus", 32), number("delay", "each us", 10)],
  ["limit_data", "toxiproxy: limit_data", number("bytes", "bytes", 100)],
  ["EMPTY_RESPONSE", "WireMock: EMPTY_RESPONSE"],
  ["MALFORMED_RESPONSE_CHUNK", "WireMock: MALFORMED_RESPONSE_CHUNK"],
  ["RANDOM_DATA_THEN_CLOSE", "WireMock: RANDOM_DATA_THEN_CLOSE"],
  ["CONNECTION_RESET_BY_PEER", "WireMock: CONNECTION_RESET_BY_PEER"],
];
const ROUTES = [
  "setup", "heartbeat", "teardown", "license", "license-renewal", "renewal-wv", "certificate", "ckc", "rights",
  "entitlement",
  "kill-account", "kill-device", "*"
];

for (const route of ROUTES) {
  $("route").append(new Option(route === "*" ? "request of any kind" : routeWords(route), route));
}
for (const [kind, words] of KINDS) $("kind").append(new Option(words, kind));
$("route").value = "heartbeat";

function kindFields() { return KINDS.find(([kind]) => kind === $("kind").value).slice(2); }
function drawFields() {
  $("fields").replaceChildren(...kindFields().map(field => {
    const input = make(field.choices ? "select" : "input");
    if (field.choices) for (const [value, words] of field.choices) input.append(new Option(words, value));
    else {
      Object.assign(input, { type: field.number ? "number" : "text", value: field.value, required: !field.optional });
      if (field.number) input.min = field.min ?? 0;
      if (field.optional) input.placeholder = "not said";
    }
    input.name = field.name;
    return make("label", "", make("span", "", field.words), input);
  }));
}
$("kind").onchange = drawFields;
drawFields();
$("always").onchange = () => { $("times").disabled = $("always").checked; };

$("form").onsubmit = async event => {
  event.preventDefault();
  const fault = { kind: $("kind").value };
  for (const field of kindFields()) {
    const value = $("fields").querySelector(`[name=${field.name}]`).value.trim();
    if (value === "" && field.optional) continue;
    fault[field.name] = field.number ? Number(value) : field.list ? value.split(/[\s,]+/) : value;
  }
  const often = $("always").checked ? { always: true } : { times: Number($("times").value) };
  const body = { route: $("route").value, fault, ...often };
  if ($("account").value) body.account = $("account").value;
  const problem = await post("faults", body, () => "Scripted");
  $("wrong").hidden = problem === null;
  put($("wrong"), problem ?? "");
};

// Light, dark, or as the system is set.
const THEMES = { auto: "◐", light: "☀", dark: "☾" };
function theme(name) {
  document.documentElement.dataset.theme = name;
  put($("theme"), THEMES[name]);
  $("theme").setAttribute("aria-label", `Colours: ${name}`);
  try { localStorage.setItem("usher-theme", name); } catch { /* the browser stores nothing */ }
}
let kept = "auto";
try { kept = localStorage.getItem("usher-theme") ?? kept; } catch { /* likewise */ }
theme(kept in THEMES ? kept : "auto");
$("theme").onclick = () => {
  const names = Object.keys(THEMES);
  theme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
};

connect();
})();
"""
