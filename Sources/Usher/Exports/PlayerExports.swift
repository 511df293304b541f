public import CUsher
internal import Synchronization
internal import UsherCore
internal import UsherEngine

/// Implements `usher_player_new`; contract in `include/usher/player.h`.
@_cdecl("usher_player_new") @implementation
public func usher_player_new(_ context: OpaquePointer!, _ out: UnsafeMutablePointer<OpaquePointer?>!) -> Int32 {
  out?.pointee = nil
  return report(context) { () throws(UsherError) in
    let object = try borrow(context, as: ContextObject.self)
    guard let out else { throw refused("out", isMissing) }
    try object.refuseIfClosing()
    let player = PlayerObject(context: object, shared: PlayerShared(object.newID()))
    object.engine.addPlayer(player.shared.id)
    out.pointee = OpaquePointer(bitPattern: try object.give(player))
  }
}

/// Implements `usher_player_play`; contract in `include/usher/player.h`.
@_cdecl("usher_player_play") @implementation
public func usher_player_play(
  _ player: OpaquePointer!, _ options: UnsafePointer<usher_playback_options>!,
  _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> Int32 {
  out?.pointee = nil
  return report(player, owing: readable(options)?.pointee.destroy, readable(options)?.pointee.user_data) {
    () throws(UsherError) in
    var waits = false
    var pumps = false
    let chosen = try choose(player, options) { item, context throws(UsherError) in
      guard out != nil else { throw refused("out", isMissing) }
      waits = item.delegate.waitsForSetup(item)
      if waits { try refuseInCallbacks() }
      pumps = waits && context.engine.calls.pump?.mayPumpHere == true
      // Without a content token, set-up may wait until the host supplies one. Only this thread could run the host's
      // code, but this thread is about to wait for set-up.
      if pumps, !isTokenKnown(item) { throw UsherError(.wouldDeadlock) }
    }
    let (screen, playback, handle) = (chosen.screen, chosen.prepared.object, chosen.prepared.handle)
    let (context, delegate, reference) = (screen.context, playback.delegate, chosen.reference)
    guard
      context.engine.play(
        playback.shared, on: screen.shared, host: chosen.host, item: chosen.item,
        callbacks: callbacks(chosen.given, reference))
    else {
      _ = handles.release(handle)
      reference.end()
      try context.refuseIfClosing()
      throw UsherError(.invalidHandle)
    }
    screen.teardownWait.store(delegate.isSync ? delegate.policy.teardownTimeout : 0, ordering: .relaxed)
    if waits { _ = context.engine.waitForSession(playback.id, delegate.policy.setupTimeout, pumping: pumps) }
    out?.pointee = OpaquePointer(bitPattern: handle)
  }
}

/// Implements `usher_player_prepare`; contract in `include/usher/player.h`.
@_cdecl("usher_player_prepare") @implementation
public func usher_player_prepare(
  _ player: OpaquePointer!, _ options: UnsafePointer<usher_playback_options>!, _ keep_ms: UInt32
) -> Int32 {
  report(player, owing: readable(options)?.pointee.destroy, readable(options)?.pointee.user_data) {
    () throws(UsherError) in
    let chosen = try choose(player, options)
    let (screen, prepared) = (chosen.screen, chosen.prepared)
    var callbacks = PlaybackCallbacks()
    callbacks.keepsAlive = chosen.reference
    screen.keep(prepared)
    screen.context.engine.prepare(
      prepared.object.shared, on: screen.shared, host: chosen.host, item: chosen.item, callbacks: callbacks,
      keepingFor: milliseconds(keep_ms, default: 60_000)
    ) { screen.forget(prepared) }
  }
}

/// The item that the host plays or prepares on a player.
private struct ChosenItem {
  let given: usher_playback_options
  let screen: PlayerObject
  let item: PlaybackItem
  /// The playback of the item: the prepared playback if it is of this item, otherwise a new one.
  let prepared: PreparedPlayback
  let host: HostPlayback
  let reference: HostReference
}

/// Reads the options of an item. If the prepared playback of the player is of this item, takes this playback; otherwise
/// drops it and makes a new playback.
/// - Parameter check: throws if the library must refuse the item.
@inline(never)
private func choose(
  _ player: OpaquePointer?, _ options: UnsafePointer<usher_playback_options>?,
  _ check: (PlaybackItem, ContextObject) throws(UsherError) -> Void = { _, _ in }
) throws(UsherError) -> ChosenItem {
  let given = try Usher.options(options)
  let screen = try owned(player, given.user_data, given.destroy, as: PlayerObject.self)
  let context = screen.context
  let earlier = screen.takePrepared()
  var prepared: PreparedPlayback?
  defer { if prepared == nil { earlier?.drop() } }
  let id = earlier?.object.id ?? context.newID()
  let reference = hostReference(context.engine, lane: id, given.user_data, given.destroy)
  let item = try playbackItem(given, context)
  try check(item, context)
  let chosen = try playback(id, item, given.tag, earlier, context)
  prepared = chosen
  try reference.accept()
  return ChosenItem(
    given: given, screen: screen, item: item, prepared: chosen,
    host: HostPlayback(handle: chosen.handle, playerHandle: UInt(bitPattern: player), tag: given.tag),
    reference: reference)
}

/// Returns the item that the host's options describe.
private func playbackItem(
  _ given: usher_playback_options, _ context: ContextObject
) throws(UsherError) -> PlaybackItem {
  try context.refuseIfClosing()
  let delegate = try chosenDelegate(given.delegate, context, isClear: given.clear == 1)
  var item = PlaybackItem(delegate: delegate, contentToken: try token(given.content_token, "content_token"))
  item.contentID = try identifier(given.content_id, given.content_id_size, "content_id")
  guard given.clear == 0 || given.clear == 1 else { throw refused("clear: not 0 or 1") }
  item.isClear = given.clear == 1
  return item
}

/// Returns the prepared playback if it is of this item. Otherwise drops it, and makes a new playback with its number.
private func playback(
  _ id: PlaybackID, _ item: PlaybackItem, _ tag: UInt64, _ prepared: PreparedPlayback?, _ context: ContextObject
) throws(UsherError) -> PreparedPlayback {
  if let prepared, prepared.isOf(item) {
    prepared.object.tag = tag
    return prepared
  }
  prepared?.drop()
  let new = PlaybackObject(context: context, delegate: item.delegate, shared: PlaybackShared(id), tag: tag)
  return PreparedPlayback(new, try context.give(new), item)
}

/// Whether the library has the item's content token: the host gave it, or the delegate's token map has it.
private func isTokenKnown(_ item: PlaybackItem) -> Bool {
  if item.contentToken != nil { return true }
  guard let map = item.delegate.tokenMap else { return false }
  return item.contentID.withUnsafeBufferPointer { map.get($0) } != nil
}

private func chosenDelegate(
  _ handle: OpaquePointer?, _ context: ContextObject, isClear: Bool
) throws(UsherError) -> LicenseDelegate {
  if let handle {
    let named = try borrow(handle, as: DelegateObject.self)
    guard named.context === context else { throw refused("delegate: of another context") }
    return named.delegate
  }
  guard let standard = context.delegate ?? context.withoutRequests(isClear: isClear) else {
    throw UsherError(.noDelegate)
  }
  return standard
}

private func callbacks(_ given: usher_playback_options, _ reference: HostReference) -> PlaybackCallbacks {
  var result = PlaybackCallbacks()
  let user = given.user_data
  if given.destroy != nil { result.keepsAlive = reference }
  if let fn = given.payload {
    result.payload = { ask, keySystem, host in
      keySystem.identifier.withUTF8Buffer { text in
        // The identifier is a static text, which the compiler ends with a NUL. So the identifier is a C string.
        text.baseAddress?.withMemoryRebound(to: CChar.self, capacity: text.count + 1) {
          fn(ask.number, OpaquePointer(bitPattern: host.handle), $0, host.tag, user)
        }
      }
    }
  }
  if let fn = given.renewed {
    result.renewed = { answer, host in
      withResponse(answer) { fn(OpaquePointer(bitPattern: host.handle), $0, host.tag, user) }
    }
  }
  return result
}

/// Implements `usher_player_stop`; contract in `include/usher/player.h`.
@_cdecl("usher_player_stop") @implementation
public func usher_player_stop(_ player: OpaquePointer!, _ mode: Int32) -> Int32 {
  report(player) { () throws(UsherError) in
    let object = try borrow(player, as: PlayerObject.self)
    let ending = try closeMode(mode)
    guard object.context.engine.stopPlayer(object.shared, ending, waiting: object.longestWait) else {
      throw refused("mode", isTooLateToTearDown, .state)
    }
  }
}

/// Implements `usher_player_free`; contract in `include/usher/player.h`.
@_cdecl("usher_player_free") @implementation
public func usher_player_free(_ player: OpaquePointer!) -> Int32 {
  report(player) { () throws(UsherError) in
    guard let object = try release(player, as: PlayerObject.self) else { return }
    object.takePrepared()?.drop()
    object.context.removeObservers(of: object.shared.id)
    _ = object.context.engine.stopPlayer(object.shared, nil, removing: true, waiting: object.longestWait)
  }
}

/// Implements `usher_player_add_observer`; contract in `include/usher/player.h`.
@_cdecl("usher_player_add_observer") @implementation
public func usher_player_add_observer(
  _ player: OpaquePointer!, _ fn: usher_notice_fn!, _ user_data: UnsafeMutableRawPointer!, _ destroy: usher_destroy_fn!,
  _ out_id: UnsafeMutablePointer<UInt64>!
) -> Int32 {
  report(player, owing: destroy, user_data) { () throws(UsherError) in
    let object = try owned(player, user_data, destroy, as: PlayerObject.self)
    let user = user_data
    try addObserver(object.context, object.shared.id, hasFunction: fn != nil, user_data, destroy, out_id) {
      id, reference in
      object.context.engine.addNoticeObserver(id, of: object.shared) { notice in
        _ = reference
        withNotice(notice) { fn?($0, user) }
      }
    }
  }
}
