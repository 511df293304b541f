internal import CUsher
internal import Synchronization
internal import UsherCore
internal import UsherEngine

/// A context: its engine, its delegate and loaders, and the handles that become stale with it.
final class ContextObject: HandleObject {
  let engine: Engine
  let allowsInsecureHTTP: Bool
  private let monitor = Monitor()
  private var defaultDelegate: LicenseDelegate?
  private var loaders: [ResourceLoader] = []
  private var closing = false
  private var isFreed = false
  /// An observer of the context (`player` is 0) or of a player.
  private struct Observer {
    let id: UInt64
    let player: PlayerID
  }
  private var observers: [Observer] = []
  private let counter = Atomic<UInt64>(1)

  init(engine: Engine, allowsInsecureHTTP: Bool) {
    self.engine = engine
    self.allowsInsecureHTTP = allowsInsecureHTTP
  }

  override var teller: Engine? { engine }

  /// Returns a number that this context uses only once.
  func newID() -> UInt64 { counter.wrappingAdd(1, ordering: .relaxed).oldValue }

  /// Makes a handle that becomes stale with the context. Fails if the context was freed already: such a handle would
  /// stay valid for ever.
  func give(_ object: HandleObject) throws(UsherError) -> UInt {
    let handle = handles.give(object)
    // First add the handle, then test. `endHandles` works in the other order: it sets `isFreed` and then removes the
    // handles in the table. So at least one of the two functions sees what the other has done.
    if !monitor.locked({ isFreed }) { return handle }
    _ = handles.release(handle)
    throw UsherError(.invalidHandle)
  }

  /// Makes all handles of this context stale.
  func endHandles() {
    monitor.locked { isFreed = true }
    handles.releaseAll(with: self)
  }

  var delegate: LicenseDelegate? {
    get { monitor.locked { defaultDelegate } }
    set { monitor.locked { defaultDelegate = newValue } }
  }

  // MARK: Resource loaders, by scheme

  func register(_ loader: ResourceLoader) {
    monitor.locked {
      loaders.removeAll { equalIgnoringCase($0.options.scheme, loader.options.scheme) }
      loaders.append(loader)
    }
  }

  func unregister(_ loader: ResourceLoader) { monitor.locked { loaders.removeAll { $0 === loader } } }

  /// Returns the loader that is registered for the scheme of a URL.
  func loader(for url: [UInt8]) -> ResourceLoader? {
    guard let colon = url.firstIndex(of: 0x3A) else { return nil }
    return monitor.locked { loaders.first { equalIgnoringCase($0.options.scheme, url[..<colon]) } }
  }

  /// Returns a delegate that sends no requests, for an item if neither the item nor the context has a delegate. The
  /// item must be clear, or the context must have a loader; otherwise returns nil.
  func withoutRequests(isClear: Bool) -> LicenseDelegate? {
    guard isClear || monitor.locked({ !loaders.isEmpty }) else { return nil }
    var policy = SSPPolicy()
    policy.hasSSM = false
    policy.needsToken = false
    return LicenseDelegate(policy: policy)
  }

  func refuseIfClosing() throws(UsherError) {
    if monitor.locked({ closing }) { throw UsherError(.closed) }
  }

  /// Begins to close the context.
  /// - Parameter limit: how long freeing the context may wait until the playbacks are closed; 0: the default time. nil:
  ///   the time limit of an earlier call stays valid.
  func beginClosing(within limit: Milliseconds? = nil) {
    monitor.locked { closing = true }
    engine.beginClosing(within: limit)
  }

  // MARK: Observers

  func addObserver(_ id: UInt64, of player: PlayerID) {
    monitor.locked { observers.append(Observer(id: id, player: player)) }
  }

  /// Removes an observer of the context or of a player.
  /// - Returns: false if there is no observer with this id.
  func removeObserver(_ id: UInt64) -> Bool { removeObservers { $0.id == id } }

  func removeObservers(of player: PlayerID) { _ = removeObservers { $0.player == player } }

  /// - Returns: false if there is no such observer.
  @inline(never)
  private func removeObservers(where isMeant: (Observer) -> Bool) -> Bool {
    monitor.locked {
      let before = observers.count
      observers.removeAll(where: isMeant)
      return observers.count < before
    }
  }
}

/// An object that belongs to a context. Its handle becomes stale with the context.
class ContextPart: HandleObject {
  let context: ContextObject

  init(context: ContextObject) { self.context = context }

  override func ends(with context: ContextObject) -> Bool { self.context === context }
  override var teller: Engine? { context.engine }
}

