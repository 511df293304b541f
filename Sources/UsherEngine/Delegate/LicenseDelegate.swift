package import UsherCore

/// The settings of one licence delegate: its servers, its headers, its policy. Only the I/O thread uses its mutable
/// properties.
package final class LicenseDelegate {
  package struct Endpoints {
    /// The licence server; nil if a hook supplies the URL, or if the host sends the request.
    package var license: Endpoint?
    package var licenseRenewal: Endpoint?
    package var setup: Endpoint?
    package var heartbeat: Endpoint?
    package var teardown: Endpoint?
    package var widevineRenewal: Endpoint?

    package init(license: Endpoint? = nil, licenseRenewal: Endpoint? = nil) {
      self.license = license
      self.licenseRenewal = licenseRenewal
    }
  }

  package typealias TokenCallback = (HostQuestion, HostPlayback) -> Void

  let sharedPolicy: Shared<SSPPolicy>
  package var policy: SSPPolicy { sharedPolicy.value }
  package let isSync: Bool
  let endpoints: Endpoints
  package let certificates: CertificateSource
  let isRaw: Bool
  let setupBody: Secret
  let keepAliveBody: Secret
  /// The part of the token header's line before the value: "name: ".
  let tokenHeader: [UInt8]
  let extraHeaders: [Secret]
  static let sendsJSON = line("Content-Type: application/json; charset=utf-8")
  static let acceptsJSON = line("Accept: application/json")

  /// The content tokens of a multi-instance delegate, by content identifier; nil for other delegates.
  package let tokenMap: TokenStore?
  /// Names of the fields in replies that have the session token, the keep-alive period and the mode.
  let fields: SessionFieldNames
  /// Whether the host sends all requests itself.
  package var isCustomer: Bool { sharedPolicy.value.opening == .customer }
  /// The time limit for the answer of a hook or of a customer's licence callback.
  package let hookTimeout: Milliseconds

  /// The host's callbacks for the operator's session management; nil if the host has not set them.
  package var customer: CustomerCallbacks?
  var tokenCallback: TokenCallback?
  var hooks: DelegateHooks?
  /// Headers that the host set for later licence requests.
  var licenseHeaders: [(name: [UInt8], line: Secret)] = []

  package init(
    policy: SSPPolicy, isSync: Bool = false, endpoints: Endpoints = Endpoints(),
    certificates: CertificateSource = CertificateSource(), isRaw: Bool = false, setupBody: [UInt8] = [],
    keepAliveBody: [UInt8] = [], tokenHeader: [UInt8] = defaultTokenHeader, extraHeaders: [Secret] = [],
    tokenMap: TokenStore? = nil, fields: SessionFieldNames = SessionFieldNames(),
    hookTimeout: Milliseconds = 5000
  ) {
    sharedPolicy = Shared(policy)
    self.isSync = isSync
    self.endpoints = endpoints
    self.certificates = certificates
    self.isRaw = isRaw
    self.setupBody = Secret(setupBody)
    self.keepAliveBody = Secret(keepAliveBody)
    self.tokenHeader = tokenHeader + [0x3A, 0x20]
    self.extraHeaders = extraHeaders
    self.tokenMap = tokenMap
    self.fields = fields
    self.hookTimeout = hookTimeout
  }

  /// The default name of the header that carries tokens.
  package static var defaultTokenHeader: [UInt8] { Array("nv-authorizations".utf8) }

  /// Whether a call that plays this item waits until the set-up has ended. The call waits if the delegate is
  /// synchronous and the call starts the set-up. (If a later licence request of the host starts the set-up, the call
  /// does not wait.)
  package func waitsForSetup(_ item: PlaybackItem) -> Bool {
    isSync && !item.isClear && policy.hasSSM && !policy.opensByLicense
      && (tokenMap == nil || !item.contentID.isEmpty || item.contentToken != nil)
  }

  static func line(_ text: StaticString) -> Secret {
    text.withUTF8Buffer { bytes in
      Secret(count: bytes.count + 1) { copy(bytes, into: $0) }
    }
  }

  /// Makes the header line "name: a,b" from one token or two, without a space after the comma.
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
