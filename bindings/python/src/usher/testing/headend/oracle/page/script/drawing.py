"""Draws the page when the state changes, and updates the texts that change with time."""

from __future__ import annotations

SCRIPT = r"""
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
}

function drawOnce() {
  const he = known.he, rules = $("rules");
  put($("address"), ssmUrl());
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
  drawConnect();
}

function drawClock() {
  const now = clockNow();
  put($("time"), stamp(now, known.manual));
  put($("date"), known.manual ? `${new Date(now).toISOString().replace("T", " ").slice(0, 19)} UTC on its clock`
    : new Date(now).toLocaleDateString("en", { weekday: "long", year: "numeric", month: "long", day: "numeric" }));
}

function ssmUrl() { return location.origin + known.he.ssm_path; }
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
  if (live() && source && performance.now() - heardAt > 25000) return lose("The head-end has been silent", "No answer");
  if (known.manual || document.hidden || !live()) return;
  sayTimes();
}, 500);
"""
