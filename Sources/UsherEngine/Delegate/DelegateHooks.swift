package import UsherCore

/// The hooks that a host may set. The numbers are those of hooks.h.
package enum HookKind: Int32, Sendable {
  case contentID = 1
  case certificate, headers, licenseURL, licenseBody, license
}

/// The question that the library passes to a hook.
package final class HookQuestion {
  package let kind: HookKind
  package let keySystem: KeySystem?
  package let isRenewal: Bool
  /// The asset ID of the licence request, or the URL whose content identifier the host requests.
  package let assetID: [UInt8]
  /// The payload, or the licence server's reply.
  package let data: Secret?
  package let httpStatus: Int32
  /// Makes the value that the library would use without the hook. Any thread may call this closure, which may wait for
  /// a server.
  package let builtin: () -> BuiltIn

  package enum BuiltIn {
    case value(Secret)
    case failed(UsherError)
  }

  init(
    _ kind: HookKind, keySystem: KeySystem? = nil, isRenewal: Bool = false, assetID: [UInt8] = [], data: Secret? = nil,
    httpStatus: Int32 = 0,
    builtin: @escaping () -> BuiltIn
  ) {
    self.kind = kind
    self.keySystem = keySystem
    self.isRenewal = isRenewal
    self.assetID = assetID
    self.data = data
    self.httpStatus = httpStatus
    self.builtin = builtin
  }
}

/// The host's hooks; if a hook is nil, the library uses its built-in behaviour. A hook runs as a callback of the
/// playback. The host answers the question of a hook before the hook returns, or later from any thread.
package struct DelegateHooks {
  package typealias Hook = (HostQuestion, HookQuestion, HostPlayback) -> Void
  /// The scheme of the URLs that the delegate serves.
  package var scheme = AssetID.fairPlayScheme
  package var contentID: Hook?
  package var certificate: Hook?
  package var headers: Hook?
  package var licenseURL: Hook?
  package var licenseBody: Hook?
  package var license: Hook?
  package init() {}
}

/// The licence that a customer's callback returned. In the SDKs this is `OTVSSMLicenseResponse`.
package struct CustomerLicense {
  package let data: Secret
  /// Keep-alive period in seconds; 0: none.
  package let period: Double
  /// Whether renewals keep the session alive; false: heartbeats do; nil: neither.
  package let isEnforced: Bool?

  package init(data: Secret, period: Double, isEnforced: Bool?) {
    self.data = data
    self.period = period
    self.isEnforced = isEnforced
  }
}

/// The licence request that a customer's callback gets.
package struct CustomerQuestion {
  package let keySystem: KeySystem
  package let isRenewal: Bool
  package let payload: Secret
  package let assetID: [UInt8]
}

/// The host's callbacks for the operator's session management. In these callbacks the host calls the operator's
/// servers.
package final class CustomerCallbacks {
  package typealias Call = (HostQuestion, HostPlayback) -> Void

  let license: (HostQuestion, CustomerQuestion, HostPlayback) -> Void
  let heartbeat: Call?
  let teardown: Call?

  package init(
    license: @escaping (HostQuestion, CustomerQuestion, HostPlayback) -> Void, heartbeat: Call? = nil,
    teardown: Call? = nil
  ) {
    self.license = license
    self.heartbeat = heartbeat
    self.teardown = teardown
  }
}
