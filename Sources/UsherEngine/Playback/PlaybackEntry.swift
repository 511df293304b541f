internal import Synchronization
package import UsherCore

package typealias PlayerID = UInt64

/// The part of a playback that any thread may read through the handle of the playback.
package final class PlaybackShared {
  package let id: PlaybackID
  private let state = Atomic<Int32>(PlaybackMachine.SessionState.pending.rawValue)
  private let closeRequested = Atomic<Bool>(false)
  private let leftForGood = Atomic<Bool>(false)

  package init(_ id: PlaybackID) { self.id = id }

  package var sessionState: Int32 { state.load(ordering: .acquiring) }
  /// Whether a call of the host has asked to close this playback: a close of the playback, a stop of its player, or the
  /// next item on its player. This property does not say whether the host has asked to close the whole context;
  /// `Engine.isOpen` checks both.
  var isCloseRequested: Bool { closeRequested.load(ordering: .acquiring) }
  /// Call under the lock of the command queue, when queueing the command that closes the playback.
  func requestClose() { closeRequested.store(true, ordering: .releasing) }
  /// Whether the session was left at the head-end, and the library no longer has the token of that session.
  var isLeftForGood: Bool { leftForGood.load(ordering: .acquiring) }
  func noteLeftForGood() { leftForGood.store(true, ordering: .releasing) }
  func publish(_ new: PlaybackMachine.SessionState) { state.store(new.rawValue, ordering: .releasing) }
}

/// The part of a player that any thread may use: its newest playback, in the order of the host's calls. A call that
/// ends this playback (the next item, a stop) marks the playback as closing at once, before the I/O thread closes it.
/// The lock of the command queue guards the private properties.
package final class PlayerShared {
  struct Observer {
    let id: UInt64
    let call: (EngineNotice) -> Void
  }

  package let id: PlayerID
  /// The observers that get the notices of this player. Only the I/O thread uses this property.
  var observers: [Observer] = []
  private var newest: PlaybackShared?
  private var isRemoved = false
  /// The id of `newest`; 0 if the player was removed. Any thread may read it without the lock.
  private let newestID = Atomic<PlaybackID>(0)

  package init(_ id: PlayerID) { self.id = id }

  /// Makes this playback the newest one, and marks the one before it as closing. Returns false, and changes nothing, if
  /// the player was removed.
  func play(_ playback: PlaybackShared) -> Bool {
    if isRemoved { return false }
    // Mark only the newest playback as closing. Each earlier call of `play` has marked the playback that was the newest
    // one before it.
    newest?.requestClose()
    newest = playback
    newestID.store(playback.id, ordering: .releasing)
    return true
  }

  /// Marks the newest playback as closing and returns it; this playback may have been closed before. nil: the player
  /// has played nothing.
  func stop(removing: Bool) -> PlaybackShared? {
    if removing {
      isRemoved = true
      newestID.store(0, ordering: .releasing)
    }
    newest?.requestClose()
    return newest
  }

  func isNewest(_ playback: PlaybackID) -> Bool { newestID.load(ordering: .acquiring) == playback }
}

package struct PlaybackCallbacks {
  /// Keeps the host's `user_data` alive.
  package var keepsAlive: HostReference?
  /// Asks the host for the payload of a renewal; runs as a callback of the playback.
  package var payload: ((HostQuestion, KeySystem, HostPlayback) -> Void)?
  /// Passes a licence that the library renewed to the host; runs as a callback of the playback.
  package var renewed: ((RequestResult, HostPlayback) -> Void)?
  package init() {}
}

