import TestSupport
import Testing

@testable import UsherCore

@Suite struct LicenseExchangeTests {
  private func exchange(
    url: Bool = false, body: Bool = false, headers: Bool = false, hasURL: Bool = true
  ) -> LicenseExchange {
    var hooks = LicenseExchange.Hooks()
    hooks.url = url
    hooks.body = body
    hooks.headers = headers
    return LicenseExchange(hooks: hooks, hasURL: hasURL)
  }

  @Test func noHooks_requestIsSentAtOnce() {
    var exchange = exchange()
    #expect(words(exchange.start()) == "send")
    #expect(words(exchange.replied(hasHook: false)) == "use builtin")
  }

  @Test func allHooks_areAskedInOrder_andTheHeadersHookGetsTheNewestToken() {
    var exchange = exchange(url: true, body: true, headers: true)
    #expect(words(exchange.start()) == "ask url")
    #expect(words(exchange.answered(.value)) == "ask body")
    #expect(words(exchange.answered(.value)) == "authorise, ask headers")
    #expect(words(exchange.answered(.value)) == "send")
  }

  @Test func builtinAnswers_replaceNothing_andTheNewestTokenIsSent() {
    var exchange = exchange(url: true, body: true, headers: true)
    #expect(words(exchange.start()) == "ask url")
    #expect(words(exchange.answered(.builtin)) == "ask body")
    #expect(words(exchange.answered(.builtin)) == "authorise, ask headers")
    #expect(words(exchange.answered(.builtin)) == "authorise, send")
  }

  @Test func bodyHookAlone_theNewestTokenIsSent() {
    var exchange = exchange(body: true)
    #expect(words(exchange.start()) == "ask body")
    #expect(words(exchange.answered(.value)) == "authorise, send")
  }

  @Test func headersHook_isAskedForHeaders_untilItAnswered() {
    var exchange = exchange(url: true, headers: true)
    _ = exchange.start()
    #expect(!exchange.isAskingForHeaders)
    _ = exchange.answered(.builtin)
    #expect(exchange.isAskingForHeaders)
    _ = exchange.answered(.builtin)
    #expect(!exchange.isAskingForHeaders)
  }

