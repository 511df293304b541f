import UsherCore
import UsherEngine

/// The kind of licence delegate that a playback has; it decides what keeps the session alive.
enum Kind: UInt8, CaseIterable {
  case heartbeats, renewals, widevine, v2Renewals, v2Heartbeats, mapped, hooked, customerHeartbeats, customerRenewals,
    plain, common, loader

  var hasServerSession: Bool { rawValue <= Kind.hooked.rawValue }
  var isCustomer: Bool { self == .customerHeartbeats || self == .customerRenewals }
  var isV2: Bool { self == .v2Renewals || self == .v2Heartbeats }
  /// Whether licence replies have a session token.
  var isEnforced: Bool { self == .renewals || self == .v2Renewals || self == .hooked }
  /// Whether the library makes renewals, and asks the host for their payloads.
  var asksHost: Bool { isEnforced || self == .customerRenewals }
  var keySystem: KeySystem {
    switch self {
    case .widevine, .v2Heartbeats: return .widevine
    case .mapped: return .clearKey
    case .v2Renewals: return .playReady
    default: return .fairPlay
    }
  }
}

/// The service to which a request goes. Each service has a letter, which is the last letter of the URL.
enum Route: UInt8, CaseIterable {
  case setup = 0x53  // S
  case heartbeat = 0x48  // H
  case teardown = 0x54  // T
  case license = 0x4C  // L
  case renewal = 0x52  // R
  case widevineRenewal = 0x57  // W
  case certificate = 0x43  // C
  case entitlement = 0x45  // E
  case key = 0x4B  // K

  var isSSM: Bool { self == .setup || self == .heartbeat || self == .teardown }
  var isLicense: Bool { self == .license || self == .renewal || self == .widevineRenewal }
}

/// A fault that the network or the head-end makes in one request.
enum Fault: UInt8, CaseIterable {
  case refused, tls, resetBefore, resetAfter, muteBefore, muteAfter, late
  case busy, busyRetryAfter, tooMany, gatewayBefore, gatewayAfter, forbidden, notFound, redirect, serviceError
  case page, brokenJSON, empty, tooLarge

  /// Whether the head-end executes the request in spite of the fault.
  var takesEffect: Bool {
    switch self {
    case .resetAfter, .muteAfter, .late, .gatewayAfter, .page, .brokenJSON, .tooLarge: return true
    default: return false
    }
  }
}

/// A callback of the host.
enum Callback: UInt8, CaseIterable { case token, payload, hook, customer, event }

/// How the host answers for some time: late, never, with a failure, or so slowly that it blocks the thread.
enum Habit: UInt8, CaseIterable { case later, never, fails, blocks }

/// One item of a story.
enum Action {
  /// The host plays an item on a player. If the player already plays another item, this is a zap.
  case play(PlaybackID, player: UInt64, Kind, Choice)
  /// The host closes a playback. `leave`: whether to let the session expire; nil: the default of the delegate.
  case close(PlaybackID, leave: Bool?)
  case stop(player: UInt64)
  case license(PlaybackID, isRenewal: Bool, timeout: Milliseconds?)
  case certificate(PlaybackID)
  case contentID(PlaybackID)
  case load(PlaybackID)
  case cancelLoad(PlaybackID)
  case giveToken(PlaybackID)
  case mapToken(content: UInt64)
  /// The host changes a header of the default delegate's licence requests.
  case header
  /// The operator ends all sessions of one account; nil: the sessions of every account.
  case kill(account: UInt64?)
  case suspend
  case resume
  case networkChanged
  /// The machine sleeps; when it wakes, everything that is overdue happens immediately.
  case sleep(Milliseconds)
  /// The I/O thread does not run for this time, while the network and the head-end continue. Replies wait in the
  /// sockets.
  case late(Milliseconds)
  /// For this time the network delivers no request and no reply.
  case networkDown(Milliseconds)
  /// For the time `lasts`, one in `oneIn` requests to a route (nil: to any) meets a fault.
  case fault(Fault, Route?, oneIn: UInt64, lasts: Milliseconds)
  case habit(Callback, Habit, lasts: Milliseconds)
}

/// The options of one playback.
struct Choice {
  /// Whether the host gives the content token at the start.
  var hasToken = true
  /// Whether the host has a payload callback. Without this callback, the host makes a renewal when it gets RENEWAL_DUE.
  var hasPayload = true
  var content: UInt64 = 0
}

struct Item {
  let at: Milliseconds
  let action: Action
}
