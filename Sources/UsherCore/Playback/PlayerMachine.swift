/// One screen, as a value: one item plays, at most one waits for its turn, and the newest wins.
package struct PlayerMachine<Item: Equatable> {
  package enum Action {
    case start(Item)
    case close(Item)
    /// It never had its turn.
    case replace(Item)
  }

  package private(set) var current: Item?
  package private(set) var waiting: Item?

  package init() {}

  /// The next item: a zap if one plays.
  package mutating func play(_ item: Item) -> [Action] {
    guard let playing = current else {
      current = item
      return [.start(item)]
    }
    let passedOver = waiting
    waiting = item
    return (passedOver.map { [.replace($0)] } ?? []) + [.close(playing)]
  }

  /// An item's slot is free or as good as (or it never had one).
  package mutating func released(_ item: Item) -> [Action] {
    if waiting == item { waiting = nil }
    guard current == item else { return [] }
    current = waiting
    waiting = nil
    return current.map { [.start($0)] } ?? []
  }
}
