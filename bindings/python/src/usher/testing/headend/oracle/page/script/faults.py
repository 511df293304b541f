"""The panel Faults to come: the queued faults and the held requests. ``fault_form`` is its form."""

from __future__ import annotations

SCRIPT = r"""
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
"""
