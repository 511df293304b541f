/// The tables and diagrams of docs/model.md.
enum Page {
  static func head(depth: Int) -> String {
    """
    # The state machines

    Made by `make model`, which runs the machines of `Sources/UsherCore` through every order of \(depth) events: replies, losses, timers, licences, tokens, payloads, kills, suspends,
    closes. From each state reached, the playback is then closed and led to its end; a session that is still held, a token sent after its teardown, an older token than the newest
    known, a completion told twice or never, or a state that never ends would be printed instead of this page. `make model SECONDS=120` goes as deep as the time allows.

    A state is the session's phase, what keeps it alive, and the content token's where it is not known. Events that leave a state as it is are left out.
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