/// One playback in the engine. Only the I/O thread uses it.
final class PlaybackEntry {
  let id: PlaybackID
  let player: PlayerID
  fileprivate(set) var host: HostPlayback
  let delegate: LicenseDelegate
  let shared: PlaybackShared
  var callbacks: PlaybackCallbacks
  var machine: PlaybackMachine
  /// The licence requests of the host and of the library. A request leaves this table when it has completed and no
  /// reply in flight can bring a session token.
  var jobs: [LicenseID: LicenseJob] = [:]
  var sent = SentTokens()
  /// With customer SSM, the payload of the last licence request: renewals use it if the host has no payload callback.
  var lastPayload: Secret?
  /// The id of the session's timer; 0 if this timer is not set. In the same way, `tokenTimer` has the id of the timer
  /// for the content token.
  var sessionTimer: UInt64 = 0
  /// The content identifier of the item, by which the token map finds its token. Only `PlaybackTable` changes it.
  var contentID: [UInt8]
  /// The playbacks of the same content that `PlaybackTable` lists before and after this playback; 0: there is none.
  /// Only `PlaybackTable` sets these two properties.
  var older: PlaybackID = 0
  var newer: PlaybackID = 0
  var tokenTimer: UInt64 = 0
  /// The playback's entries in the token map, pinned while it plays.
  var mappedTokens: [(id: [UInt8], pin: TokenMap.Pin)] = []
  fileprivate var pending: Pending?
  /// If the playback is only prepared: called when the library drops it, because no event reports this. nil: the host
  /// plays the playback, or the library has dropped it.
  var onDrop: (() -> Void)?
  /// Whether the session can only begin with a licence request that the host has not made yet.
  var needsLicenseRequest: Bool { jobs.isEmpty && machine.needsLicenseRequest() }
  /// The source of the notices for the observers of the player; nil if the player had no observer when it started the
  /// item.
  var noticeSource: NoticeSource?
  /// Whether a late teardown is under way: after PLAYBACK_CLOSED, the host asked to tear down the session that the
  /// playback had left.
  var tearsDownLeft = false
  /// The status with which set-up ended; nil if set-up has not ended.
  var setupStatus: Status?
  /// The value of `SlotLedger.mark` when the request for the session was sent.
  var slotsAtSetup: SlotLedger.Mark = 0
  /// The last set-up or heartbeat request.
  var callTransfer: TransferID = 0
  var nextLicense: LicenseID = 1
  /// What the playback's recovery record says; nil: the playback has no record.
  var recorded: SSMSession.Recoverable?
  /// The addresses of the server in the recovery record.
  var recordedAddresses: [UInt8]?

  init(
    id: PlaybackID, player: PlayerID, host: HostPlayback, item: PlaybackItem, shared: PlaybackShared,
    callbacks: PlaybackCallbacks
  ) {
    self.id = id
    self.player = player
    self.host = host
    delegate = item.delegate
    self.shared = shared
    self.callbacks = callbacks
    contentID = item.contentID
    var policy = delegate.sharedPolicy
    if item.isClear {
      var own = policy.value
      own.hasSSM = false
      own.needsToken = false
      policy = Shared(own)
    } else if delegate.tokenMap != nil, item.contentID.isEmpty, item.contentToken == nil {
      var own = policy.value
      own.startsWithLicense = true
      policy = Shared(own)
    }
    machine = PlaybackMachine(
      policy: policy, contentToken: item.contentToken, hasTokenCallback: delegate.tokenCallback != nil,
      seed: (id &+ 1) &* 0x9E37_79B9_7F4A_7C15)
  }
}

extension PlaybackEntry {
  /// Called when an attempt to get a licence has ended. Returns the job of the request. If the host no longer waits for
  /// the licence, removes the job from the table.
  func jobAfterAttempt(_ license: LicenseID) -> LicenseJob? {
    let job = jobs[license]
    if job?.hasEnded == true { jobs[license] = nil }
    return job
  }

  /// Replaces the handles, the tag and the callbacks. Called when the host plays the item of a prepared playback, or
  /// prepares this item again.
  func take(_ host: HostPlayback, _ callbacks: PlaybackCallbacks) {
    self.host = host
    self.callbacks = callbacks
  }
}

