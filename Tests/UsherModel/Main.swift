import UsherCore

#if canImport(Glibc)
  import Glibc
#endif

// usher-model: every order of events, to a depth.
//   usher-model table DEPTH              transition tables and diagrams in Markdown, for docs/model.md
//   usher-model search SECONDS           as deep as the time allows, over all kinds of delegates
@main struct Main {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let number = Int(arguments[2]), number > 0 else { return usage() }
    switch arguments[1] {
    case "table": table(depth: number)
    case "search": search(seconds: number)
    default: usage()
    }
  }

  private static func usage() {
    print("usage: usher-model table DEPTH | search SECONDS")
    exit(2)
  }

  private static func tell(_ setting: Setting, _ search: Search) {
    guard let (story, text) = search.violation else { return }
    print("\(setting.name): \(text)\n  after: \(story.joined(separator: ", "))")
    exit(1)
  }

  private static func table(depth: Int) {
    print(Page.head(depth: depth))
    for setting in Setting.all {
      var search = Search()
      _ = search.run(setting, depth: depth)
      tell(setting, search)
      print(Page.section(setting, search))
    }
  }

  /// Deeper and deeper, each kind of delegate in turn, until the time is up.
  private static func search(seconds: Int) {
    let end = time(nil) + seconds
    var states = 0
    for (index, setting) in Setting.all.enumerated() {
      let share = time(nil) + max(1, (end - time(nil)) / (Setting.all.count - index))
      var depth = 1
      var reached = 0
      var last = Search()
      while depth < 64 {
        var search = Search(deadline: { time(nil) >= share })
        let isWhole = search.run(setting, depth: depth)
        tell(setting, search)
        states += search.states
        guard isWhole else { break }
        (reached, last) = (depth, search)
        depth += 1
      }
      print(
        "\(setting.name): all orders of \(reached) events, \(last.states) states, \(last.rows.count) transitions; no violation, no dead state"
      )
    }
    print("\(states) states looked at in all, each led to its end")
  }
}