  @Test func headersHook_declines_requestIsNotSent() {
    var exchange = exchange(headers: true)
    _ = exchange.start()
    #expect(
      words(exchange.answered(.missing(.callback))) == "fail declined: the headers hook said not to send the request")
  }

  @Test func urlHook_declines_requestFailsAsACallback() {
    var exchange = exchange(url: true)
    _ = exchange.start()
    #expect(words(exchange.answered(.missing(.callback))) == "fail callback")
  }

  @Test func urlHook_withAValueThatIsNoURL_requestFailsAsACallbackWithTheReason() {
    var exchange = exchange(url: true)
    _ = exchange.start()
    let action = words(exchange.answered(.missing(.invalidArgument)))
    #expect(action == "fail callback: the URL hook answered something that is no URL")
  }

  @Test(arguments: LicenseExchange.Part.allCases)
  func requestHook_late_requestIsNotSent(_ part: LicenseExchange.Part) {
    var exchange = exchange(url: part == .url, body: part == .body, headers: part == .headers)
    _ = exchange.start()
    #expect(words(exchange.answered(.missing(.timeout))) == "fail timeout: a hook did not answer in time")
  }

  @Test func noURL_withoutAURLHook_requestFails() {
    var exchange = exchange(hasURL: false)
    #expect(words(exchange.start()) == "fail state: the delegate has no URL for this request")
  }

  @Test func noURL_urlHookLeavesItToTheBuiltin_requestFails() {
    var exchange = exchange(url: true, hasURL: false)
    _ = exchange.start()
    #expect(
      words(exchange.answered(.builtin)) == "fail state: the delegate has no URL for this request")
  }

  @Test func noURL_urlHookSuppliesOne_requestIsSent() {
    var exchange = exchange(url: true, hasURL: false)
    _ = exchange.start()
    #expect(words(exchange.answered(.value)) == "authorise, send")
  }

  @Test(arguments: [Status.timeout, .closed])
  func abandoned_whileAHookIsAsked_answerIsNotUsed(_ status: Status) {
    var exchange = exchange(url: true, body: true)
    _ = exchange.start()
    exchange.abandon(status)
    #expect(words(exchange.answered(.value)) == "fail \(status)")
    #expect(words(exchange.answered(.value)) == "")
  }

  @Test func licenceHook_answers_itsLicenceIsUsed() {
    var exchange = exchange()
    _ = exchange.start()
    #expect(words(exchange.replied(hasHook: true)) == "ask")
    #expect(words(exchange.licenseAnswered(.value)) == "use answer")
  }

  @Test func licenceHook_leavesItToTheBuiltin_builtinLicenceIsUsed() {
    var exchange = exchange()
    _ = exchange.start()
    _ = exchange.replied(hasHook: true)
    #expect(words(exchange.licenseAnswered(.builtin)) == "use builtin")
  }

  @Test func licenceHook_declinesIsLateOrClosed_thereIsNoLicence() {
    var asking = exchange()
    _ = asking.start()
    _ = asking.replied(hasHook: true)
    for (answer, expected) in [
      (LicenseExchange.Answer.missing(.callback), "fail callback"), (.missing(.timeout), "fail timeout"),
      (.missing(.closed), "fail closed")
    ] {
      var exchange = asking
      #expect(words(exchange.licenseAnswered(answer)) == expected)
    }
  }

  /// For every set of hooks, tries every order of answers, replies and closes, also orders that the exchange does not
  /// expect.
  @Test func everyOrder_asksEachHookOnce_sendsOnce_andEndsOnce() throws {
    let log = TransitionLog()
    for bits in 0..<16 {
      var exchange = exchange(url: bits & 1 != 0, body: bits & 2 != 0, headers: bits & 4 != 0, hasURL: bits & 8 != 0)
      exchange.record(in: log)
      var search = ExchangeSearch()
      search.visit(ExchangeRun(exchange, hasURL: bits & 8 != 0), after: [])
      #expect(search.violation == nil)
    }
    let comments = PhaseComments([.init("LicenseExchange", in: "Sources/UsherCore/Playback/LicenseExchange.swift")])
    #expect(comments.differences(log.transitions, isWhole: true) == [])
  }
}

/// The inputs of one exchange so far, and the first rule that the exchange broke.
private struct ExchangeRun {
  enum Input: CaseIterable {
    case start, value, builtin, declined, late, closed, abandon, replyForHook, reply
    case licenseValue, licenseBuiltin, licenseDeclined, licenseClosed
  }

  private(set) var exchange: LicenseExchange
  private var hasURL: Bool
  private var asked: Set<String> = []
  private var openQuestion: String?
  private var isSent = false
  private var hasReply = false
  private var isUnwanted = false
  private var hasHostHeaders = false
  private(set) var isOver = false
  private(set) var violation: String?

  init(_ exchange: LicenseExchange, hasURL: Bool) {
    self.exchange = exchange
    self.hasURL = hasURL
  }

  var key: String { "\(exchange) \(asked.sorted()) \(openQuestion ?? "") \(isSent) \(isUnwanted) \(isOver) \(hasURL)" }

  mutating func take(_ input: Input) {
    let wasOver = isOver
    let isAnswer: Bool
    var actions: [String] = []
    switch input {
    case .start: (isAnswer, actions) = (asked.isEmpty && !isSent, split(words(exchange.start())))
    case .value: (isAnswer, actions) = answer(.value)
    case .builtin: (isAnswer, actions) = answer(.builtin)
    case .declined: (isAnswer, actions) = answer(.missing(.callback))
    case .late: (isAnswer, actions) = answer(.missing(.timeout))
    case .closed: (isAnswer, actions) = answer(.missing(.closed))
    case .abandon:
      isAnswer = false
      exchange.abandon(.timeout)
      if openQuestion != nil, openQuestion != "license" { isUnwanted = true }
    case .replyForHook: (isAnswer, actions) = reply(exchange.replied(hasHook: true), hasHook: true)
    case .reply: (isAnswer, actions) = reply(exchange.replied(hasHook: false), hasHook: false)
    case .licenseValue: (isAnswer, actions) = license(.value)
    case .licenseBuiltin: (isAnswer, actions) = license(.builtin)
    case .licenseDeclined: (isAnswer, actions) = license(.missing(.callback))
    case .licenseClosed: (isAnswer, actions) = license(.missing(.closed))
    }
    if !isAnswer, !actions.isEmpty { violation = "\(input) out of turn led to \(actions)" }
    if wasOver, !actions.isEmpty { violation = "\(input) after the end led to \(actions)" }
    for action in actions { perform(action) }
  }

