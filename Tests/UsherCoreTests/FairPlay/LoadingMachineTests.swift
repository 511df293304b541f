import TestSupport
import Testing

@testable import UsherCore

@Suite struct LoadingMachineTests {
  private typealias Machine = LoadingMachine<String>

  private func machine(
    entitlement: Bool = false, certificate: Bool = true, server: Bool = false, tokenURL: Bool = false
  ) -> Machine {
    Machine(
      isByEntitlement: entitlement, hasCertificate: certificate, callbacks: .init(server: server, tokenURL: tokenURL))
  }

  @Test func knownKeyServer_certificateSPCAndKey_oneAfterTheOther() {
    var machine = machine()
    #expect(words(machine.start(at: .allowed("keys"))) == "get certificate")
    #expect(words(machine.certificateArrived(secret("cert"))) == "ask for the SPC with cert")
    #expect(words(machine.spcArrived(secret("spc"))) == "request the key with spc at keys")
    let hasEnded = machine.end(.done)
    #expect(hasEnded)
    #expect(machine.isEnded)
  }

  @Test func noCertificate_spcIsAskedForWithoutOne() {
    var machine = machine(certificate: false)
    #expect(words(machine.start(at: .allowed("keys"))) == "ask for the SPC with -")
    #expect(words(machine.spcArrived(secret("spc"))) == "request the key with spc at keys")
  }

  @Test func entitlement_namesTheKeyServer() {
    var machine = machine(entitlement: true, certificate: false)
    #expect(words(machine.start(at: .allowed("rights"))) == "ask rights")
    #expect(words(machine.entitled(.allowed("keys"))) == "ask for the SPC with -")
    #expect(words(machine.spcArrived(secret("spc"))) == "request the key with spc at keys")
  }

  @Test func serverCallback_namesTheKeyServer() {
    var machine = machine(certificate: false, server: true)
    #expect(words(machine.start(at: .missing)) == "ask the host for the server")
    #expect(words(machine.decided(.keyServer("mine"))) == "ask for the SPC with -")
    #expect(words(machine.spcArrived(secret("spc"))) == "request the key with spc at mine")
  }

  @Test(arguments: [false, true])
  func serverCallback_choosesTheBuiltIn_theLoaderGoesItsWay(_ entitlement: Bool) {
    var machine = machine(entitlement: entitlement, certificate: false, server: true)
    _ = machine.start(at: .allowed("first"))
    #expect(words(machine.decided(.builtin)) == (entitlement ? "ask first" : "ask for the SPC with -"))
  }

  @Test func serverCallback_choosesAnEntitlementServer_itNamesTheKeyServer() {
    var machine = machine(certificate: false, server: true)
    _ = machine.start(at: .missing)
    #expect(words(machine.decided(.entitlement("rights"))) == "ask rights")
    #expect(words(machine.entitled(.allowed("keys"))) == "ask for the SPC with -")
  }

  @Test func serverCallback_choosesAnUnknownEntitlementServer_fails() {
    var machine = machine(server: true)
    _ = machine.start(at: .allowed("keys"))
    #expect(words(machine.decided(.entitlement(nil))) == "fail: no server", "a key server is no entitlement server")
    #expect(machine.isEnded)
  }

  @Test func tokenURLCallback_isAskedInsteadOfTheEntitlementServer() {
    var machine = machine(entitlement: true, certificate: false, tokenURL: true)
    #expect(words(machine.start(at: .allowed("rights"))) == "ask the host for the token URL")
    #expect(words(machine.decided(.keyServer("token"))) == "ask for the SPC with -")
  }

  @Test func bothCallbacks_areAskedOneAfterTheOther() {
    var machine = machine(certificate: false, server: true, tokenURL: true)
    #expect(words(machine.start(at: .missing)) == "ask the host for the server")
    #expect(words(machine.decided(.entitlement("rights"))) == "ask the host for the token URL")
    #expect(words(machine.decided(.builtin)) == "ask rights")
  }

  @Test(arguments: [false, true])
  func contentURL_namesAServerThatIsNotAllowed_fails(_ entitlement: Bool) {
    var machine = machine(entitlement: entitlement)
    #expect(words(machine.start(at: .refused)) == "fail: license named a server that is not allowed")
    #expect(machine.isEnded)
  }

