internal import Synchronization
package import UsherCore

/// How one licence delegate asks: its servers, its headers, its policy. What changes is touched by the I/O thread only.
package final class LicenseDelegate {
  package struct Endpoints {
    /// nil: a hook names it, or the host does the asking.
    package var license: Endpoint?
    package var licenseRenewal: Endpoint?
    package var certificate: Endpoint?
    package var setup: Endpoint?
    package var heartbeat: Endpoint?
    package var teardown: Endpoint?
    package var widevineRenewal: Endpoint?

    package init(license: Endpoint?, licenseRenewal: Endpoint?) {
      self.license = license
      self.licenseRenewal = licenseRenewal
    }
  }

  package typealias TokenCallback = (Ask, HostPlayback) -> Void

  let sharedPolicy: Shared<SSPPolicy>
  package var policy: SSPPolicy { sharedPolicy.value }
  package let isSync: Bool
  let endpoints: Endpoints
  /// Whether it can get a certificate at all.
  package var hasCertificate: Bool { endpoints.certificate != nil || mayHaveCertificate.load(ordering: .acquiring) }
  private let mayHaveCertificate = Atomic<Bool>(false)
  let isRaw: Bool
  let setupBody: Secret
  let keepAliveBody: Secret
  /// "name: ", without the value.
  let tokenHeader: [UInt8]
  let extraHeaders: [Secret]
  let ssmHeaders: [Secret]

  /// Content tokens by content identifier (multi-instance).
  package let tokenMap: TokenStore?
  /// Where replies name the session token, its period and mode.
  let fields: SessionFieldNames
  /// The operator's own session management.
  let customer: CustomerCallbacks?
  package var isCustomer: Bool { customer != nil }
  package let hookTimeout: Milliseconds

  var tokenCallback: TokenCallback?
  var hooks: DelegateHooks?
  /// Set for the licences to come.
  var licenseHeaders: [(name: [UInt8], line: Secret)] = []
  var certificate: Secret?
  var certificateWaiters: [CertificateWaiter] = []
  var isFetchingCertificate = false

  package init(
    policy: SSPPolicy, isSync: Bool, endpoints: Endpoints, isRaw: Bool, setupBody: [UInt8], keepAliveBody: [UInt8],
    tokenHeader: [UInt8],
    extraHeaders: [Secret], tokenMap: TokenStore? = nil, fields: SessionFieldNames = SessionFieldNames(),
    customer: CustomerCallbacks? = nil,
    certificate: Secret? = nil, hookTimeout: Milliseconds = 5000
  ) {
    sharedPolicy = Shared(policy)
    self.isSync = isSync
    self.endpoints = endpoints
    self.isRaw = isRaw
    self.setupBody = Secret(setupBody)
    self.keepAliveBody = Secret(keepAliveBody)
    self.tokenHeader = tokenHeader + [0x3A, 0x20]
    self.extraHeaders = extraHeaders
    self.tokenMap = tokenMap
    self.fields = fields
    self.customer = customer
    self.certificate = certificate
    self.hookTimeout = hookTimeout
    if certificate != nil { mayHaveCertificate.store(true, ordering: .releasing) }
    ssmHeaders =
      [Self.line("Content-Type: application/json; charset=utf-8"), Self.line("Accept: application/json")] + extraHeaders
  }

  /// Any thread: hooks that the I/O thread takes up with its next command can get a certificate from now on.
  func expect(_ hooks: DelegateHooks?) {
    if hooks?.certificate != nil { mayHaveCertificate.store(true, ordering: .releasing) }
  }

  static func line(_ text: StaticString) -> Secret {
    text.withUTF8Buffer { bytes in
      Secret(count: bytes.count + 1) { copy(bytes, into: $0) }
    }
  }

  /// "name: a,b": no space after the comma.
  func authorisation(_ first: Secret?, _ second: Secret?) -> Secret? {
    guard first != nil || second != nil else { return nil }
    let size = tokenHeader.count + (first?.count ?? 0) + (second?.count ?? 0) + (first != nil && second != nil ? 2 : 1)
    return Secret(count: size) { target in
      var at = 0
      func add(_ bytes: UnsafeBufferPointer<UInt8>) {
        copy(bytes, into: target, at: at)
        at += bytes.count
      }
      tokenHeader.withUnsafeBufferPointer(add)
      first?.withBytes(add)
      if first != nil, second != nil {
        target[at] = 0x2C
        at += 1
      }
      second?.withBytes(add)
    }
  }
}

/// What host callbacks are told about the playback they are called for.
package struct HostPlayback {
  package let handle: UInt
  package let playerHandle: UInt
  package let tag: UInt64

  package init(handle: UInt, playerHandle: UInt, tag: UInt64) {
    self.handle = handle
    self.playerHandle = playerHandle
    self.tag = tag
  }
}
