/// The numbers that the React Native player, the Android player and the Apple SDK use for an error. Hosts that migrate
/// from one of these three need the numbers.
package struct LegacyCodes: Equatable, Sendable {
  /// The unified code of the React Native player; 0 if this player has no number for this error.
  package let reactNative: Int32
  /// The Android player's `what`; 0 if this player has no number for this error.
  package let androidWhat: Int32
  /// The Android player's `extra`: the SSM's errorCode; 0 if the error does not come from the SSM.
  package let androidExtra: Int64
  /// The internal number of the Apple SDK; 0 if the SDK has no number for this error.
  package let appleInternal: Int32
  /// The value of the key `code` in the Apple SDK's notification: the HTTP status; -1 if there was no HTTP reply.
  package let appleCode: Int32

  package init(status: Status, origin: Origin, operation: Operation, httpStatus: Int32, serviceCode: Int64) {
    appleCode = httpStatus > 0 ? httpStatus : -1
    androidExtra = origin == .ssm ? serviceCode : 0
    guard status != .ok else {
      (reactNative, androidWhat, appleInternal) = (0, 0, 0)
      return
    }
    switch operation {
    case .setup:
      reactNative = status == .limit ? 6004 : (status == .noToken ? 5022 : 6001)
      androidWhat = -1352
      appleInternal = 3010
    case .teardown: (reactNative, androidWhat, appleInternal) = (6002, -1354, 3020)
    case .heartbeat: (reactNative, androidWhat, appleInternal) = (6003, -1353, status == .callback ? 3040 : 3030)
    case .renewal:
      (reactNative, androidWhat, appleInternal) = (6003, -1353, status == .callback ? 3040 : 3050)
    case .license, .certificate, .entitlement:
      reactNative = LegacyCodes.license(status)
      androidWhat = 0
      appleInternal = status == .callback ? 3040 : 3050
    case .none: (reactNative, androidWhat, appleInternal) = (0, 0, 0)
    }
  }

  private static func license(_ status: Status) -> Int32 {
    switch status {
    case .noToken: return 5022
    case .noDelegate, .declined: return 5001
    case .protocolError, .tooLarge: return 5005
    case .limit: return 6004
    case .session: return 5004
    case .ok: return 0
    case .invalidArgument, .invalidHandle, .closed, .replaced, .timeout, .wouldDeadlock, .forked, .system, .callback,
      .invalidCompletion, .state, .transport,
      .tls, .http, .refused, .redirect, .renewalMissed, .full, .notAllowed:
      return 5006
    }
  }
}
