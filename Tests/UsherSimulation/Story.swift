import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// The settings of a story.
struct Setting {
  var players: UInt64
  /// The number of players that share an account.
  var perAccount: UInt64 = 4
  var kinds: [Kind] = Kind.allCases
  var limit: Int
  var period: Milliseconds
  var latency: Milliseconds
  var perOrigin = 64
  /// The number of callback threads.
  var cap = 4
  var periodUpdates = false
  /// Whether the story has no faults. In such a story the library must report no error, except errors that the host
  /// itself can cause.
  var isFaultless = false
}

/// The items of a story with their times, made from a seed.
struct Story {
  let seed: UInt64
  var setting: Setting
  var items: [Item]
  let end: Milliseconds

  /// Every fourth story lasts for hours; in the other stories many items happen in a short time.
  init(seed: UInt64, players: UInt64, hours: UInt64) {
    self.seed = seed
    var dice = Dice(seed)
    let isDense = !Story.isLong(seed)
    end = isDense ? 1_800_000 : hours * 3_600_000
    let period = (isDense ? dice.spread(10, 60) : dice.spread(30, 600)) * 1000
    setting = Setting(players: players, limit: Int(players), period: period, latency: dice.pick([0, 40, 300, 1500]))
    setting.isFaultless = seed % 32 < 2
    setting.limit = setting.isFaultless ? Int(setting.perAccount) : Int(dice.between(2, setting.perAccount + 1))
    if setting.isFaultless { setting.latency = min(setting.latency, 300) }
    setting.perOrigin = dice.pick([64, 64, 64, 4, 1])
    setting.cap = dice.pick([16, 4, 2])
    setting.periodUpdates = dice.one(in: 4)
    if dice.one(in: 3) { setting.kinds = [dice.pick(Kind.allCases)] }
    if setting.isFaultless { setting.kinds = setting.kinds.filter { !$0.isV2 } + [.heartbeats] }
    var writer = Writer(dice: dice, setting: setting, end: end, isDense: isDense)
    writer.write()
    items = writer.items.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
  }

  static func isLong(_ seed: UInt64) -> Bool { seed % 4 == 0 }

  /// Returns a copy of the story with other items or another setting.
  init(_ other: Story, items: [Item], setting: Setting? = nil, end: UInt64? = nil) {
    seed = other.seed
    self.setting = setting ?? other.setting
    self.items = items
    self.end = end ?? other.end
  }
}

/// Writes a story's items at random.
private struct Writer {
  var dice: Dice
  let setting: Setting
  let end: Milliseconds
  let isDense: Bool
  var items: [Item] = []
  var nextPlayback: PlaybackID = 1

  /// The unit of time for the items: an hour in a long story, a minute and a half in a short one.
  private var hour: Milliseconds { isDense ? 90_000 : 3_600_000 }

  mutating func add(_ at: Milliseconds, _ action: Action) { if at < end { items.append(Item(at: at, action: action)) } }

  mutating func write() {
    for player in 1...setting.players { addPlayer(player) }
    addHostEvents()
    if !setting.isFaultless { addFaults() }
    addLateness()
  }

  /// Adds the items of one player. The player plays some items for a long time; before some of these, it zaps through
  /// several others.
  private mutating func addPlayer(_ player: UInt64) {
    var at = dice.upTo(hour / 4)
    while at < end {
      if dice.one(in: 6) {
        // The player zaps through some channels.
        for _ in 0..<dice.between(2, 8) {
          play(player, at, lasts: 0)
          at += dice.spread(10, 8000)
        }
      }
      let lasts = dice.spread(hour / 20, hour * 12)
      play(player, at, lasts: lasts)
      at += lasts
      if dice.one(in: 3) { at += dice.spread(1000, hour) }
    }
  }

