/// One screen, as a value: one item plays, and at most one item, the newest, waits until the playing one has ended.
package struct PlayerMachine<Item: Equatable> {
  package enum Action {
    case start(Item)
    case close(Item)
    /// A newer item replaces this one before it has started.
    case replace(Item)
  }

  package private(set) var current: Item?
  package private(set) var waiting: Item?

  package init() {}

  /// The host plays an item: a zap if another one plays.
  package mutating func play(_ item: Item) -> [Action] {
    guard let playing = current else {
      current = item
      return [.start(item)]
    }
    let replaced = waiting
    waiting = item
    return (replaced.map { [.replace($0)] } ?? []) + [.close(playing)]
  }

  /// The item has ended, or its teardown takes too long: the waiting item may start.
  package mutating func nextMayStart(after item: Item) -> [Action] {
    if waiting == item { waiting = nil }
    guard current == item else { return [] }
    current = waiting
    waiting = nil
    return current.map { [.start($0)] } ?? []
  }
}
