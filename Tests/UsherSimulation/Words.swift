import UsherCore
import UsherEngine

/// What licence delegate a playback has, and what keeps its session alive.
enum Kind: UInt8, CaseIterable {
  case heartbeats, renewals, widevine, v2Renewals, v2Heartbeats, mapped, hooked, customerHeartbeats, customerRenewals,
    plain, common, loader

  var hasServerSession: Bool { rawValue <= Kind.hooked.rawValue }
  var isCustomer: Bool { self == .customerHeartbeats || self == .customerRenewals }
  var isV2: Bool { self == .v2Renewals || self == .v2Heartbeats }
  /// Licence replies carry a session token.
  var isEnforced: Bool { self == .renewals || self == .v2Renewals || self == .hooked }
  /// The library asks for renewals, and the host makes the payload.
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

/// Where a request goes; the letter ends its URL.
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

  var isLicense: Bool { self == .license || self == .renewal || self == .widevineRenewal }
}

/// What the network or the head-end does to one request.
enum Fault: UInt8, CaseIterable {
  case refused, tls, resetBefore, resetAfter, muteBefore, muteAfter, late
  case busy, busyRetryAfter, tooMany, gatewayBefore, gatewayAfter, forbidden, notFound, redirect, serviceError
  case page, brokenJSON, empty, tooLarge

  /// The head-end acts on the request all the same.
  var takesEffect: Bool {
    switch self {
    case .resetAfter, .muteAfter, .late, .gatewayAfter, .page, .brokenJSON, .tooLarge: return true
    default: return false
    }
  }
}

/// What of the host is asked.
enum Callback: UInt8, CaseIterable { case token, payload, hook, customer, event }

/// How the host answers.
enum Habit: UInt8, CaseIterable { case later, never, fails, blocks }

/// One thing that the story says happens.
enum Action {
  /// A zap, if something plays on the player.
  case play(PlaybackID, player: UInt64, Kind, Choice)
  /// nil: the delegate's default.
  case close(PlaybackID, leave: Bool?)
  case stop(player: UInt64)
  case license(PlaybackID, isRenewal: Bool, timeout: Milliseconds?)
  case certificate(PlaybackID)
  case contentID(PlaybackID)
  case load(PlaybackID)
  case cancelLoad(PlaybackID)
  case giveToken(PlaybackID)
  case mapToken(content: UInt64)
  /// Another header for the default delegate's licences.
  case header
  /// Operator: all sessions of the account, or of all.
  case kill(account: UInt64?)
  case suspend
  case resume
  case networkChanged
  /// The machine sleeps, and then everything happens at once.
  case sleep(Milliseconds)
  /// Nothing goes out, nothing comes in.
  case networkDown(Milliseconds)
  /// One in so many requests to a route (nil: any) meets a fault for a while.
  case fault(Fault, Route?, oneIn: UInt64, lasts: Milliseconds)
  case habit(Callback, Habit, lasts: Milliseconds)
}

/// How one playback differs from others of its kind.
struct Choice {
  /// The host knows the content token when it begins.
  var hasToken = true
  /// The host makes payloads when asked; else it renews by itself when told.
  var hasPayload = true
  var content: UInt64 = 0
}

struct Item {
  let at: Milliseconds
  let action: Action
}
