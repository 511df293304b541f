"""The panel Connect a player: the URLs of the head-end, and the form that makes a content token."""

from __future__ import annotations

SCRIPT = r"""
// Connect a player

function showConnect(open) {
  shown.connect = open;
  $("connect").hidden = !open;
  $("connect-open").setAttribute("aria-expanded", String(open));
}
$("connect-open").onclick = () => showConnect($("connect").hidden);

function drawConnect() {
  if (shown.connect === null) showConnect(known.totals.requests === 0);
  const groups = new Map();
  for (const path of known.he.paths) groups.set(path.group, [...groups.get(path.group) ?? [], path]);
  for (const old of $("urls").querySelectorAll("tbody")) old.remove();
  $("urls").append(...[...groups].map(([group, paths]) => make("tbody", "", ...paths.map(drawUrl))));
  const { example_accounts: accounts, example_contents: contents, limit } = known.he;
  $("contents").replaceChildren(...contents.map(content => new Option("", content)));
  for (const [id, [first]] of [["token-account", accounts], ["token-content", contents]]) $(id).value ||= first ?? "";
  $("token-streams").placeholder = limit;
}

function drawUrl({ group, name, path }, index, paths) {
  const url = make("code", "", location.origin + path), row = make("tr", "");
  if (index === 0) {
    const title = make("th", "group", group);
    Object.assign(title, { scope: "rowgroup", rowSpan: paths.length });
    row.append(title);
  }
  const title = make("th", "", name);
  title.scope = "row";
  row.append(title, make("td", "url", url), make("td", "", copier(url, `the URL: ${group}, ${name}`)));
  return row;
}

/* A button that copies the text of a node. `what` completes its name for screen readers. */
function copier(node, what) {
  const button = make("button", "copy", "Copy");
  button.type = "button";
  button.setAttribute("aria-label", `Copy ${what}`);
  button.onclick = () => copy(node);
  return button;
}

/* Browsers have a clipboard only for pages from loopback or https. On other pages this selects the text, and copies it
   with an older command. */
async function copy(node) {
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(node.textContent);
    else { select(node); if (!document.execCommand("copy")) throw new Error("refused"); }
    toast("Copied");
  } catch {
    select(node);
    toast("The browser does not allow copying. The text is selected: press Ctrl+C.", true);
  }
}

function select(node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

$("address").onclick = () => copy($("address"));
$("made").append(copier($("token"), "the content token"));

$("token-form").onsubmit = async event => {
  event.preventDefault();
  const account = $("token-account").value.trim(), content_id = $("token-content").value.trim();
  const body = { account, content_id, session_control: $("token-control").checked };
  const device = $("token-device").value.trim(), streams = $("token-streams").value, valid = $("token-valid").value;
  if (device) body.device = device;
  if (streams) body.max_sessions = Number(streams);
  body.expires_in_s = valid === "" ? null : Number(valid);
  const problem = await post("token", body, ({ token }) => {
    put($("made-for"), `For ${account}${device ? ` on ${device}` : ""}, ${content_id}:`);
    put($("token"), token);
    return "";
  });
  $("made").hidden = problem !== null;
  $("token-wrong").hidden = problem === null;
  put($("token-wrong"), problem ?? "");
};
"""