/// The pending questions, loading requests and waits of a playback. To save memory, a playback has this object only
/// while at least one of them is pending.
private final class Pending {
  var questions: [HostQuestion] = []
  var loads: [LoadingJob] = []
  var setupWaits: [Wait<Status>] = []
  var closeWaits: [Wait<Status>] = []

  var isEmpty: Bool { questions.isEmpty && loads.isEmpty && setupWaits.isEmpty && closeWaits.isEmpty }
}

extension PlaybackEntry {
  /// The questions that the host has not answered yet. Each question says what happens to it when the playback closes.
  var questions: [HostQuestion] {
    get { pending?.questions ?? [] }
    set { change { $0.questions = newValue } }
  }
  var loads: [LoadingJob] {
    get { pending?.loads ?? [] }
    set { change { $0.loads = newValue } }
  }
  var setupWaits: [Wait<Status>] {
    get { pending?.setupWaits ?? [] }
    set { change { $0.setupWaits = newValue } }
  }
  var closeWaits: [Wait<Status>] {
    get { pending?.closeWaits ?? [] }
    set { change { $0.closeWaits = newValue } }
  }

  private func change(_ change: (Pending) -> Void) {
    let now = pending ?? Pending()
    change(now)
    pending = now.isEmpty ? nil : now
  }

  /// The server that holds the session.
  var headEnd: SlotLedger.HeadEnd {
    SlotLedger.HeadEnd(delegate: ObjectIdentifier(delegate), teardownOrigin: delegate.endpoints.teardown?.origin)
  }
}

/// The item that the host plays.
package struct PlaybackItem {
  package var delegate: LicenseDelegate
  package var contentToken: Secret?
  package var contentID: [UInt8] = []
  /// Whether the item is not encrypted and so needs no session and no token.
  package var isClear = false

  package init(delegate: LicenseDelegate, contentToken: Secret?) {
    self.delegate = delegate
    self.contentToken = contentToken
  }

  /// Whether `other` describes the same item as this value. If so, the engine can use for one of the two what it has
  /// prepared for the other.
  package func isSame(as other: PlaybackItem) -> Bool {
    guard delegate === other.delegate, isClear == other.isClear, contentID == other.contentID else { return false }
    guard let contentToken, let token = other.contentToken else {
      return contentToken == nil && other.contentToken == nil
    }
    return contentToken.hasSameBytes(as: token)
  }
}

/// One licence request, from the host's or the library's call until the request has completed and no reply in flight
/// can bring a session token.
final class LicenseJob {
  let keySystem: KeySystem
  let isRenewal: Bool
  /// Whether the reply should be the bare licence and not JSON.
  let isRaw: Bool
  let payload: Secret
  let isByLibrary: Bool
  let assetID: [UInt8]
  /// Whether the request is for a licence of the item: not for other content, and not for the service certificate.
  var isOfItem = true
  /// A function that gets the answer. The I/O thread calls this function once, so the function may only pass the answer
  /// on to another thread.
  private var complete: ((RequestResult) -> Void)?
  var timer: UInt64?
  /// The time limit for which `timer` is set.
  var timeout: Milliseconds = 0
  var transfer: TransferID = 0
  /// Whether the reply has arrived and the licence hook is reading it. The session has already used the reply's fields.
  var isReading = false
  /// The last attempt to get this licence.
  var request: LicenseAttempt?

  init(
    keySystem: KeySystem, isRenewal: Bool, isRaw: Bool, payload: Secret, isByLibrary: Bool, assetID: [UInt8] = [],
    complete: @escaping (RequestResult) -> Void
  ) {
    self.keySystem = keySystem
    self.isRenewal = isRenewal
    self.isRaw = isRaw
    self.payload = payload
    self.isByLibrary = isByLibrary
    self.assetID = assetID
    self.complete = complete
  }

  /// Whether the request has completed. The host then no longer waits for a licence.
  var hasEnded: Bool { complete == nil }

  /// Completes the request with the answer, and releases the completion.
  func end(_ answer: RequestResult) {
    complete?(answer)
    complete = nil
  }
}
