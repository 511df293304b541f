"""The form that scripts a fault: a route, a kind of fault, and the arguments of that kind.

Beside the words for people it shows the names that programs use: in the control endpoints, in Python, and in toxiproxy
or WireMock.
"""

from __future__ import annotations

SCRIPT = r"""
// The form that scripts a fault

const WHEN = { name: "when", words: "when",
  choices: [["before", "before it takes effect"], ["after", "after it took effect"]] };
const number = (name, words, value, optional = false) => ({ name, words, value, optional, number: true });
const text = (name, words, value) => ({ name, words, value });

// For each kind of fault: its name in the control endpoints, words for it, its arguments, and the same fault or a
// similar one under the name that it has in another program.
const toxiproxy = name => ({ toxiproxy: name }), wiremock = name => ({ WireMock: name });
const like = name => ({ similar: name });
const FAULTS = [
  ["Other replies", [
    ["status", "an HTTP status", [number("status", "status", 503), number("retry_after", "retry after", "", true)]],
    ["error", "an error code", [number("code", "code", 1007), number("status", "status", 400)]],
    ["rights_error", "an ExpressPlay error", [{ ...number("number", "number", -2002), min: -9999 }]],
    ["redirect", "a redirect", [text("location", "to", "https://example.com/")]],
    ["html_page", "a sign-in page", []],
    ["non_json", "text in place of JSON", []],
    ["empty_body", "an empty body", []],
    ["oversized", "a huge body", [number("size_bytes", "bytes", 1000000)]],
    ["without", "JSON without a field", [{ ...text("fields", "field", "sessionToken"), list: true }]],
    ["rename", "JSON with a field renamed", [text("old", "old name", "sessionToken"), text("new", "new", "token")]],
    ["header", "one more header", [text("name", "name", "Retry-After"), text("value", "value", "5")]],
  ]],
  ["Late and slow", [
    ["stall", "no reply until released", [WHEN], like("toxiproxy timeout 0")],
    ["delay", "a late reply", [number("ms", "ms", 3000), WHEN], like("toxiproxy latency")],
    ["trickle", "a trickle", [number("piece_bytes", "bytes", 1), number("every_ms", "each ms", 1000)],
      like("toxiproxy slicer")],
    ["endless", "100 MB of blanks", [number("size_bytes", "bytes", 100000000)]],
  ]],
  ["Broken connections and bodies", [
    ["drop", "a closed connection", [WHEN], like("WireMock EMPTY_RESPONSE")],
    ["reset", "a reset connection", [WHEN], like("WireMock CONNECTION_RESET_BY_PEER")],
    ["reset_in_headers", "a reset amid the headers", []],
    ["reset_in_body", "a reset amid the body", []],
    ["truncate", "half a body", []],
    ["short_length", "a length too short", []],
    ["bad_chunks", "unreadable chunks", []],
    ["truncated_chunks", "chunks without an end", []],
  ]],
  ["toxiproxy", [
    ["latency", "a late reply, more or less", [number("latency", "ms", 1000), number("jitter", "jitter", 200)],
      toxiproxy("latency")],
    ["jitter", "a reply late at random", [number("jitter", "up to ms", 1000)], like("toxiproxy latency")],
    ["bandwidth", "few KB per second", [{ ...number("rate", "KB/s", 1), min: 1 }], toxiproxy("bandwidth")],
    ["slow_close", "a late close", [number("delay", "ms", 1000)], toxiproxy("slow_close")],
    ["timeout", "no reply, then a close", [number("timeout", "ms", 1000)], toxiproxy("timeout")],
    ["reset_peer", "no reply, then a reset", [number("timeout", "ms", 0)], toxiproxy("reset_peer")],
    ["slicer", "a reply in slices", [{ ...number("average_size", "bytes", 64), min: 1 },
      number("size_variation", "plus or minus", 32), number("delay", "each us", 10)], toxiproxy("slicer")],
    ["limit_data", "a close after some bytes", [number("bytes", "bytes", 100)], toxiproxy("limit_data")],
  ]],
  ["WireMock", [
    ["EMPTY_RESPONSE", "no reply, only a close", [], wiremock("EMPTY_RESPONSE")],
    ["MALFORMED_RESPONSE_CHUNK", "headers, then random bytes", [], wiremock("MALFORMED_RESPONSE_CHUNK")],
    ["RANDOM_DATA_THEN_CLOSE", "only random bytes", [], wiremock("RANDOM_DATA_THEN_CLOSE")],
    ["CONNECTION_RESET_BY_PEER", "no reply, only a reset", [], wiremock("CONNECTION_RESET_BY_PEER")],
  ]],
];
const KINDS = new Map(FAULTS.flatMap(([, kinds]) => kinds.map(([kind, , fields, other]) => [kind, { fields, other }])));
const ROUTES = [
  "setup", "heartbeat", "teardown", "license", "license-renewal", "renewal-wv", "certificate", "ckc", "rights",
  "entitlement",
  "kill-account", "kill-device", "*"
];

/* Words for people, and after them the name that programs use, unless both are the same. */
const both = (words, name) => words === name ? words : `${words} (${name})`;
for (const route of ROUTES) {
  $("route").append(new Option(route === "*" ? "request of any kind (*)" : both(routeWords(route), route), route));
}
for (const [title, kinds] of FAULTS) {
  const group = make("optgroup", "", ...kinds.map(([kind, words]) => new Option(both(words, kind), kind)));
  group.label = title;
  $("kind").append(group);
}
$("route").value = "heartbeat";

function drawFields() {
  $("fields").replaceChildren(...KINDS.get($("kind").value).fields.map(field => {
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
  drawNames();
}

/* The fault in the form, as the control endpoint takes it. */
function faultInForm() {
  const fault = { kind: $("kind").value };
  for (const field of KINDS.get(fault.kind).fields) {
    const value = $("fields").querySelector(`[name=${field.name}]`).value.trim();
    if (value === "") continue;
    fault[field.name] = field.number ? Number(value) : field.list ? value.split(/[\s,]+/) : value;
  }
  return fault;
}

function inPython({ kind, ...rest }) {
  const words = Object.entries(rest).map(([name, value]) =>
    Array.isArray(value) ? value.map(one => JSON.stringify(one)).join(", ") : `${name}=${JSON.stringify(value)}`);
  return `Fault.${kind.toLowerCase()}(${words.join(", ")})`;
}

/* Shows the fault in the form under the names that programs use. */
function drawNames() {
  const fault = faultInForm(), json = JSON.stringify(fault, null, 1).replace(/\n\s*/g, " ");
  const names = { HTTP: json, Python: inPython(fault), ...KINDS.get(fault.kind).other };
  $("fault-names").replaceChildren(...Object.entries(names).map(([where, name]) =>
    make("div", "", make("dt", "", where), make("dd", "", make("code", "", name)))));
}

$("kind").onchange = drawFields;
$("fields").oninput = drawNames;
drawFields();
$("always").onchange = () => { $("times").disabled = $("always").checked; };

$("form").onsubmit = async event => {
  event.preventDefault();
  const often = $("always").checked ? { always: true } : { times: Number($("times").value) };
  const body = { route: $("route").value, fault: faultInForm(), ...often };
  if ($("account").value) body.account = $("account").value;
  const problem = await post("faults", body, () => "Scripted");
  $("wrong").hidden = problem === null;
  put($("wrong"), problem ?? "");
};
"""
