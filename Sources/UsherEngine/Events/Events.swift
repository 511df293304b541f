package import UsherCore

/// The kinds of events, with the numbers that the header gives them (`USHER_EVENT_…`).
package enum EventKind: Int32, Sendable, CaseIterable {
  case sessionStarted = 1
  case setupError, heartbeatError, teardownError, keptAlive, recovered, sessionDoubtful, renewalDue, sessionEnded
  case license, licenseError, playbackClosed, noSession, deviceRegistered, contextClosed, waitingForSlot
  case recoveredSlot, journalError

  package var name: StaticString {
    switch self {
    case .sessionStarted: return "SESSION_STARTED"
    case .setupError: return "SETUP_ERROR"
    case .heartbeatError: return "HEARTBEAT_ERROR"
    case .teardownError: return "TEARDOWN_ERROR"
    case .keptAlive: return "KEPT_ALIVE"
    case .recovered: return "RECOVERED"
    case .sessionDoubtful: return "SESSION_DOUBTFUL"
    case .renewalDue: return "RENEWAL_DUE"
    case .sessionEnded: return "SESSION_ENDED"
    case .license: return "LICENSE"
    case .licenseError: return "LICENSE_ERROR"
    case .playbackClosed: return "PLAYBACK_CLOSED"
    case .noSession: return "NO_SESSION"
    case .deviceRegistered: return "DEVICE_REGISTERED"
    case .contextClosed: return "CONTEXT_CLOSED"
    case .waitingForSlot: return "WAITING_FOR_SLOT"
    case .recoveredSlot: return "RECOVERED_SLOT"
    case .journalError: return "JOURNAL_ERROR"
    }
  }
}

package struct EngineEvent {
  package let kind: EventKind
  package let playback: HostPlayback
  package let sequence: UInt64
  package let time: Milliseconds
  package let isLeft: Bool
  package let period: Milliseconds
  package let lateness: Milliseconds
  package let error: UsherError
}

package enum LogLevel: Int32, Sendable {
  case error = 1
  case warning, info, debug, trace
}

/// What keeps a session alive, with the numbers that the header gives (`USHER_RENEW_…`).
package enum RenewType: Int32, Sendable {
  case heartbeat = 1
  case enforced, cdm, none
}
