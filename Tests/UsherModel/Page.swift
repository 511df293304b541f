/// Makes the tables and diagrams of docs/model.md.
enum Page {
  static func head(depth: Int) -> String {
    """
    # The state machines

    `make model` writes this page; do not edit it. A search runs the [machines](glossary.md#machine) of
    `Sources/UsherCore` through every order of \(depth) events: replies, lost replies, timers, licence requests, tokens,
    [payloads](glossary.md#payload), kills by the operator, suspends and closes. From each state that it reaches, the
    search closes the [playback](glossary.md#playback) and delivers all replies, until the playback has ended.

    The search fails if a machine breaks a rule. The most important rules are: each request has the newest token that
    the machine knows; after a [teardown](glossary.md#teardown) the machine sends nothing but that teardown again; each
    licence request completes exactly once; every playback ends; and no [session](glossary.md#session) whose newest
    token arrived remains at the [head-end](glossary.md#head-end), unless the host left the session or all retries of
    its teardown failed. `Tests/UsherModel/World.swift` and `Steps.swift` have all rules. `make model` also fails if the
    comment of a phase lists other next phases than those that the search saw. `make model SECONDS=120` then searches
    longer orders of events for 120 seconds.

    The name of a state begins with the phase of the session. In the phase *active* the next part says what the
    [keep-alive](glossary.md#keep-alive) does: *beat waits* (for its time), *beating* (in flight), *beat retries*,
    *payload asked* or *paused*; *outage* means that the keep-alives of at least one [period](glossary.md#period) have
    failed. *Replaced* means that the playback replaces its session. *Token asked* and *token awaited* mean that the
    playback does not have its [content token](glossary.md#content-token) yet. In the column *event*, *lost* means that
    a request or its reply is lost, *5xx* that the server replies with an error, and *close, leave* that the host closes
    the playback and leaves the session. The page leaves out events that do not change the state.
    """
  }

  static func section(_ setting: Setting, _ search: Search) -> String {
    let moves = search.rows.keys.filter { $0.from != $0.to }
    var lines = [
      "", "## \(setting.name)", "",
      "\(Set(moves.flatMap { [$0.from, $0.to] }).count) states, \(moves.count) transitions.", ""
    ]
    lines += ["```mermaid", "stateDiagram-v2"]
    var edges: [String: [String]] = [:]
    for move in moves { edges["\(id(move.from)) --> \(id(move.to))", default: []].append(move.step) }
    for name in Set(moves.flatMap { [$0.from, $0.to] }).sorted() { lines.append("  state \"\(name)\" as \(id(name))") }
    for (edge, steps) in edges.sorted(by: { $0.key < $1.key }) {
      lines.append("  \(edge): \(steps.sorted().joined(separator: ", "))")
    }
    lines += ["```", "", "| state | event | next |", "|---|---|---|"]
    var next: [String: Set<String>] = [:]
    for move in moves { next["\(move.from) | \(move.step)", default: []].insert(move.to) }
    for (row, states) in next.sorted(by: { $0.key < $1.key }) {
      lines.append("| \(row) | \(states.sorted().joined(separator: "; ")) |")
    }
    return lines.joined(separator: "\n")
  }

  private static func id(_ name: String) -> String { String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" }) }
}
