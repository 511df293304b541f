"""The panel Faults to come: the queued faults, the held requests, and the form."""

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
"""