  private mutating func play(_ player: UInt64, _ at: Milliseconds, lasts: Milliseconds) {
    let id = nextPlayback
    nextPlayback += 1
    let kind = dice.pick(setting.kinds)
    var choice = Choice()
    choice.hasToken = kind == .mapped ? dice.one(in: 2) : !dice.one(in: 4)
    choice.hasPayload = !dice.one(in: 5)
    choice.content = dice.upTo(5)
    add(at, .play(id, player: player, kind, choice))
    if !choice.hasToken, dice.one(in: 2) { add(at + dice.upTo(6000), .giveToken(id)) }
    if kind == .mapped, dice.one(in: 2) { add(at + dice.upTo(6000), .mapToken(content: choice.content)) }
    if kind == .loader { load(id, at, lasts) }
    if dice.one(in: 6) { add(at + dice.upTo(500), .certificate(id)) }
    if dice.one(in: 9) { add(at + dice.upTo(500), .contentID(id)) }
    if lasts > 0 || dice.one(in: 2) { add(at + dice.upTo(500), .license(id, isRenewal: false, timeout: timeout(4))) }
    guard lasts > 0 else { return }
    // The player requests further licences, as players do after key rotation or for another output.
    while dice.one(in: 3) { add(at + dice.upTo(lasts), .license(id, isRenewal: dice.one(in: 3), timeout: timeout(3))) }
    switch dice.upTo(3) {
    case 0:
      let end = at + lasts - dice.upTo(min(lasts, 3000))
      add(end, .close(id, leave: setting.isFaultless ? nil : dice.pick([nil, nil, false, true])))
      if dice.one(in: 3) { add(end + dice.spread(1, 4000), .close(id, leave: dice.pick([nil, true, false]))) }
    case 1 where dice.one(in: 3): add(at + lasts - dice.upTo(min(lasts, 3000)), .stop(player: player))
    default: break
    }
  }

  private mutating func timeout(_ share: UInt64) -> Milliseconds? {
    !setting.isFaultless && dice.one(in: share) ? dice.upTo(4000) : nil
  }

  private mutating func load(_ id: PlaybackID, _ at: Milliseconds, _ lasts: Milliseconds) {
    for _ in 0...dice.upTo(3) {
      let when = at + dice.upTo(max(lasts, 100))
      add(when, .load(id))
      if dice.one(in: 4) { add(when + dice.upTo(300), .cancelLoad(id)) }
    }
  }

  /// Adds sleeps of the machine, suspensions of the host, changes of the network and of headers.
  private mutating func addHostEvents() {
    var at = dice.spread(1000, hour * 3)
    while at < end {
      switch setting.isFaultless ? dice.between(2, 4) : dice.upTo(4) {
      case 0: add(at, .sleep(dice.spread(1000, isDense ? 120_000 : 1_800_000)))
      case 1:
        add(at, .suspend)
        let asleep = dice.spread(1000, isDense ? 120_000 : 1_800_000)
        if dice.one(in: 2) { add(at + 1, .sleep(asleep)) }
        add(at + asleep, .resume)
      case 2: add(at, .networkChanged)
      case 3: add(at, .header)
      default: add(at, .mapToken(content: dice.upTo(5)))
      }
      at += dice.spread(hour / 20, hour * 4)
    }
  }

  /// Adds periods of time in which the I/O thread does not run.
  private mutating func addLateness() {
    var at = dice.spread(1, hour)
    while at < end {
      let most = setting.isFaultless ? setting.period / 2 : dice.pick([2000, setting.period / 2, 3 * setting.period])
      add(at, .late(dice.spread(100, most)))
      at += dice.spread(hour / 10, hour * 2)
    }
  }

  /// Adds faults of the network, the head-end and the host's callbacks.
  private mutating func addFaults() {
    var at = dice.spread(1, hour)
    while at < end {
      let lasts = dice.spread(500, isDense ? 60_000 : 1_200_000)
      switch dice.upTo(9) {
      case 0...4:
        let route = dice.one(in: 3) ? nil : dice.pick(Route.allCases)
        add(at, .fault(dice.pick(Fault.allCases), route, oneIn: dice.pick([1, 1, 2, 5]), lasts: lasts))
      case 5:
        add(at, .networkDown(lasts))
        if !dice.one(in: 3) { add(at + lasts, .networkChanged) }
      case 6: add(at, .kill(account: dice.one(in: 3) ? nil : dice.upTo(setting.players / setting.perAccount)))
      default: add(at, .habit(dice.pick(Callback.allCases), dice.pick(Habit.allCases), lasts: lasts))
      }
      at += dice.spread(hour / 10, hour * 2)
    }
  }
}
