package import UsherCore

/// The settings of one FairPlay resource loader, which gets a CKC for a URL. Only the I/O thread uses its mutable
/// properties.
package final class ResourceLoader {
  package enum Route: Sendable { case keyServer, entitlement, tokenURL }

  package struct Options {
    package var scheme = AssetID.fairPlayScheme
    package var route = Route.keyServer
    /// The rule for the content identifier. nil: the same identifier as an SSP delegate uses for its token map.
    package var rule: ContentIdentifier? = .decodedJSON
    package var keyServer: Endpoint?
    package var entitlementServer: Endpoint?
    package var allowed = AllowList()
    /// If the loader makes a token URL from the content's URL, the token URL gets this scheme.
    package var target = TokenURL.https
    package var headers: [Secret] = []
    package var request = FPSRequestFormat()
    /// The name of an additional field in the key request; its value is the content identifier.
    package var contentField: [UInt8]?
    package var response = FPSResponseFormat()
    package var binding: SEESBinding?
    package var cookie: [UInt8] = []
    package var spcTimeout: Milliseconds = 5000
    package var serverTimeout: Milliseconds = 10_000
    package init() {}
  }

  package struct Question {
    package let certificate: Secret?
    package let contentIdentifier: [UInt8]
    package let url: [UInt8]
  }

  /// The question that the host's callback receives: which server gets the SPC?
  package struct ServerQuestion {
    package let url: [UInt8]
    /// The content identifier for the SPC.
    package let contentIdentifier: [UInt8]
    /// The content identifier for an entitlement server.
    package let content: [UInt8]
    /// The entitlement server that the library would ask; nil if there is none.
    package let entitlementServer: Endpoint?
    /// The kind of token that the library would ask for.
    package let kind: SEESRequest.Kind
  }

  /// The host's wishes for the request to an entitlement server. If a member is nil, the value in the question applies.
  package struct Entitlement {
    package let server: Endpoint?
    package let content: [UInt8]?
    package let kind: SEESRequest.Kind?

    package init(server: Endpoint? = nil, content: [UInt8]? = nil, kind: SEESRequest.Kind? = nil) {
      self.server = server
      self.content = content
      self.kind = kind
    }
  }

  package enum ServerAnswer {
    /// The server, and header lines for the request.
    case keyServer(Endpoint, headers: [Secret])
    /// The library asks an entitlement server for the URL of the key server.
    case entitlement(Entitlement)
  }

  package typealias ServerCallback = (HostQuestion, ServerQuestion, HostPlayback) -> Void

  package struct Callbacks {
    package var spc: (HostQuestion, Question, HostPlayback) -> Void
    package var server: ServerCallback?
    package var tokenURL: ServerCallback?

    package init(spc: @escaping (HostQuestion, Question, HostPlayback) -> Void) { self.spc = spc }
  }

  package let options: Options
  let callbacks: Callbacks
  let certificates: CertificateSource
  var binding: SEESBinding?

  package init(_ options: Options, certificates: CertificateSource, callbacks: Callbacks) {
    self.options = options
    self.callbacks = callbacks
    binding = options.binding
    self.certificates = certificates
  }

  /// Whether the loader may find the server without the content's URL, so that the URL may be empty.
  private var knowsServer: Bool {
    guard callbacks.server == nil, callbacks.tokenURL == nil else { return true }
    switch options.route {
    case .keyServer: return options.keyServer != nil
    case .entitlement: return options.entitlementServer != nil
    case .tokenURL: return false
    }
  }

  /// Returns the content that a URL names, by the loader's rule; nil if the URL names none and the loader needs one.
  package func names(_ url: [UInt8]) -> (identifier: [UInt8], content: [UInt8])? {
    if let names = namesIn(url) { return names }
    guard knowsServer, url.count <= AssetID.mostBytes else { return nil }
    return ([], url.withUnsafeBufferPointer { TokenURL.queryValue("cid", in: $0) } ?? [])
  }

  private func namesIn(_ url: [UInt8]) -> (identifier: [UInt8], content: [UInt8])? {
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
      // With the rule `decodedJSON`, an asset id that is not JSON is the address of the entitlement server, if the
      // loader asks such a server. Then the content identifier for the SPC is the value of `cid`, not this address.
      let isAddress = options.route == .entitlement && options.rule == .decodedJSON && !asset.isJSON
      return (isAddress ? content : identifier, content)
    }
  }
}

/// One loading request: its steps, and its pending question and requests.
final class LoadingJob {
  enum Step {
    case entitlement(SEESRequest)
    case key
  }

  let id: UInt64
  let loader: ResourceLoader
  let url: [UInt8]
  let identifier: [UInt8]
  /// The content identifier for an entitlement server.
  var content: [UInt8]
  /// The kind of token to request from an entitlement server.
  var kind: SEESRequest.Kind
  /// Whether the licence server registers the device with the token of this request.
  var registersDevice = false
  /// The header lines that the host's callback gave for the key server.
  var headers: [Secret] = []
  var machine: LoadingMachine<Endpoint>
  /// The tokens in the URLs of the servers of this request; error messages must not show these tokens.
  var tokens: [Secret] = []
  var timer: UInt64?
  var ask: HostQuestion?
  var transfer: TransferID?
  private var complete: ((RequestResult) -> Void)?

  init(
    id: UInt64, loader: ResourceLoader, url: [UInt8], identifier: [UInt8], content: [UInt8],
    complete: @escaping (RequestResult) -> Void
  ) {
    self.id = id
    self.loader = loader
    self.url = url
    self.identifier = identifier
    self.content = content
    self.complete = complete
    kind = loader.binding?.kind ?? .timeBased
    machine = LoadingMachine(
      isByEntitlement: loader.options.route == .entitlement, hasCertificate: loader.certificates.canSupply,
      callbacks: .init(server: loader.callbacks.server != nil, tokenURL: loader.callbacks.tokenURL != nil))
  }

  /// Calls the completion with the answer, then releases the completion and everything that it holds.
  func end(_ answer: RequestResult) {
    complete?(answer)
    complete = nil
  }
}
