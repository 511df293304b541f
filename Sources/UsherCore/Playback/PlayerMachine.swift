/// One player, as a value with no I/O. One item plays. At most one other item, the newest, waits until the playing item
/// has ended.
package struct PlayerMachine<Item: Equatable> {
  package enum Action {
    case start(Item)
    case close(Item)
    /// The host has played a newer item before this item started: end this item with the status `replaced`.
    case replace(Item)
  }

  package private(set) var current: Item?
  package private(set) var waiting: Item?

  package init() {}

  /// Called when the host plays an item; if another item plays, this is a zap.
  /// - Parameter waits: whether the new item waits until the playing item has ended. If not, the new item starts at
  ///   once, after the action that closes the playing item.
  package mutating func play(_ item: Item, waits: Bool = true) -> [Action] {
    guard let playing = current else {
      current = item
      return [.start(item)]
    }
    let replaced = waiting
    waiting = item
    let closing = (replaced.map { [.replace($0)] } ?? []) + [Action.close(playing)]
    return waits ? closing : closing + nextMayStart(after: playing)
  }

  /// Called when the item has ended or its teardown takes too long: the waiting item may start.
  package mutating func nextMayStart(after item: Item) -> [Action] {
    if waiting == item { waiting = nil }
    guard current == item else { return [] }
    current = waiting
    waiting = nil
    return current.map { [.start($0)] } ?? []
  }
}
