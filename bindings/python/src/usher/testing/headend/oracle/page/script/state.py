"""The state of the page, and small helper functions."""

from __future__ import annotations

SCRIPT = r"""
// ---- State ---------------------------------------------------------------------------------------------------------

const MOST = { active: 1000, ended: 300, requests: 300, fullCards: 12, slots: 6 };
const STEP = { accounts: 48, sessions: 60, requests: 60 };
const known = {
  he: null, manual: false, began: 0, totals: {}, faults: [],
  accounts: new Map(), sessions: new Map(), requests: new Map(), held: new Set(),
};
const shown = { text: "", account: null, state: "all", errors: false, connect: null, ...STEP };
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
"""
