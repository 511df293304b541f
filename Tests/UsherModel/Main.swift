import TestSupport
import UsherCore

#if canImport(Glibc)
  import Glibc
#endif

// usher-model: tries every order of events, up to a depth.
//   usher-model table DEPTH              prints transition tables and diagrams in Markdown, for docs/model.md
//   usher-model phases DEPTH             checks that the comment of each phase lists the phases that can follow it
//   usher-model search SECONDS           searches as deep as the time allows, for every kind of delegate
@main struct Main {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let number = Int(arguments[2]), number > 0 else { return usage() }
    switch arguments[1] {
    case "table": table(depth: number)
    case "phases": phases(depth: number)
    case "search": search(seconds: number)
    default: usage()
    }
  }

  private static func usage() {
    print("usage: usher-model table DEPTH | phases DEPTH | search SECONDS")
    exit(2)
  }

  private static func exitOnViolation(_ setting: Setting, _ search: Search) {
    guard let (story, text) = search.violation else { return }
    print("\(setting.name): \(text)\n  after: \(story.joined(separator: ", "))")
    exit(1)
  }

  private static func table(depth: Int) {
    print(Page.head(depth: depth))
    for setting in Setting.all {
      var search = Search(TransitionLog())
      _ = search.run(setting, depth: depth)
      exitOnViolation(setting, search)
      print(Page.section(setting, search))
    }
  }

  /// Fails if the comment of a phase does not list exactly the phases that can follow this phase.
  private static func phases(depth: Int) {
    let log = TransitionLog()
    for setting in Setting.all {
      var search = Search(log)
      _ = search.run(setting, depth: depth)
      exitOnViolation(setting, search)
    }
    check(log, isWhole: true)
    for transition in log.transitions.map({ "\($0.machine): \($0.from) → \($0.to)" }).sorted() { print(transition) }
  }

  private static let comments = PhaseComments([
    .init("SSMSession", in: "Sources/UsherCore/Session/SSMSession+Lifecycle.swift"),
    // The search does not reach the unseen transitions. They need a licence reply with a new token while a heartbeat is
    // in flight or refused, and so more events than the search tries.
    .init(
      "SSMSession.Beat", "Beat", in: "Sources/UsherCore/Session/SSMSession.swift",
      unseen: ["off": ["inFlight", "asked"], "refused": ["inFlight", "asked"]]),
    // In the search no beat is late, no session starts its beats after the first licence, and no server denies a
    // content token. Unit tests play these events.
    .init(
      "SSMSession.Health", "Health", in: "Sources/UsherCore/Session/SSMSession.swift",
      unseen: ["good": ["doubtful"], "doubtful": ["good", "outage"]]),
    .init(
      "SSMSession.FirstLicense", "FirstLicense", in: "Sources/UsherCore/Session/SSMSession.swift",
      unseen: ["awaited": ["awaited"]]),
    .init("PlaybackMachine", in: "Sources/UsherCore/Playback/PlaybackMachine+Phase.swift"),
    .init(
      "PlaybackMachine.ContentToken", "ContentToken", in: "Sources/UsherCore/Playback/PlaybackMachine.swift",
      unseen: [
        "none": ["askingAfterDenial"], "askingAfterDenial": ["none", "known", "missing"], "awaited": ["none"],
        "known": ["askingAfterDenial", "known"]
      ]),
    .init("LicenseRequest", in: "Sources/UsherCore/Playback/PlaybackMachine.swift")
  ])

  private static func check(_ log: TransitionLog, isWhole: Bool) {
    let differences = comments.differences(log.transitions, isWhole: isWhole)
    guard !differences.isEmpty else { return }
    for line in differences { print(line) }
    exit(1)
  }

  /// Searches all settings, one after the other. Each setting gets an equal share of the time that is left. In this
  /// time the program first tries all orders of one event, then all orders of two events, and so on.
  private static func search(seconds: Int) {
    let end = time(nil) + seconds
    let log = TransitionLog()
    var states = 0
    for (index, setting) in Setting.all.enumerated() {
      let share = time(nil) + max(1, (end - time(nil)) / (Setting.all.count - index))
      var depth = 1
      var reached = 0
      var last = Search(log)
      while depth < 64 {
        var search = Search(log, deadline: { time(nil) >= share })
        let isWhole = search.run(setting, depth: depth)
        exitOnViolation(setting, search)
        states += search.states
        guard isWhole else { break }
        (reached, last) = (depth, search)
        depth += 1
      }
      print(
        "\(setting.name): all orders of \(reached) events, \(last.states) states, \(last.rows.count) transitions; "
          + "no violation, no dead state"
      )
    }
    check(log, isWhole: false)
    print("\(states) states looked at in all, each led to its end")
  }
}
