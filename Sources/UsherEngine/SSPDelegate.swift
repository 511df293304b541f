package import UsherCore

/// How one SSP delegate asks: its servers, its headers, its policy. What changes is touched by the I/O thread only.
package final class SSPDelegate {
  package struct Endpoints {
    package var license: Endpoint
    package var licenseRenewal: Endpoint
    package var certificate: Endpoint?
    package var setup: Endpoint?
    package var heartbeat: Endpoint?
    package var teardown: Endpoint?
    package var widevineRenewal: Endpoint?

    package init(license: Endpoint, licenseRenewal: Endpoint) {
      self.license = license
      self.licenseRenewal = licenseRenewal
    }
  }

  package typealias TokenCallback = (Ask, HostPlayback) -> Void

  package let policy: SSPPolicy
  package let isSync: Bool
  let endpoints: Endpoints
  package var hasCertificateURL: Bool { endpoints.certificate != nil }
  let isRaw: Bool
  let setupBody: Secret
  let keepAliveBody: Secret
  /// "name: ", without the value.
  let tokenHeader: [UInt8]
  let extraHeaders: [Secret]
  let ssmHeaders: [Secret]

  var tokenCallback: TokenCallback?
  var certificate: Secret?
  var certificateWaiters: [CertificateWaiter] = []
  var isFetchingCertificate = false

  package init(
    policy: SSPPolicy, isSync: Bool, endpoints: Endpoints, isRaw: Bool, setupBody: [UInt8], keepAliveBody: [UInt8], tokenHeader: [UInt8],
    extraHeaders: [[UInt8]]
  ) {
    self.policy = policy
    self.isSync = isSync
    self.endpoints = endpoints
    self.isRaw = isRaw
    self.setupBody = Secret(setupBody)
    self.keepAliveBody = Secret(keepAliveBody)
    self.tokenHeader = tokenHeader + [0x3A, 0x20]
    let extra = extraHeaders.map { Secret($0 + [0]) }
    self.extraHeaders = extra
    ssmHeaders = [Self.line("Content-Type: application/json; charset=utf-8"), Self.line("Accept: application/json")] + extra
  }

  static func line(_ text: StaticString) -> Secret {
    text.withUTF8Buffer { bytes in
      Secret(count: bytes.count + 1) { target in
        for index in 0..<bytes.count { target[index] = bytes[index] }
      }
    }
  }

  /// "name: a,b": no space after the comma.
  func authorisation(_ first: Secret?, _ second: Secret?) -> Secret? {
    guard first != nil || second != nil else { return nil }
    let parts = [first, second].compactMap { $0 }
    let size = tokenHeader.count + parts.reduce(0) { $0 + $1.count } + parts.count
    return Secret(count: size) { target in
      var at = 0
      for byte in tokenHeader { target[at] = byte; at += 1 }
      for (index, part) in parts.enumerated() {
        if index > 0 { target[at] = 0x2C; at += 1 }
        part.withBytes { bytes in
          for byte in bytes { target[at] = byte; at += 1 }
        }
      }
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
