"""The panel Requests."""

from __future__ import annotations

SCRIPT = r"""
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
"""
