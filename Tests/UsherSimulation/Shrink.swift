/// Makes a story shorter (delta debugging): removes items from the story, and keeps each removal after which the
/// library still breaks the same promise.
struct Shrink {
  private(set) var story: Story
  private(set) var runs = 0
  private let rule: String
  private let most: Int

  /// Prepares the search for a shorter story.
  /// - Parameter most: the search plays at most this many stories.
  init(_ story: Story, rule: String, most: Int = 3000) {
    self.story = story
    self.rule = rule
    self.most = most
  }

  mutating func run() {
    shorten()
    var before = Int.max
    while story.items.count < before, runs < most {
      before = story.items.count
      leaveOutPlayers()
      leaveOutParts()
      shorten()
    }
    simplifySetting()
    leaveOutParts()
  }

  private mutating func breaks(_ other: Story) -> Bool {
    runs += 1
    let world = World(other)
    guard world.run()?.rule == rule else { return false }
    story = other
    return true
  }

  /// Removes the items after the violation, and the time after the last item.
  private mutating func shorten() {
    let world = World(story)
    guard world.run()?.rule == rule else { return }
    let at = world.now
    _ = breaks(Story(story, items: story.items.filter { $0.at <= at }, end: min(story.end, at)))
    if let last = story.items.last { _ = breaks(Story(story, items: story.items, end: min(story.end, last.at + 1))) }
  }

  private mutating func leaveOutPlayers() {
    for player in 1...story.setting.players {
      var gone: Set<UInt64> = []
      for item in story.items { if case .play(let id, player, _, _) = item.action { gone.insert(id) } }
      let kept = story.items.filter { item in
        switch item.action {
        case .stop(player): return false
        default: return item.action.playback.map { !gone.contains($0) } ?? true
        }
      }
      if kept.count < story.items.count { _ = breaks(Story(story, items: kept)) }
    }
  }

  private mutating func leaveOutParts() {
    var size = max(1, story.items.count / 2)
    while true {
      var start = 0
      while start < story.items.count, runs < most {
        var items = story.items
        items.removeSubrange(start..<min(start + size, items.count))
        if !breaks(Story(story, items: items)) { start += size }
      }
      if size == 1 { return }
      size = max(1, size / 2)
    }
  }

  /// Tries simpler settings, and keeps each one with which the library still breaks the same promise.
  private mutating func simplifySetting() {
    func tried(_ change: (inout Setting) -> Void) -> Story {
      var setting = story.setting
      change(&setting)
      return Story(story, items: story.items, setting: setting)
    }
    _ = breaks(tried { $0.latency = 0 })
    _ = breaks(tried { $0.perOrigin = 64 })
    _ = breaks(tried { $0.periodUpdates = false })
    _ = breaks(tried { $0.cap = 16 })
  }
}

extension Action {
  /// The playback to which the action of the host applies.
  var playback: UInt64? {
    switch self {
    case .play(let id, _, _, _), .close(let id, _), .license(let id, _, _), .certificate(let id), .contentID(let id),
      .load(let id), .cancelLoad(let id),
      .giveToken(let id):
      return id
    default: return nil
    }
  }
}
