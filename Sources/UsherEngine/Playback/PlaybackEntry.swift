internal import Synchronization
package import UsherCore

package typealias PlayerID = UInt64

/// What a playback's handle may read from any thread.
package final class PlaybackShared {
  private let state = Atomic<Int32>(PlaybackMachine.SessionState.pending.rawValue)
  package init() {}
  package var sessionState: Int32 { state.load(ordering: .acquiring) }
  package var isEnded: Bool { sessionState == PlaybackMachine.SessionState.ended.rawValue }
  func publish(_ new: PlaybackMachine.SessionState) { state.store(new.rawValue, ordering: .releasing) }
}

package struct PlaybackCallbacks {
  /// The host's `user_data`.
  package var keepsAlive: HostReference?
  /// Asks for a fresh payload; runs on a callback thread.
  package var payload: ((HostQuestion, KeySystem, HostPlayback) -> Void)?
  /// Takes a licence the library renewed; runs on a callback thread.
  package var renewed: ((Answer, HostPlayback) -> Void)?
  package init() {}
}

/// One playback in the engine. Touched by the I/O thread only.
final class PlaybackEntry {
  let id: PlaybackID
  let player: PlayerID
  let host: HostPlayback
  let delegate: LicenseDelegate
  let shared: PlaybackShared
  var callbacks: PlaybackCallbacks
  var machine: PlaybackMachine
  var jobs: [LicenseID: LicenseJob] = [:]
  /// Jobs that the host has an answer for, while their request is still in flight.
  var abandoned: [LicenseID: LicenseJob] = [:]
  /// 0: no timer is set; the same for `tokenTimer`.
  var sessionTimer: UInt64 = 0
  /// The key of the item in the token map.
  var contentID: [UInt8]
  var tokenTimer: UInt64 = 0
  /// Its tokens in the map, which are not pruned while it plays.
  var mappedTokens: [(id: [UInt8], pin: TokenMap.Pin)] = []
  fileprivate var pending: Pending?
  /// PLAYBACK_CLOSED was emitted.
  var hasReportedClosed = false
  /// How set-up ended; nil: it has not.
  var setupStatus: Status?
  /// The ledger's mark when the session was asked for.
  var slotsAtSetup: SlotLedger.Mark = 0
  /// Its last set-up or heartbeat.
  var callTransfer: TransferID = 0
  var nextLicense: LicenseID = 1

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

/// What is pending for a playback. Most of the time nothing is, so most playbacks have none of this.
private final class Pending {
  var questions: [HostQuestion] = []
  var loads: [LoadingJob] = []
  var setupWaits: [Wait<Status>] = []
  var closeWaits: [Wait<Status>] = []

  var isEmpty: Bool { questions.isEmpty && loads.isEmpty && setupWaits.isEmpty && closeWaits.isEmpty }
}

extension PlaybackEntry {
  /// The questions that the host has not answered yet; each says what closing the playback does to it.
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

  /// Where its session is held.
  var headEnd: SlotLedger.HeadEnd {
    SlotLedger.HeadEnd(delegate: ObjectIdentifier(delegate), teardownOrigin: delegate.endpoints.teardown?.origin)
  }
}

/// What is to be played.
package struct PlaybackItem {
  package var delegate: LicenseDelegate
  package var contentToken: Secret?
  package var contentID: [UInt8] = []
  /// Not encrypted: no session, no token.
  package var isClear = false

  package init(delegate: LicenseDelegate, contentToken: Secret?) {
    self.delegate = delegate
    self.contentToken = contentToken
  }
}

/// One licence request.
final class LicenseJob {
  let keySystem: KeySystem
  let isRenewal: Bool
  /// Octets are asked for.
  let isRaw: Bool
  let payload: Secret
  let isByLibrary: Bool
  let assetID: [UInt8]
  /// Told once. Runs on the I/O thread and must only hand over.
  private var complete: ((Answer) -> Void)?
  var timer: UInt64?
  var transfer: TransferID = 0
  /// The last request that was made for it.
  var request: LicenseAttempt?

  init(
    keySystem: KeySystem, isRenewal: Bool, isRaw: Bool, payload: Secret, isByLibrary: Bool, assetID: [UInt8] = [],
    complete: @escaping (Answer) -> Void
  ) {
    self.keySystem = keySystem
    self.isRenewal = isRenewal
    self.isRaw = isRaw
    self.payload = payload
    self.isByLibrary = isByLibrary
    self.assetID = assetID
    self.complete = complete
  }

  /// Completes the request with the answer, and releases the completion.
  func end(_ answer: Answer) {
    complete?(answer)
    complete = nil
  }
}
