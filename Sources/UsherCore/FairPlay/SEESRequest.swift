/// A request that asks an entitlement server (SEES) whether this device may play this content. The reply has the URL of
/// a licence token.
package struct SEESRequest: Sendable {
  package enum Kind: UInt8, Sendable, CaseIterable {
    case timeBased = 1
    case deviceRegistration = 2
    case deviceBound = 3
  }

  package enum Failure: Error, Equatable, Sendable {
    /// The content identifier is empty, longer than `mostContentIDBytes`, or not UTF-8.
    case badContentID
    /// The cookie is longer than `mostCookieBytes`, or not UTF-8.
    case badCookie
  }

  package static var version: Int64 { 1 }
  package static var mostCookieBytes: Int { 32 }
  package static var mostContentIDBytes: Int { 65_536 }

  /// A new id for each request. If a reply has another id, the reply does not belong to this request.
  package let messageID: UUIDBytes
  package let kind: Kind
  package let contentID: [UInt8]
  /// The customer cookie, which is the same for all requests of one device; empty if the host set none.
  package let cookie: [UInt8]

  package init(messageID: UUIDBytes, kind: Kind, contentID: [UInt8], cookie: [UInt8] = []) throws(Failure) {
    guard !contentID.isEmpty, contentID.count <= SEESRequest.mostContentIDBytes,
      contentID.withUnsafeBufferPointer(UTF8Text.isValid)
    else { throw .badContentID }
    guard cookie.count <= SEESRequest.mostCookieBytes, cookie.withUnsafeBufferPointer(UTF8Text.isValid) else {
      throw .badCookie
    }
    self.messageID = messageID
    self.kind = kind
    self.contentID = contentID
    self.cookie = cookie
  }

  /// The body of the POST, of type `application/json`.
  package var body: Secret {
    TextSink.secret { sink in
      sink.add("{\"messageID\":")
      messageID.text.withUnsafeBufferPointer { sink.addJSON($0) }
      sink.add(",\"version\":")
      sink.add(0x30 + UInt8(truncatingIfNeeded: SEESRequest.version))
      sink.add(",\"requestType\":")
      sink.add(0x30 + kind.rawValue)
      sink.add(",\"contentID\":")
      contentID.withUnsafeBufferPointer { sink.addJSON($0) }
      if !cookie.isEmpty {
        sink.add(",\"customerCookie\":")
        cookie.withUnsafeBufferPointer { sink.addJSON($0) }
      }
      sink.add(0x7D)
    }
  }
}

/// The state of the binding of ExpressPlay tokens to a device. Binding has two steps, which use the same cookie: the
/// first token that is used for a licence registers the device, and later tokens are valid for this device only.
package struct SEESBinding: Equatable, Sendable {
  package let cookie: [UInt8]
  package private(set) var isRegistered: Bool

  package init(cookie: [UInt8], isRegistered: Bool = false) {
    self.cookie = cookie
    self.isRegistered = isRegistered
  }

  /// The kind of the next request.
  package var kind: SEESRequest.Kind { isRegistered ? .deviceBound : .deviceRegistration }

  /// Call this when a licence has arrived for a token that registers the device: from now on the server knows the
  /// device.
  package mutating func licenseArrived() { isRegistered = true }

  /// Call this when the server no longer knows the device: the next request registers the device again.
  package mutating func deviceUnknown() { isRegistered = false }
}
