/// One loading request of a FairPlay resource loader, as a value with no I/O: the steps from a URL to the CKC.
///
/// The first steps find the key server: the host names it, the loader knows its URL, or an entitlement server returns
/// the URL. The next steps get the certificate, ask for the SPC, and send the key request. `Server` is the type that
/// describes a server.
package struct LoadingMachine<Server> {
  /// The result of looking for a server. The URL of the server comes from the loader's options, from the content or
  /// from an entitlement server.
  package enum Candidate {
    case allowed(Server)
    /// The host of the URL is not on the allow-list, or the library does not send requests to this kind of URL.
    case refused
    /// There is no server: the content's URL names none, or the host chose the loader's entitlement server, and the
    /// loader has none.
    case missing
  }

  package enum Failure {
    case noServer
    /// The library must not send a request to the URL that was found.
    /// - Parameter operation: `entitlement` if the URL came from the reply of an entitlement server; otherwise
    ///   `license`, the operation of the key request.
    case notAllowed(Operation)
  }

  /// The host's answer to the question which server to use.
  package enum Decision {
    /// Send the SPC to this server.
    case keyServer(Server)
    /// Ask this entitlement server for the key server's URL. nil: ask the entitlement server in the loader's options or
    /// in the content's URL.
    case entitlement(Server?)
    /// Do what the loader would do if the host had no such callback.
    case builtin
  }

  /// The host's callbacks that choose a server.
  package struct Callbacks {
    /// Whether the host chooses the server for each loading request.
    package var server: Bool
    /// Whether the host has a callback that supplies the key server's URL. If so, the library asks this callback first,
    /// and asks the entitlement server only if the host's answer says so.
    package var tokenURL: Bool

    package init(server: Bool = false, tokenURL: Bool = false) {
      self.server = server
      self.tokenURL = tokenURL
    }
  }

  package enum Action {
    /// Ask the host where the SPC goes; pass the answer to `decided`.
    case askServer
    /// Ask the host for the key server's URL; pass the answer to `decided`.
    case askTokenURL
    /// Ask the entitlement server for the key server's URL; pass the URL of its reply to `entitled`.
    case askEntitlement(Server)
    /// Get the loader's certificate; pass it to `certificateArrived`.
    case getCertificate
    /// Ask the host for the SPC; pass it to `spcArrived`.
    case askSPC(certificate: Secret?)
    /// Send the SPC; the CKC in the reply completes the request.
    case requestKey(Server, spc: Secret)
    /// End the loading request with an error.
    case fail(Failure)
  }

  package enum Ending {
    case done, failed, timedOut
    /// The host cancelled the loading request, or the playback closed.
    case cancelled

    /// Whether the engine also reports the end with an event. The engine calls the completion in any case.
    package var isReported: Bool { self != .cancelled }
  }

  /// In the comment of each phase, the line with the arrow lists the phases that may follow. A test tries all orders of
  /// events and fails if such a line is wrong.
  private enum Phase {
    /// → askingServer, askingTokenURL, askingEntitlement, gettingCertificate, askingSPC, ended
    case new
    /// → askingTokenURL, askingEntitlement, gettingCertificate, askingSPC, ended
    case askingServer(Candidate)
    /// → askingEntitlement, gettingCertificate, askingSPC, ended
    case askingTokenURL(Candidate)
    /// → gettingCertificate, askingSPC, ended
    case askingEntitlement
    /// → askingSPC, ended
    case gettingCertificate(Server)
    /// → requestingKey, ended
    case askingSPC(Server)
    /// The key request is in flight. `isRepeat`: the engine sends it for the second time.
    /// → requestingKey, ended
    case requestingKey(Server, spc: Secret, isRepeat: Bool)
    /// → nothing
    case ended

    #if !hasFeature(Embedded)
      var caseName: String {
        switch self {
        case .new: return "new"
        case .askingServer: return "askingServer"
        case .askingTokenURL: return "askingTokenURL"
        case .askingEntitlement: return "askingEntitlement"
        case .gettingCertificate: return "gettingCertificate"
        case .askingSPC: return "askingSPC"
        case .requestingKey: return "requestingKey"
        case .ended: return "ended"
        }
      }
    #endif
  }

  private var phase = Phase.new
  #if !hasFeature(Embedded)
    private var log: TransitionLog?
    /// From now on the machine records its transitions.
    package mutating func record(in log: TransitionLog) { self.log = log }
  #endif
  private let isByEntitlement: Bool
  private let hasCertificate: Bool
  private let callbacks: Callbacks

  /// - Parameters:
  ///   - isByEntitlement: whether the first server is an entitlement server, which returns the key server's URL.
  ///   - hasCertificate: whether the loader has a certificate, or the URL of one.
  package init(isByEntitlement: Bool, hasCertificate: Bool, callbacks: Callbacks = Callbacks()) {
    self.isByEntitlement = isByEntitlement
    self.hasCertificate = hasCertificate
    self.callbacks = callbacks
  }

  package var isEnded: Bool {
    if case .ended = phase { return true }
    return false
  }

  /// - Parameter server: the server to ask first if there are no callbacks: the entitlement server if there is one,
  ///   otherwise the key server.
  package mutating func start(at server: Candidate) -> Action? {
    switch phase {
    case .new:
      guard callbacks.server else { return begin(at: server) }
      move(to: .askingServer(server))
      return .askServer
    case .askingServer, .askingTokenURL, .askingEntitlement, .gettingCertificate, .askingSPC, .requestingKey, .ended:
      return nil
    }
  }

  /// Called with the host's answer to `askServer` or `askTokenURL`.
  package mutating func decided(_ decision: Decision) -> Action? {
    switch (phase, decision) {
    case (.askingServer, .keyServer(let server)): return prepare(.allowed(server), .license)
    case (.askingServer(let known), .builtin): return begin(at: known)
    case (.askingServer(let known), .entitlement(let server)):
      // If the loader has no entitlement server, `known` is a key server, which must not get an entitlement request.
      return findTokenURL(server.map { .allowed($0) } ?? (isByEntitlement ? known : .missing))
    case (.askingTokenURL, .keyServer(let server)): return prepare(.allowed(server), .entitlement)
    case (.askingTokenURL(let known), .builtin): return askEntitlement(known)
    case (.askingTokenURL(let known), .entitlement(let server)):
      return askEntitlement(server.map { .allowed($0) } ?? known)
    case (.new, _), (.askingEntitlement, _), (.gettingCertificate, _), (.askingSPC, _), (.requestingKey, _),
      (.ended, _):
      return nil
    }
  }

  /// Called when the entitlement server has returned the URL of the key server.
  package mutating func entitled(_ keyServer: Candidate) -> Action? {
    switch phase {
    case .askingEntitlement: return prepare(keyServer, .entitlement)
    case .new, .askingServer, .askingTokenURL, .gettingCertificate, .askingSPC, .requestingKey, .ended: return nil
    }
  }

  package mutating func certificateArrived(_ certificate: Secret) -> Action? {
    switch phase {
    case .gettingCertificate(let keyServer):
      move(to: .askingSPC(keyServer))
      return .askSPC(certificate: certificate)
    case .new, .askingServer, .askingTokenURL, .askingEntitlement, .askingSPC, .requestingKey, .ended: return nil
    }
  }

  package mutating func spcArrived(_ spc: Secret) -> Action? {
    switch phase {
    case .askingSPC(let keyServer):
      move(to: .requestingKey(keyServer, spc: spc, isRepeat: false))
      return .requestKey(keyServer, spc: spc)
    case .new, .askingServer, .askingTokenURL, .askingEntitlement, .gettingCertificate, .requestingKey, .ended:
      return nil
    }
  }

  /// Called when the key request has failed. Some servers close a kept connection instead of replying; the machine then
  /// repeats the request once.
  /// - Returns: nil if the machine does not repeat the request; the caller then ends the loading request.
  package mutating func keyRequestFailed(endedKeptConnection: Bool) -> Action? {
    switch phase {
    case .requestingKey(let keyServer, let spc, isRepeat: false) where endedKeptConnection:
      move(to: .requestingKey(keyServer, spc: spc, isRepeat: true))
      return .requestKey(keyServer, spc: spc)
    case .new, .askingServer, .askingTokenURL, .askingEntitlement, .gettingCertificate, .askingSPC, .requestingKey,
      .ended:
      return nil
    }
  }

  /// Ends the loading request; later calls do nothing.
  /// - Returns: false if the loading request does not end now. Either the request had ended before, and the engine
  ///   called its completion at that time; or `ending` is `done`, but the machine has not requested the key.
  package mutating func end(_ ending: Ending) -> Bool {
    switch phase {
    case .ended: return false
    case .new, .askingServer, .askingTokenURL, .askingEntitlement, .gettingCertificate, .askingSPC:
      if ending == .done { return false }
    case .requestingKey: break
    }
    move(to: .ended)
    return true
  }

  @inline(never)
  private mutating func move(to next: Phase) {
    #if !hasFeature(Embedded)
      log?.add("LoadingMachine", phase.caseName, next.caseName)
    #endif
    phase = next
  }

  private mutating func begin(at server: Candidate) -> Action {
    isByEntitlement ? findTokenURL(server) : prepare(server, .license)
  }

  private mutating func findTokenURL(_ entitlementServer: Candidate) -> Action {
    guard callbacks.tokenURL else { return askEntitlement(entitlementServer) }
    move(to: .askingTokenURL(entitlementServer))
    return .askTokenURL
  }

  private mutating func askEntitlement(_ server: Candidate) -> Action {
    guard case .allowed(let entitlementServer) = server else { return prepare(server, .license) }
    move(to: .askingEntitlement)
    return .askEntitlement(entitlementServer)
  }

  private mutating func prepare(_ keyServer: Candidate, _ operation: Operation) -> Action {
    switch keyServer {
    case .allowed(let server):
      move(to: hasCertificate ? .gettingCertificate(server) : .askingSPC(server))
      return hasCertificate ? .getCertificate : .askSPC(certificate: nil)
    case .refused:
      move(to: .ended)
      return .fail(.notAllowed(operation))
    case .missing:
      move(to: .ended)
      return .fail(.noServer)
    }
  }
}
