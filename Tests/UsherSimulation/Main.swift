@testable import UsherEngine

#if canImport(Glibc)
  import Glibc
#endif

// usher-simulate: plays random stories on the engine.
//   usher-simulate run SCREENS HOURS SEED THREADS
//       plays SCREENS screens for HOURS hours, eight per context; prints the coverage
//   usher-simulate matrix SCREENS HOURS SEED THREADS
//       the same; also prints every transition: phase, input, next phase
//   usher-simulate story SEED HOURS
//       plays the story of this seed again; if the library breaks a promise in it, shortens the story as long as the
//       library still breaks that promise, and prints the result
@main struct Main {
  private static let players: UInt64 = 8

  static func main() {
    // With this variable, sets and dictionaries have the same order in every run.
    if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
      setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
      _ = execv("/proc/self/exe", CommandLine.unsafeArgv)
    }
    let numbers = CommandLine.arguments.dropFirst(2).map { UInt64($0) ?? 0 }
    switch (CommandLine.arguments.dropFirst().first, numbers.count) {
    case ("run", 4): exit(run(screens: numbers[0], hours: numbers[1], seed: numbers[2], threads: Int(numbers[3])))
    case ("matrix", 4):
      exit(run(screens: numbers[0], hours: numbers[1], seed: numbers[2], threads: Int(numbers[3]), isMatrix: true))
    case ("story", 2): exit(story(numbers[0], hours: numbers[1]))
    default:
      print("usage: usher-simulate run|matrix SCREENS HOURS SEED THREADS | story SEED HOURS")
      exit(2)
    }
  }

  private static func run(screens: UInt64, hours: UInt64, seed: UInt64, threads: Int, isMatrix: Bool = false) -> Int32 {
    let begun = monotonicMilliseconds()
    let count = max(1, (screens + players - 1) / players)
    let run = Run(seeds: Array(seed..<(seed + 4 * count)), players: players, hours: hours)
    run.run(threads: max(1, threads))
    if let seed = run.hanging {
      print("the story of seed \(seed) hangs: it has not ended within a minute")
      return 1
    }
    if let broken = run.broken {
      print("seed \(broken.seed) breaks a promise: \(broken.violation.rule): \(broken.violation.text)")
      print("again: make simulate SEED=\(broken.seed)\(hours == 24 ? "" : " HOURS=\(hours)")")
      Printer.story(Story(seed: broken.seed, players: players, hours: hours), broken.violation)
      return 1
    }
    if isMatrix { Printer.matrix(run.coverage) }
    let played = Printer.number(Int(count * players))
    print(
      "\(played) screens for \(hours) hours in \(count) stories, \(3 * count) stories of wild half hours, "
        + "from seed \(seed) on: no promise broken"
    )
    Printer.coverage(run.coverage)
    let problems = Reasons.judge(run.coverage, screens: Int(screens))
    for problem in problems { print(problem) }
    let verdict =
      problems.isEmpty ? "every phase and input was reached, or has its reason" : "\(problems.count) complaints"
    print("\(verdict); \((monotonicMilliseconds() - begun) / 1000) s")
    return problems.isEmpty ? 0 : 1
  }

  private static func story(_ seed: UInt64, hours: UInt64) -> Int32 {
    let story = Story(seed: seed, players: players, hours: hours)
    let world = World(story)
    guard let violation = world.run() else {
      print("seed \(seed): no promise broken")
      Printer.coverage(world.coverage)
      return 0
    }
    print("seed \(seed) breaks a promise: \(violation.rule): \(violation.text)")
    Printer.story(story, violation)
    return 1
  }
}
