/// Makes the tables and diagrams of docs/model.md.
enum Page {
  static func head(depth: Int) -> String {
    """
    # The state machines

    `make model` writes this page; do not edit it. It runs the [machines](glossary.md#machine) of `Sources/UsherCore`
    through every order of \(depth) events: replies, losses, timers, licences, tokens, [payloads](glossary.md#payload),
    kills, suspends, closes. From each state that it reaches, it closes the [playback](glossary.md#playback) and lets it
    end. It fails in five cases: a [session](glossary.md#session) is still held, a token is sent after its
    [teardown](glossary.md#teardown), a token is sent that is not the newest known, a completion is called twice or
    never, or a state never ends. It also fails if the comment of a phase lists other next phases than those that the
    search saw. `make model SECONDS=120` searches as deep as the time allows.

    A state is named after the session's phase, what keeps the session alive, and the state of the [content
    token](glossary.md#content-token) if that is not known. Events that do not change the state are left out.
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
