/// How often each kind of request, event, fault and transition between phases occurred in a run.
struct Coverage {
  var stories = 0
  var steps = 0
  var items = 0
  var replies = 0
  /// How many replies had arrived in a socket but could not be read, because the I/O thread was late.
  var lateReplies = 0
  var completions = 0
  var plays = [Int](repeating: 0, count: Kind.allCases.count)
  var requests = [Int](repeating: 0, count: 256)
  var events = [Int](repeating: 0, count: 32)
  var faults = [Int](repeating: 0, count: Fault.allCases.count)
  var callbacks = [Int](repeating: 0, count: Callback.allCases.count)
  var habits = [Int](repeating: 0, count: Habit.allCases.count)
  private var moves = [Int](repeating: 0, count: Phase.allCases.count * Input.allCases.count * Phase.allCases.count)

  private static func index(_ from: Phase, _ input: Input, _ to: Phase) -> Int {
    (Int(from.rawValue) * Input.allCases.count + Int(input.rawValue)) * Phase.allCases.count + Int(to.rawValue)
  }

  mutating func add(_ from: Phase, _ input: Input, _ to: Phase) { moves[Coverage.index(from, input, to)] += 1 }

  func count(_ from: Phase, _ input: Input) -> Int {
    Phase.allCases.reduce(0) { $0 + moves[Coverage.index(from, input, $1)] }
  }
  func reached(_ from: Phase, _ input: Input) -> [Phase] {
    Phase.allCases.filter { moves[Coverage.index(from, input, $0)] > 0 }
  }
  var transitions: Int { moves.filter { $0 > 0 }.count }

  mutating func add(_ other: Coverage) {
    stories += other.stories
    steps += other.steps
    items += other.items
    replies += other.replies
    lateReplies += other.lateReplies
    completions += other.completions
    func sum(_ a: inout [Int], _ b: [Int]) { for index in a.indices { a[index] += b[index] } }
    sum(&plays, other.plays)
    sum(&requests, other.requests)
    sum(&events, other.events)
    sum(&faults, other.faults)
    sum(&callbacks, other.callbacks)
    sum(&habits, other.habits)
    sum(&moves, other.moves)
  }
}
