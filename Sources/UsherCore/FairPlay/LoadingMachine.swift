/// One loading request of a FairPlay resource loader, as a value with no I/O: the steps from a URL to the CKC.
///
/// The key server is known, or an entitlement server names it. Then come the certificate, the SPC and the key request.
/// `Server` is where a request goes.
package struct LoadingMachine<Server> {
  /// A server by a URL that the loader's options have, or that content or an entitlement server named.
  package enum Candidate {
    case allowed(Server)
    /// The allow-list does not have its host, or the URL is not one that requests may go to.
    case refused
    /// The content's URL names no server.
    case missing
  }

  package enum Failure {
    case noServer
    /// - Parameter operation: whose answer or content named the server.
    case notAllowed(Operation)
  }

  package enum Action {
    /// Asks the entitlement server for the key server's URL; the reply comes as `entitled`.
    case askEntitlement(Server)
    /// Gets the loader's certificate, which comes as `certificateArrived`.
    case getCertificate
    /// Asks the host for the SPC, which comes as `spcArrived`.
    case askSPC(certificate: Secret?)
    /// Sends the SPC; the CKC ends the request.
    case requestKey(Server, spc: Secret)
    /// It has ended with an error.
    case fail(Failure)
  }

  package enum Ending {
    case done, failed, timedOut
    /// By the host, or since the playback closes.
    case cancelled

    /// Whether an event reports it; the completion is called in any case.
    package var isReported: Bool { self != .cancelled }
  }

  private enum Phase {
    /// → askingEntitlement, gettingCertificate, askingSPC, ended
    case new
    /// → gettingCertificate, askingSPC, ended
    case askingEntitlement
    /// → askingSPC, ended
    case gettingCertificate(Server)
    /// → requestingKey, ended
    case askingSPC(Server)
    /// → ended
    case requestingKey
    case ended
  }

  private var phase = Phase.new
  private let isByEntitlement: Bool
  private let hasCertificate: Bool

  /// - Parameters:
  ///   - isByEntitlement: the first server is an entitlement server, which names the key server.
  ///   - hasCertificate: the loader has a certificate, or a URL of one.
  package init(isByEntitlement: Bool, hasCertificate: Bool) {
    self.isByEntitlement = isByEntitlement
    self.hasCertificate = hasCertificate
  }

  package var isEnded: Bool {
    if case .ended = phase { return true }
    return false
  }

  /// - Parameter server: the first one: the entitlement server, else the key server.
  package mutating func start(at server: Candidate) -> Action? {
    switch phase {
    case .new:
      guard isByEntitlement, case .allowed(let entitlementServer) = server else { return prepare(server, .license) }
      phase = .askingEntitlement
      return .askEntitlement(entitlementServer)
    case .askingEntitlement, .gettingCertificate, .askingSPC, .requestingKey, .ended: return nil
    }
  }

  /// The entitlement server named the key server.
  package mutating func entitled(_ keyServer: Candidate) -> Action? {
    switch phase {
    case .askingEntitlement: return prepare(keyServer, .entitlement)
    case .new, .gettingCertificate, .askingSPC, .requestingKey, .ended: return nil
    }
  }

  package mutating func certificateArrived(_ certificate: Secret) -> Action? {
    switch phase {
    case .gettingCertificate(let keyServer):
      phase = .askingSPC(keyServer)
      return .askSPC(certificate: certificate)
    case .new, .askingEntitlement, .askingSPC, .requestingKey, .ended: return nil
    }
  }

  package mutating func spcArrived(_ spc: Secret) -> Action? {
    switch phase {
    case .askingSPC(let keyServer):
      phase = .requestingKey
      return .requestKey(keyServer, spc: spc)
    case .new, .askingEntitlement, .gettingCertificate, .requestingKey, .ended: return nil
    }
  }

  /// It ends; whatever comes later changes nothing.
  /// - Returns: false: it had ended before, and its completion was called.
  package mutating func end(_ ending: Ending) -> Bool {
    switch (phase, ending) {
    case (.ended, _): return false
    case (.requestingKey, .done), (_, .failed), (_, .timedOut), (_, .cancelled):
      phase = .ended
      return true
    case (.new, .done), (.askingEntitlement, .done), (.gettingCertificate, .done), (.askingSPC, .done):
      return false
    }
  }

  private mutating func prepare(_ keyServer: Candidate, _ operation: Operation) -> Action {
    switch keyServer {
    case .allowed(let server):
      phase = hasCertificate ? .gettingCertificate(server) : .askingSPC(server)
      return hasCertificate ? .getCertificate : .askSPC(certificate: nil)
    case .refused:
      phase = .ended
      return .fail(.notAllowed(operation))
    case .missing:
      phase = .ended
      return .fail(.noServer)
    }
  }
}