  @Test(arguments: [false, true])
  func contentURL_namesNoServer_fails(_ entitlement: Bool) {
    var machine = machine(entitlement: entitlement)
    #expect(words(machine.start(at: .missing)) == "fail: no server")
    #expect(machine.isEnded)
  }

  @Test func entitlementServer_namesAServerThatIsNotAllowed_fails() {
    var machine = machine(entitlement: true)
    _ = machine.start(at: .allowed("rights"))
    #expect(words(machine.entitled(.refused)) == "fail: entitlement named a server that is not allowed")
    let endsAgain = machine.end(.failed)
    #expect(!endsAgain)
  }

  @Test func entitlementServer_refuses_endsAndNothingFollows() {
    var machine = machine(entitlement: true)
    _ = machine.start(at: .allowed("rights"))
    let hasEnded = machine.end(.failed)
    #expect(hasEnded)
    #expect(words(machine.entitled(.allowed("keys"))) == "")
  }

  @Test func done_beforeTheKeyWasRequested_isNoEnd() {
    var machine = machine()
    _ = machine.start(at: .allowed("keys"))
    let hasEnded = machine.end(.done)
    #expect(!hasEnded)
    #expect(words(machine.certificateArrived(secret("cert"))) == "ask for the SPC with cert")
  }

  @Test func ending_byTheHostOrAClose_isNotReported() {
    #expect(Machine.Ending.done.isReported && Machine.Ending.failed.isReported && Machine.Ending.timedOut.isReported)
    #expect(!Machine.Ending.cancelled.isReported)
  }

  @Test func keyRequest_whoseKeptConnectionTheServerClosed_isSentOnceMore() {
    var machine = machine(certificate: false)
    _ = machine.start(at: .allowed("keys"))
    #expect(words(machine.keyRequestFailed(endedKeptConnection: true)) == "", "no key request is in flight")
    _ = machine.spcArrived(secret("spc"))
    #expect(words(machine.keyRequestFailed(endedKeptConnection: false)) == "")
    #expect(words(machine.keyRequestFailed(endedKeptConnection: true)) == "request the key with spc at keys")
    #expect(words(machine.keyRequestFailed(endedKeptConnection: true)) == "", "the request was repeated before")
  }

  /// For every route, tries every order of replies, answers and endings, also orders that the machine does not expect.
  @Test func everyOrder_asksOnce_repeatsTheKeyRequestOnce_andEndsOnce() {
    let log = TransitionLog()
    for bits in 0..<16 {
      var search = LoadingSearch()
      var machine = machine(
        entitlement: bits & 1 != 0, certificate: bits & 2 != 0, server: bits & 4 != 0, tokenURL: bits & 8 != 0)
      machine.record(in: log)
      search.visit(LoadingRun(machine), after: [])
      #expect(search.violation == nil)
      #expect(search.visited.count > 5)
    }
    let comments = PhaseComments([.init("LoadingMachine", in: "Sources/UsherCore/FairPlay/LoadingMachine.swift")])
    #expect(comments.differences(log.transitions, isWhole: true) == [])
  }
}

/// The inputs of one loading request so far, and the first rule that the machine broke.
private struct LoadingRun {
  enum Input: CaseIterable {
    case startAllowed, startRefused, startMissing, decidedServer, decidedEntitlement, decidedBuiltin, entitledAllowed,
      entitledRefused, certificate, spc
    case keyConnectionEnded, keyFailed
    case done, failed, timedOut, cancelled
  }

  private(set) var machine: LoadingMachine<String>
  /// What the machine has waited for since its last action: the start, a decision of the host, or what a server or the
  /// host must supply.
  private var awaited = "start"
  private var done: Set<String> = []
  private var endings = 0
  /// Whether the host has answered the question which server to use.
  private var hasDecided = false
  private(set) var violation: String?

  init(_ machine: LoadingMachine<String>) { self.machine = machine }

  var key: String { "\(machine) \(awaited) \(done.sorted()) \(endings) \(hasDecided)" }

