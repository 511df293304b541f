/// The order of the host's hooks in one licence request and its reply, as a value with no I/O.
///
/// The exchange asks the URL hook first, then the body hook, then the headers hook, which gets the newest session
/// token. Then the engine sends the request. When the reply has arrived, the exchange asks the licence hook.
package struct LicenseExchange {
  /// The part of a request that a hook makes. The exchange asks the hooks in this order.
  package enum Part: UInt8, Sendable, CaseIterable { case url = 1, body, headers }

  /// The request hooks that the host has.
  package struct Hooks: Sendable {
    package var url = false
    package var body = false
    package var headers = false

    package init() {}

    func has(_ part: Part) -> Bool {
      switch part {
      case .url: return url
      case .body: return body
      case .headers: return headers
      }
    }
  }

  /// The result of the question to a hook. It does not include the value that the hook returned: the caller of the
  /// exchange puts this value into the request.
  package enum Answer {
    case value
    case builtin
    /// The hook returned no usable value: the host declined (`callback`), the deadline passed (`timeout`), the text is
    /// not a URL (`invalidArgument`), or the playback closed.
    case missing(Status)
  }

  package enum Action {
    /// Ask the host's hook; pass its answer to `answered`.
    case ask(Part)
    /// Put the newest session token into the request, then ask the headers hook; pass its answer to `answered`.
    case authoriseAndAskForHeaders
    /// Send the request as it is; pass the reply to `replied`.
    case send
    /// Put the newest session token into the request, then send it.
    case authoriseAndSend
    /// End the request without sending it.
    case fail(Status, message: String)
  }

  package enum ReplyAction {
    /// Ask the licence hook; pass its answer to `licenseAnswered`.
    case ask
    /// End with the result of the built-in decoder.
    case useBuiltin
    /// End with the licence that the hook returned.
    case useAnswer
    /// End without a licence.
    case fail(Status)
  }

  /// In the comment of each phase, the line with the arrow lists the phases that may follow. A test tries all orders of
  /// events and fails if such a line is wrong.
  private enum Phase {
    /// → asking, sent, ended
    case new
    /// The library waits for the answer of the hook for this part; the hook for a later part may be next.
    /// → asking, unwanted, sent, ended
    case asking(Part)
    /// The library waits for the answer of a hook, but the host's licence request has already completed, because it
    /// timed out or the playback closes.
    /// → ended
    case unwanted(Status)
    /// The request is in flight.
    /// → reading, ended
    case sent
    /// The library waits for the answer of the licence hook.
    /// → ended
    case reading
    /// → nothing
    case ended

    #if !hasFeature(Embedded)
      var caseName: String {
        switch self {
        case .new: return "new"
        case .asking: return "asking"
        case .unwanted: return "unwanted"
        case .sent: return "sent"
        case .reading: return "reading"
        case .ended: return "ended"
        }
      }
    #endif
  }

  private var phase = Phase.new
  #if !hasFeature(Embedded)
    private var log: TransitionLog?
    /// From now on the exchange records its transitions.
    package mutating func record(in log: TransitionLog) { self.log = log }
  #endif
  private let hooks: Hooks
  private var hasURL: Bool

  /// - Parameter hasURL: whether the delegate knows a URL for this request.
  package init(hooks: Hooks, hasURL: Bool) {
    self.hooks = hooks
    self.hasURL = hasURL
  }

  /// Whether the exchange waits for the answer of the headers hook. Only then may this hook request the built-in
  /// headers.
  package var isAskingForHeaders: Bool {
    if case .asking(.headers) = phase { return true }
    return false
  }

  package mutating func start() -> Action? {
    switch phase {
    case .new: return askOrSend(after: nil)
    case .asking, .unwanted, .sent, .reading, .ended: return nil
    }
  }

  /// Called when the question to a request hook has ended.
  package mutating func answered(_ answer: Answer) -> Action? {
    switch phase {
    case .asking(let part):
      switch answer {
      case .value:
        if part == .url { hasURL = true }
        return part == .headers ? send(.send) : askOrSend(after: part)
      case .builtin: return askOrSend(after: part)
      case .missing(.timeout): return fail(.timeout, message: "a hook did not answer in time")
      case .missing(.callback) where part == .headers:
        return fail(.declined, message: "the headers hook said not to send the request")
      case .missing(.invalidArgument) where part == .url:
        return fail(.callback, message: "the URL hook answered something that is no URL")
      case .missing(let status): return fail(status)
      }
    case .unwanted(let status): return fail(status)
    case .new, .sent, .reading, .ended: return nil
    }
  }

  /// Call this when the host's licence request has completed with this status because it timed out or the playback
  /// closes.
  package mutating func abandon(_ status: Status) {
    switch phase {
    case .asking: move(to: .unwanted(status))
    case .new, .unwanted, .sent, .reading, .ended: break
    }
  }

  /// Called when the reply has arrived, or the request has failed in transport.
  /// - Parameter hasHook: whether the host has a licence hook that may read this reply.
  package mutating func replied(hasHook: Bool) -> ReplyAction? {
    switch phase {
    case .sent:
      move(to: hasHook ? .reading : .ended)
      return hasHook ? .ask : .useBuiltin
    case .new, .asking, .unwanted, .reading, .ended: return nil
    }
  }

  /// Called when the question to the licence hook has ended.
  package mutating func licenseAnswered(_ answer: Answer) -> ReplyAction? {
    switch phase {
    case .reading:
      move(to: .ended)
      switch answer {
      case .value: return .useAnswer
      case .builtin: return .useBuiltin
      case .missing(let status): return .fail(status)
      }
    case .new, .asking, .unwanted, .sent, .ended: return nil
    }
  }

  private mutating func move(to next: Phase) {
    #if !hasFeature(Embedded)
      log?.add("LicenseExchange", phase.caseName, next.caseName)
    #endif
    phase = next
  }

  private mutating func askOrSend(after last: Part?) -> Action {
    for part in Part.allCases where hooks.has(part) && part.rawValue > (last?.rawValue ?? 0) {
      move(to: .asking(part))
      return part == .headers ? .authoriseAndAskForHeaders : .ask(part)
    }
    // While the exchange waited for a hook, another reply may have replaced the session token. So the engine must put
    // the newest token into the request.
    return send(last == nil ? .send : .authoriseAndSend)
  }

  private mutating func send(_ sending: Action) -> Action {
    guard hasURL else { return fail(.state, message: "the delegate has no URL for this request") }
    move(to: .sent)
    return sending
  }

  private mutating func fail(_ status: Status, message: String = "") -> Action {
    move(to: .ended)
    return .fail(status, message: message)
  }
}
