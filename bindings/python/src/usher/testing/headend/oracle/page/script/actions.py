"""What the tester does: buttons, filters and colours."""

from __future__ import annotations

SCRIPT = r"""
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
    if (name !== "faults" && name !== "token") toast(text, true);
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
"""
