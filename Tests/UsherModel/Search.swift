import UsherCore

/// Tries every order of events up to a depth. In each state that it reaches, it also closes a copy of the playback and
/// checks that this copy ends correctly.
struct Search {
  struct Row: Hashable {
    let from: String
    let step: String
    let to: String
  }

  private(set) var states = 0
  private(set) var rows: [Row: Int] = [:]
  private(set) var violation: (story: [String], text: String)?
  private let deadline: () -> Bool
  /// The transitions that all searches which share this log have seen so far.
  private let log: TransitionLog

  /// Makes a search.
  /// - Parameter deadline: a closure that the search calls from time to time. When it returns true, the time is over
  ///   and the search stops.
  init(_ log: TransitionLog, deadline: @escaping () -> Bool = { false }) {
    self.log = log
    self.deadline = deadline
  }

  /// Runs the search. Returns false if the time was over before the search was complete, or if it found a violation.
  mutating func run(_ setting: Setting, depth: Int) -> Bool {
    var story: [Step] = []
    return visit(World(setting, log), depth, &story)
  }

  private mutating func visit(_ world: World, _ depth: Int, _ story: inout [Step]) -> Bool {
    states += 1
    if states % 4096 == 0, deadline() { return false }
    var end = world
    end.drain()
    if let text = world.violation ?? end.violation {
      violation = (story.map { "\($0)" }, text)
      return false
    }
    guard depth > 0 else { return true }
    for step in world.steps {
      var next = world
      next.take(step)
      rows[Row(from: world.machine.phaseName, step: step.name, to: next.machine.phaseName), default: 0] += 1
      story.append(step)
      guard visit(next, depth - 1, &story) else { return false }
      story.removeLast()
    }
    return true
  }
}
