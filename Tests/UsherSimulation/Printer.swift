@testable import UsherCore
@testable import UsherEngine

/// Prints the results.
enum Printer {
  static func number(_ value: Int) -> String {
    var digits = Array("\(value)")
    var at = digits.count - 3
    while at > 0 {
      digits.insert(",", at: at)
      at -= 3
    }
    return String(digits)
  }

  /// Returns a time in hours, minutes and seconds, like "3:07:09.250".
  static func time(_ at: Milliseconds) -> String {
    func two(_ value: UInt64, _ width: Int = 2) -> String {
      String(repeating: "0", count: max(0, width - "\(value)".count)) + "\(value)"
    }
    return "\(at / 3_600_000):\(two(at / 60_000 % 60)):\(two(at / 1000 % 60)).\(two(at % 1000, 3))"
  }

  static func coverage(_ coverage: Coverage) {
    func list(_ pairs: [(String, Int)]) -> String {
      pairs.filter { $0.1 > 0 }.map { "\($0.0) \(number($0.1))" }.joined(separator: ", ")
    }
    func line(_ name: String, _ total: Int, _ parts: [(String, Int)]) {
      print("  \(name): \(number(total)) (\(list(parts)))")
    }
    let routes = Route.allCases.map { ("\($0)", coverage.requests[Int($0.rawValue)]) }
    let events = EventKind.allCases.map { ("\($0)", coverage.events[Int($0.rawValue)]) }
    line("playbacks", coverage.plays.reduce(0, +), Kind.allCases.map { ("\($0)", coverage.plays[Int($0.rawValue)]) })
    line("requests", coverage.requests.reduce(0, +), routes)
    line("events", coverage.events.reduce(0, +), events)
    line(
      "faults met", coverage.faults.reduce(0, +), Fault.allCases.map { ("\($0)", coverage.faults[Int($0.rawValue)]) })
    line(
      "questions to the host", coverage.callbacks.reduce(0, +),
      Callback.allCases.map { ("\($0)", coverage.callbacks[Int($0.rawValue)]) })
    line(
      "  of them answered late, never or badly", coverage.habits.reduce(0, +),
      Habit.allCases.map { ("\($0)", coverage.habits[Int($0.rawValue)]) })
    print(
      "  completions: \(number(coverage.completions)); instants of time: \(number(coverage.steps)); "
        + "items in the stories: \(number(coverage.items)); "
        + "replies read late: \(number(coverage.lateReplies))"
    )
    let cells = Phase.allCases.count * Input.allCases.count
    let reached = Phase.allCases.reduce(0) { sum, phase in
      sum + Input.allCases.filter { coverage.count(phase, $0) > 0 }.count
    }
    let (never, rare) = (Reasons.never(coverage), Reasons.rare(coverage))
    print(
      "  transitions: \(coverage.transitions); of \(cells) phases with inputs \(reached) were reached, "
        + "\(never) are impossible, \(rare) are rare"
    )
  }

  static func matrix(_ coverage: Coverage) {
    for phase in Phase.allCases {
      for input in Input.allCases {
        let next = coverage.reached(phase, input)
        if !next.isEmpty {
          print("\(phase) | \(input) | \(coverage.count(phase, input)) | \(next.map(\.name).joined(separator: "; "))")
        }
      }
    }
  }

  /// Shortens a story in which the library breaks a promise, as long as the library still breaks it, and prints the
  /// result line by line.
  static func story(_ story: Story, _ violation: World.Violation) {
    var shrink = Shrink(story, rule: violation.rule)
    shrink.run()
    let world = World(shrink.story, keepsJournal: true)
    let last = world.run()
    let setting = shrink.story.setting
    print(
      "\nThe shortest story found (\(shrink.story.items.count) of \(story.items.count) items, "
        + "after \(shrink.runs) runs):"
    )
    print(
      "  a period of \(setting.period) ms, \(setting.latency) ms each way, \(setting.perOrigin) requests at once, "
        + "\(setting.limit) sessions to an account"
    )
    let lines = world.journal
    for (index, line) in lines.enumerated() where index < 60 || index >= lines.count - 120 {
      print("  \(time(line.at))  \(line.text)")
      if index == 59, lines.count > 180 { print("  …  \(lines.count - 180) lines") }
    }
    print("\n\(last?.rule ?? violation.rule): \(last?.text ?? violation.text)")
  }
}
