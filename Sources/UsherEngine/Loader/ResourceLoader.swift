package import UsherCore

/// How one FairPlay resource loader gets from a URL to a CKC. Only the I/O thread touches what changes.
package final class ResourceLoader {
  package enum Route: Sendable { case keyServer, entitlement, tokenURL }

  package struct Options {
    package var scheme = AssetID.fairPlayScheme
    package var route = Route.keyServer
    /// nil: the identifier that an SSP delegate's token map uses.
    package var rule: ContentIdentifier? = .decodedJSON
    package var keyServer: Endpoint?
    package var entitlementServer: Endpoint?
    package var allowed = AllowList()
    /// The scheme that a server's URL inside the content's URL gets.
    package var target = TokenURL.https
    package var headers: [Secret] = []
    package var request = FPSRequestFormat()
    /// The name of a further field of the request, which has the content identifier.
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
  let askSPC: (HostQuestion, Question, HostPlayback) -> Void
  let certificates: CertificateSource
  var binding: SEESBinding?

  package init(
    _ options: Options, certificates: CertificateSource,
    spc: @escaping (HostQuestion, Question, HostPlayback) -> Void
  ) {
    self.options = options
    askSPC = spc
    binding = options.binding
    self.certificates = certificates
  }

  /// The content that a URL names, by the loader's rule; nil: it names none.
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
      // The rest of the URL is the entitlement server's address, which names no key.
      let isAddress = options.route == .entitlement && options.rule == .decodedJSON && !asset.isJSON
      return (isAddress ? content : identifier, content)
    }
  }
}

/// Where the SPC, or an entitlement request, goes.
struct LoadingServer {
  let endpoint: Endpoint
  /// The token in its URL, which messages must not show.
  var token: Secret?
}

/// One loading request: its steps, and what is under way for it.
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
  var machine: LoadingMachine<LoadingServer>
  var timer: UInt64?
  var ask: HostQuestion?
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
    machine = LoadingMachine(
      isByEntitlement: loader.options.route == .entitlement, hasCertificate: loader.certificates.canSupply)
  }

  /// Hands the answer over, and releases the completion with what it holds.
  func end(_ answer: Answer) {
    complete?(answer)
    complete = nil
  }
}