  mutating func take(_ input: Input) {
    switch input {
    case .startAllowed: answer("start", machine.start(at: .allowed("first")))
    case .startRefused: answer("start", machine.start(at: .refused))
    case .startMissing: answer("start", machine.start(at: .missing))
    case .decidedServer: answer("decision", machine.decided(.keyServer("second")))
    case .decidedEntitlement: answer("decision", machine.decided(.entitlement("rights")))
    case .decidedBuiltin: answer("decision", machine.decided(.builtin))
    case .entitledAllowed: answer("entitlement", machine.entitled(.allowed("second")))
    case .entitledRefused: answer("entitlement", machine.entitled(.refused))
    case .certificate: answer("certificate", machine.certificateArrived(secret("cert")))
    case .spc: answer("spc", machine.spcArrived(secret("spc")))
    case .keyConnectionEnded: repeatKey(machine.keyRequestFailed(endedKeptConnection: true))
    case .keyFailed: if machine.keyRequestFailed(endedKeptConnection: false) != nil { violation = "repeated a failure" }
    case .done: end(machine.end(.done), isRight: awaited == "key")
    case .failed: end(machine.end(.failed), isRight: true)
    case .timedOut: end(machine.end(.timedOut), isRight: true)
    case .cancelled: end(machine.end(.cancelled), isRight: true)
    }
    if machine.isEnded != (endings > 0) { violation = "ended \(machine.isEnded) after \(endings) endings" }
  }

  private mutating func end(_ hasEnded: Bool, isRight: Bool) {
    if hasEnded != (isRight && endings == 0) { violation = "ending gave \(hasEnded) while it awaited \(awaited)" }
    if hasEnded { endings += 1 }
  }

  private mutating func answer(_ what: String, _ action: LoadingMachine<String>.Action?) {
    let isInTurn = endings == 0 && awaited == what
    if isInTurn != (action != nil) { violation = "\(what) led to \(words(action)) while it awaited \(awaited)" }
    if action != nil, what == "decision" { hasDecided = true }
    switch action {
    case .askServer: begin("server", awaiting: "decision")
    case .askTokenURL: begin("token URL", awaiting: "decision")
    case .askEntitlement: begin("entitlement")
    case .getCertificate: begin("certificate")
    case .askSPC(let certificate):
      if done.contains("certificate") != (certificate != nil) { violation = "the certificate was lost" }
      begin("spc")
    case .requestKey(let server, let spc):
      if server != (done.contains("entitlement") ? "second" : "first"), !hasDecided {
        violation = "the SPC goes to \(server)"
      }
      if text(spc) != "spc" { violation = "the SPC was lost" }
      begin("key")
    case .fail: endings += 1
    case nil: break
    }
  }

  private mutating func repeatKey(_ action: LoadingMachine<String>.Action?) {
    let isRight = awaited == "key" && endings == 0 && !done.contains("second key")
    if isRight != (action != nil) { violation = "a lost key request led to \(words(action))" }
    guard case .requestKey(_, let spc)? = action else { return }
    if text(spc) != "spc" { violation = "the repeated request lost the SPC" }
    done.insert("second key")
  }

  private mutating func begin(_ what: String, awaiting input: String? = nil) {
    if !done.insert(what).inserted { violation = "\(what) twice" }
    awaited = input ?? what
  }
}

private struct LoadingSearch {
  private(set) var visited: Set<String> = []
  private(set) var violation: String?

  mutating func visit(_ run: LoadingRun, after inputs: [LoadingRun.Input]) {
    guard violation == nil, visited.insert(run.key).inserted else { return }
    if let text = run.violation {
      violation = "\(inputs): \(text)"
      return
    }
    for input in LoadingRun.Input.allCases {
      var next = run
      next.take(input)
      visit(next, after: inputs + [input])
    }
  }
}

private func words(_ action: LoadingMachine<String>.Action?) -> String {
  switch action {
  case .askServer: return "ask the host for the server"
  case .askTokenURL: return "ask the host for the token URL"
  case .askEntitlement(let server): return "ask \(server)"
  case .getCertificate: return "get certificate"
  case .askSPC(let certificate): return "ask for the SPC with \(text(certificate))"
  case .requestKey(let server, let spc): return "request the key with \(text(spc)) at \(server)"
  case .fail(.noServer): return "fail: no server"
  case .fail(.notAllowed(let operation)): return "fail: \(operation) named a server that is not allowed"
  case nil: return ""
  }
}
