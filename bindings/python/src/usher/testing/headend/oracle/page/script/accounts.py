"""The panel Accounts."""

from __future__ import annotations

SCRIPT = r"""
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
  const panel = document.querySelector(".accounts"), resized = panel.classList.contains("dense") !== dense;
  panel.classList.toggle("dense", dense);
  const names = new Set([...known.he.example_accounts, ...all.map(account => account.name)]);
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
  const begin = ["No account has asked for a session. Point a player at ", make("code", "", ssmUrl()),
    " and it appears here."];
  empty("accounts-empty", all.length === 0, false, begin, []);
  const scope = $("scope");
  scope.hidden = shown.account === null;
  named(scope, `Only ${shown.account} \u00d7`);
  children($("names"), [...names].slice(0, 50), name => name, name => new Option("", name), () => {});
  if (resized) restOnARow();
}

/* The box of the accounts shows whole rows of cards. If a scroll ends in the middle of a row, the box scrolls on to the
   end of this row, in the direction of its last movement. The browser may report the end of the viewer's scroll while
   the box scrolls on: the direction is then the same, so the box ends on the same row. */
let topBefore = 0, down = false;
function noteDirection() {
  const { scrollTop } = $("accounts");
  if (scrollTop !== topBefore) down = scrollTop > topBefore;
  topBefore = scrollTop;
}
function restOnARow() {
  noteDirection();
  const box = $("accounts"), look = getComputedStyle(box);
  const rows = box.scrollTop / (parseFloat(look.gridAutoRows) + parseFloat(look.rowGap));
  const whole = down ? Math.ceil(rows - .01) : Math.floor(rows + .01);
  if (Math.abs(rows - whole) < .01) return;
  box.scrollTo({ top: box.scrollTop * whole / rows, behavior: calm.matches ? "instant" : "smooth" });
}
$("accounts").addEventListener("scroll", noteDirection);
$("accounts").addEventListener("scrollend", restOnARow);

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
"""