  private mutating func answer(_ answer: LicenseExchange.Answer) -> (Bool, [String]) {
    let part = openQuestion
    let isAnswer = part != nil && part != "license"
    if isAnswer { openQuestion = nil }
    if isAnswer, case .value = answer, !isUnwanted {
      if part == "url" { hasURL = true }
      if part == "headers" { hasHostHeaders = true }
    }
    return (isAnswer, split(words(exchange.answered(answer))))
  }

  private mutating func reply(_ action: LicenseExchange.ReplyAction?, hasHook: Bool) -> (Bool, [String]) {
    let isAnswer = isSent && !hasReply
    if isAnswer { hasReply = true }
    let word = words(action)
    if isAnswer, word != (hasHook ? "ask" : "use builtin") { violation = "a reply led to \(word)" }
    return (isAnswer, word == "ask" ? ["ask license"] : [word].filter { !$0.isEmpty })
  }

  private mutating func license(_ answer: LicenseExchange.Answer) -> (Bool, [String]) {
    let isAnswer = openQuestion == "license"
    if isAnswer { openQuestion = nil }
    return (isAnswer, [words(exchange.licenseAnswered(answer))].filter { !$0.isEmpty })
  }

  private mutating func perform(_ action: String) {
    if isOver { violation = "\(action) after the end" }
    let parts = action.split(separator: " ").map { String($0) }
    switch parts[0] {
    case "ask":
      if !asked.insert(parts[1]).inserted { violation = "asked for the \(parts[1]) twice" }
      if openQuestion != nil { violation = "asked two questions at once" }
      if isUnwanted { violation = "asked for what nobody wants" }
      openQuestion = parts[1]
    case "send":
      if isSent { violation = "sent twice" }
      if isUnwanted { violation = "sent what nobody wants" }
      if !hasURL { violation = "sent without a URL" }
      isSent = true
    case "authorise": if hasHostHeaders || isSent { violation = "replaced the host's headers" }
    case "fail", "use":
      if openQuestion != nil { violation = "ended with a question open" }
      isOver = true
    default: violation = "an unknown action: \(action)"
    }
  }

  /// Ends the exchange: closes the playback and answers the request.
  mutating func drain() {
    take(.start)
    for _ in 0..<3 { take(.closed) }
    take(.reply)
    take(.licenseClosed)
    if !isOver, violation == nil { violation = "did not end" }
  }
}

private struct ExchangeSearch {
  private(set) var visited: Set<String> = []
  private(set) var violation: String?

  mutating func visit(_ run: ExchangeRun, after inputs: [ExchangeRun.Input]) {
    guard violation == nil, visited.insert(run.key).inserted else { return }
    var end = run
    end.drain()
    if let text = run.violation ?? end.violation {
      violation = "\(inputs): \(text)"
      return
    }
    for input in ExchangeRun.Input.allCases {
      var next = run
      next.take(input)
      visit(next, after: inputs + [input])
    }
  }
}

private func split(_ actions: String) -> [String] {
  actions.isEmpty ? [] : actions.split(separator: ",").map { String($0.drop { $0 == " " }) }
}

private func words(_ action: LicenseExchange.Action?) -> String {
  switch action {
  case .ask(let part): return "ask \(part)"
  case .authoriseAndAskForHeaders: return "authorise, ask headers"
  case .send: return "send"
  case .authoriseAndSend: return "authorise, send"
  case .fail(let status, let message): return message.isEmpty ? "fail \(status)" : "fail \(status): \(message)"
  case nil: return ""
  }
}

private func words(_ action: LicenseExchange.ReplyAction?) -> String {
  switch action {
  case .ask: return "ask"
  case .useBuiltin: return "use builtin"
  case .useAnswer: return "use answer"
  case .fail(let status): return "fail \(status)"
  case nil: return ""
  }
}
