package import UsherCore

/// How one FairPlay resource loader gets from a URL to a CKC. What changes is touched by the I/O thread only.
package final class ResourceLoader {
  package enum Route: Sendable { case keyServer, entitlement, tokenURL }

  package struct Options {
    package var scheme = AssetID.fairPlayScheme
    package var route = Route.keyServer
    /// nil: what the token map knows the content by.
    package var rule: ContentIdentifier? = .decodedJSON
    package var keyServer: Endpoint?
    package var entitlementServer: Endpoint?
    package var allowed = AllowList()
    /// In place of the scheme of URLs out of content.
    package var target = TokenURL.https
    package var headers: [Secret] = []
    package var request = FPSRequestFormat()
    /// A further field of the request, with the content identifier.
    package var contentField: [UInt8]?
    package var response = FPSResponseFormat()
    package var binding: SEESBinding?
    package var cookie: [UInt8] = []
    package var spcTimeout: Milliseconds = 5000
    package init() {}
  }

  package struct Question {
    package let certificate: Secret?
    package let contentIdentifier: [UInt8]
    package let url: [UInt8]
  }

  package let options: Options
  let askSPC: (Ask, Question, HostPlayback) -> Void
  let certificates: CertificateSource
  var binding: SEESBinding?

  package init(
    _ options: Options, certificates: CertificateSource,
    spc: @escaping (Ask, Question, HostPlayback) -> Void
  ) {
    self.options = options
    askSPC = spc
    binding = options.binding
    self.certificates = certificates
  }

  /// What a URL names, by the loader's rule; nil where it names nothing.
  package func names(_ url: [UInt8]) -> (identifier: [UInt8], content: [UInt8])? {
    url.withUnsafeBufferPointer { text in
      guard let asset = (try? AssetID(text, scheme: options.scheme))?.read() else { return nil }
      var identifier = asset.contentID
      if let rule = options.rule {
        guard let found = try? rule.bytes(of: text, scheme: options.scheme) else { return nil }
        identifier = found
      }
      guard let content = TokenURL.queryValue("cid", in: text), !content.isEmpty else {
        return (identifier, asset.contentID)
      }
      // An entitlement server's own address names no key.
      let isAddress = options.route == .entitlement && options.rule == .decodedJSON && !asset.isJSON
      return (isAddress ? content : identifier, content)
    }
  }
}

/// One loading request: finished exactly once.
final class LoadingJob {
  enum Step {
    case entitlement(SEESRequest)
    case key
  }

  let id: UInt64
  let loader: ResourceLoader
  let url: [UInt8]
  let identifier: [UInt8]
  let content: [UInt8]
  var keyServer: Endpoint?
  /// What stands in the key server's URL that is as good as a token.
  var secrets: [Secret] = []
  var timer: UInt64?
  var ask: Ask?
  var transfer: TransferID?
  private var complete: ((Answer) -> Void)?

  init(
    id: UInt64, loader: ResourceLoader, url: [UInt8], identifier: [UInt8], content: [UInt8],
    complete: @escaping (Answer) -> Void
  ) {
    self.id = id
    self.loader = loader
    self.url = url
    self.identifier = identifier
    self.content = content
    self.complete = complete
  }

  var isOpen: Bool { complete != nil }

  /// Who is told the answer; the first time only. From then on nothing ends it again.
  func take() -> ((Answer) -> Void)? {
    defer { complete = nil }
    return complete
  }
}
