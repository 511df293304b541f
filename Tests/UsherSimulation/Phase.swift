@testable import UsherCore
@testable import UsherEngine

/// The state of a playback: the phase of its session, and the phase of its keep-alive.
enum Phase: UInt8, CaseIterable {
  case unborn, queued, idle, settingUp, contested, awaitingSlot, noBeat, beatWaits, beating, beatRefused, beatRetries,
    payloadAsked, paused
  case replacing, failed, closing, tearingDown, retryingTeardown, endedAwaiting, sessionless, gone

  var name: String {
    switch self {
    case .unborn: return "not there yet"
    case .queued: return "waits for its turn"
    case .idle: return "idle"
    case .settingUp: return "setting up"
    case .contested: return "contested"
    case .awaitingSlot: return "awaiting a slot"
    case .noBeat: return "active, no beat"
    case .beatWaits: return "active, beat waits"
    case .beating: return "active, beating"
    case .beatRefused: return "active, beat refused"
    case .beatRetries: return "active, beat retries"
    case .payloadAsked: return "active, payload asked"
    case .paused: return "active, paused"
    case .replacing: return "session being replaced"
    case .failed: return "failed"
    case .closing: return "closing"
    case .tearingDown: return "tearing down"
    case .retryingTeardown: return "retrying teardown"
    case .endedAwaiting: return "ended, reply awaited"
    case .sessionless: return "without session"
    case .gone: return "ended"
    }
  }

  var isBeat: Bool { self == .beating || self == .payloadAsked }
  var waitsForBeat: Bool { self == .beatWaits || self == .beatRetries }

  init(_ entry: PlaybackEntry) {
    if entry.machine.isWaiting {
      self = .queued
      return
    }
    if entry.machine.isReplacing {
      self = .replacing
      return
    }
    if !entry.machine.usesSession {
      self = .sessionless
      return
    }
    switch entry.machine.session.lifecycle.phase {
    case .idle: self = .idle
    case .settingUp: self = .settingUp
    case .contested: self = .contested
    case .awaitingSlot: self = .awaitingSlot
    case .failed: self = .failed
    case .closing: self = .closing
    case .tearingDown: self = .tearingDown
    case .retryingTeardown: self = .retryingTeardown
    case .ended: self = .endedAwaiting
    case .active:
      if entry.machine.session.isPaused {
        self = .paused
        return
      }
      switch entry.machine.session.beat {
      case .off: self = .noBeat
      case .waiting: self = .beatWaits
      case .inFlight: self = .beating
      case .refused: self = .beatRefused
      case .retrying: self = .beatRetries
      case .asked: self = .payloadAsked
      }
    }
  }
}

/// An event that can move a playback to another phase.
enum Input: UInt8, CaseIterable {
  case play, zap, closed, left, stopped, licenceAsked, renewalAsked, tokenGiven, tokenMapped, suspend, resume,
    networkChanged, contextClosed
  case setupGood, setupDenied, setupFailed, beatGood, beatDenied, beatFailed, teardownGood, teardownDenied,
    teardownFailed
  case licenceGood, licenceDenied, licenceFailed, renewalGood, renewalDenied, renewalFailed
  case tokenCame, noToken, payloadCame, noPayload, hookAnswered, customerLicence, customerNoLicence, customerBeat,
    customerNoBeat
  case customerTeardown, customerNoTeardown
  case timer, requestTimedOut, askTimedOut, othersEnded

  var isGoodBeat: Bool {
    self == .beatGood || self == .renewalGood || self == .customerBeat || self == .customerLicence
  }

  var name: String {
    switch self {
    case .play: return "play"
    case .zap: return "zap"
    case .closed: return "close"
    case .left: return "close, leave"
    case .stopped: return "player stopped"
    case .licenceAsked: return "licence asked"
    case .renewalAsked: return "renewal asked"
    case .tokenGiven: return "token given"
    case .tokenMapped: return "token mapped"
    case .suspend: return "suspend"
    case .resume: return "resume"
    case .networkChanged: return "network changed"
    case .contextClosed: return "context closed"
    case .setupGood: return "set-up: good"
    case .setupDenied: return "set-up: denied"
    case .setupFailed: return "set-up: failed"
    case .beatGood: return "heartbeat: good"
    case .beatDenied: return "heartbeat: denied"
    case .beatFailed: return "heartbeat: failed"
    case .teardownGood: return "teardown: good"
    case .teardownDenied: return "teardown: denied"
    case .teardownFailed: return "teardown: failed"
    case .licenceGood: return "licence: good"
    case .licenceDenied: return "licence: denied"
    case .licenceFailed: return "licence: failed"
    case .renewalGood: return "renewal: good"
    case .renewalDenied: return "renewal: denied"
    case .renewalFailed: return "renewal: failed"
    case .tokenCame: return "token came"
    case .noToken: return "no token"
    case .payloadCame: return "payload came"
    case .noPayload: return "no payload"
    case .hookAnswered: return "hook answered"
    case .customerLicence: return "host's licence"
    case .customerNoLicence: return "host: no licence"
    case .customerBeat: return "host's heartbeat"
    case .customerNoBeat: return "host: no heartbeat"
    case .customerTeardown: return "host's teardown"
    case .customerNoTeardown: return "host: no teardown"
    case .timer: return "timer"
    case .requestTimedOut: return "request timed out"
    case .askTimedOut: return "host answered too late"
    case .othersEnded: return "another playback"
    }
  }
}
