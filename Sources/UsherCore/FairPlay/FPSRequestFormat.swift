/// The form in which a FairPlay key server expects the payload (SPC).
package struct FPSRequestFormat: Sendable {
  package enum Encoding: UInt8, Sendable, CaseIterable {
    /// The bytes of the payload.
    case raw
    /// `spc=<base64>&name=value`.
    case form
    /// The payload as base64 text.
    case base64
    /// `{"spc":"<base64>","name":"value", …}`.
    case json
  }

  /// Which parts of a form are percent-encoded; key servers differ in this. The names and values of `fields` are
  /// percent-encoded in every case.
  package enum URLEncoding: UInt8, Sendable, CaseIterable {
    /// `value`: only the base64 text of the payload is percent-encoded, besides `fields`. `none`: not even this text.
    case value, none
    /// The whole form body, including `=` and `&`.
    case whole
  }

  package enum Failure: Error, Equatable, Sendable {
    case emptyPayload
    /// A field has no name. In JSON this error also means that a field is not UTF-8.
    case badField
  }

  package struct Field: Sendable {
    package let name: [UInt8]
    package let value: Secret

    package init(_ name: [UInt8], _ value: Secret) {
      self.name = name
      self.value = value
    }
  }

  package var encoding = Encoding.raw
  package var urlEncoding = URLEncoding.value
  /// The name of the field that has the payload.
  package var name: [UInt8] = [0x73, 0x70, 0x63]
  /// Fields that follow the payload, in this order.
  package var fields: [Field] = []
  /// The text of a JSON object. With the encoding `json`, the body also has the members of this object. The code that
  /// sets this property must check that the text is a JSON object.
  package var members: [UInt8] = []

  package init() {}

  package var contentType: StaticString {
    switch encoding {
    case .raw: return "application/octet-stream"
    case .form: return "application/x-www-form-urlencoded"
    case .base64: return "text/plain"
    case .json: return "application/json"
    }
  }

  package func body(_ payload: UnsafeBufferPointer<UInt8>) throws(Failure) -> Secret {
    guard !payload.isEmpty else { throw .emptyPayload }
    switch encoding {
    case .raw: return Secret(payload)
    case .base64: return TextSink.secret { $0.addBase64(payload) }
    case .form:
      guard !name.isEmpty, fields.allSatisfy({ !$0.name.isEmpty }) else { throw .badField }
      return TextSink.secret { form(payload, &$0) }
    case .json:
      guard isText(name), fields.allSatisfy({ isText($0.name) && $0.value.withBytes(UTF8Text.isValid) }) else {
        throw .badField
      }
      return TextSink.secret { json(payload, &$0) }
    }
  }

  private func isText(_ name: [UInt8]) -> Bool { !name.isEmpty && name.withUnsafeBufferPointer(UTF8Text.isValid) }

  private func form(_ payload: UnsafeBufferPointer<UInt8>, _ sink: inout TextSink) {
    sink.isPercentCoded = urlEncoding == .whole
    sink.add(name)
    sink.add(0x3D)
    sink.addBase64(payload, coded: urlEncoding == .value)
    for field in fields {
      sink.add(0x26)
      field.name.withUnsafeBufferPointer { urlEncoding == .whole ? sink.add($0) : sink.addCoded($0) }
      sink.add(0x3D)
      field.value.withBytes { urlEncoding == .whole ? sink.add($0) : sink.addCoded($0) }
    }
  }

  private func json(_ payload: UnsafeBufferPointer<UInt8>, _ sink: inout TextSink) {
    sink.add(0x7B)
    name.withUnsafeBufferPointer { sink.addJSON($0) }
    sink.add(":\"")
    sink.addBase64(payload)
    sink.add(0x22)
    for field in fields {
      sink.add(0x2C)
      field.name.withUnsafeBufferPointer { sink.addJSON($0) }
      sink.add(0x3A)
      field.value.withBytes { sink.addJSON($0) }
    }
    let inner = membersInside
    if !inner.isEmpty {
      sink.add(0x2C)
      inner.withUnsafeBufferPointer { sink.add($0) }
    }
    sink.add(0x7D)
  }

  /// The text between the braces of `members`.
  private var membersInside: ArraySlice<UInt8> {
    guard let open = members.firstIndex(of: 0x7B), let close = members.lastIndex(of: 0x7D), open < close else {
      return []
    }
    let inner = members[(open + 1)..<close]
    return inner.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D } ? [] : inner
  }
}