final class DelegateObject: ContextPart {
  let delegate: LicenseDelegate

  init(context: ContextObject, delegate: LicenseDelegate) {
    self.delegate = delegate
    super.init(context: context)
  }
}

final class LoaderObject: ContextPart {
  let loader: ResourceLoader

  init(context: ContextObject, loader: ResourceLoader) {
    self.loader = loader
    super.init(context: context)
  }
}

final class PlayerObject: ContextPart {
  let shared: PlayerShared
  /// How long `usher_player_stop` waits for the teardown, in milliseconds; 0 if the newest item's delegate is not
  /// synchronous.
  let teardownWait = Atomic<UInt64>(0)
  private let monitor = Monitor()
  private var prepared: PreparedPlayback?
  /// How long `usher_player_stop` waits if the calling thread calls it now: `teardownWait`, but 0 inside callbacks.
  var longestWait: Milliseconds { isCallbackThread() ? 0 : teardownWait.load(ordering: .relaxed) }

  init(context: ContextObject, shared: PlayerShared) {
    self.shared = shared
    super.init(context: context)
  }
}

extension PlayerObject {
  /// Takes the item that the host has prepared for this player; nil if there is none.
  func takePrepared() -> PreparedPlayback? {
    monitor.locked {
      defer { prepared = nil }
      return prepared
    }
  }

  func keep(_ new: PreparedPlayback) { monitor.locked { prepared = new } }

  /// Called on the I/O thread when the engine drops the prepared playback.
  func forget(_ old: PreparedPlayback) {
    let isKept = monitor.locked { () -> Bool in
      defer { if prepared === old { prepared = nil } }
      return prepared === old
    }
    if isKept { _ = handles.release(old.handle) }
  }
}

/// An item that the host has prepared, with the handle of the playback that will play it.
final class PreparedPlayback {
  let object: PlaybackObject
  let handle: UInt
  private let item: PlaybackItem

  init(_ object: PlaybackObject, _ handle: UInt, _ item: PlaybackItem) {
    self.object = object
    self.handle = handle
    self.item = item
  }

  /// Whether `other` is the same item, and the host has not closed the prepared playback.
  func isOf(_ other: PlaybackItem) -> Bool {
    guard handles.find(handle) === object, object.engine.isOpen(object.shared) else { return false }
    return item.isSame(as: other)
  }

  /// Frees the handle and drops the playback. A second call does nothing.
  func drop() {
    _ = handles.release(handle)
    object.engine.drop(object.shared)
  }
}

final class PlaybackObject: ContextPart {
  let delegate: LicenseDelegate
  let shared: PlaybackShared
  /// The `tag` of the options with which the host played the item, or prepared it.
  var tag: UInt64 {
    get { storedTag.load(ordering: .relaxed) }
    set { storedTag.store(newValue, ordering: .relaxed) }
  }
  private let storedTag: Atomic<UInt64>

  init(context: ContextObject, delegate: LicenseDelegate, shared: PlaybackShared, tag: UInt64) {
    self.delegate = delegate
    self.shared = shared
    storedTag = Atomic(tag)
    super.init(context: context)
  }

  var engine: Engine { context.engine }
  var id: PlaybackID { shared.id }
  /// How long `usher_playback_close` waits if the calling thread calls it now, in milliseconds. 0 inside callbacks, and
  /// if the delegate is not synchronous.
  var longestWait: Milliseconds { delegate.isSync && !isCallbackThread() ? delegate.policy.teardownTimeout : 0 }
}

/// An answer that the host reads through a handle. The answer comes from a blocking request, from the token map, or
/// from the built-in behaviour of a hook.
final class ResponseObject: HandleObject {
  /// The context with which the handle becomes stale; nil if the handle stays valid until the host frees it.
  let context: ContextObject?
  let answer: RequestResult
  /// NUL-terminated.
  let message: [UInt8]

  init(context: ContextObject?, answer: RequestResult) {
    self.context = context
    self.answer = answer
    message = Array(answer.error.message.utf8) + [0]
  }

  override var teller: Engine? { context?.engine }

  override func ends(with context: ContextObject) -> Bool { self.context === context }
}

/// A question to the host, found by its completion id. The id becomes stale when the question has been answered, when
/// its deadline has passed, or when its playback closes. A question of customer SSM may stay open after the close.
final class CompletionObject: HandleObject {
  let ask: HostQuestion
  init(ask: HostQuestion) { self.ask = ask }
  override var teller: Engine? { ask.engine }
}
