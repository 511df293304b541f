internal import Synchronization
package import UsherCore

/// The host's answer to a question.
package enum HostAnswer {
  /// The host has no answer.
  case none
  /// A token, a payload, or the value that a hook made.
  case value(Secret)
  /// The hook asks for the built-in behaviour.
  case builtin
  /// A customer's licence.
  case license(CustomerLicense)
  /// The server that gets the SPC of a loading request.
  case server(ResourceLoader.ServerAnswer)
  /// The request failed. `words`: the host's or its server's reason, unchanged; the engine removes secrets from it
  /// later.
  case failed(WireFailure, words: Secret?)

  package var secret: Secret? {
    if case .value(let secret) = self { return secret }
    return nil
  }
}

/// One question to the host. The host answers at most once, from any thread, before the deadline.
package final class HostQuestion {
  package enum Kind: Equatable {
    /// A content token.
    case token
    /// A payload for a renewal that the library asks for.
    case payload
    /// The SPC of a loading request.
    case spc
    /// The server that gets the SPC.
    case server
    case hook(HookKind)
    case customerLicense
    /// A heartbeat or a teardown of a customer's session.
    case customerCall
  }

  /// What happens to an open question when the playback closes.
  enum AtClose {
    /// The question ends at once. A request of the host waits for the answer of this question, and this request must
    /// complete before PLAYBACK_CLOSED.
    case completesBeforeClosed
    /// The engine refuses later answers. It first closes the `PlaybackMachine`, and then ends the question.
    case endsAfterwards
    /// The question stays open, and an answer is still accepted: the customer may have set up a session, which the
    /// library must tear down.
    case staysOpen
  }

  package let kind: Kind
  /// The question to a hook; nil if no hook is asked.
  package let question: HookQuestion?
  /// The completion id with which the host answers.
  package private(set) var number: UInt64 = 0
  package let engine: Engine
  private let playback: PlaybackShared
  /// The state of the question. 0: open; 1: answered; 2: closed, so the question refuses later answers.
  private let state = Atomic<UInt8>(0)
  private let deliver: (HostQuestion, HostAnswer, Status) -> Void
  var timer: UInt64?

  /// - Parameter deliver: a function that gets the answer, or a status that says why the question has no answer. This
  ///   function runs once, on the I/O thread.
  init(
    _ kind: Kind, engine: Engine, playback: PlaybackShared, question: HookQuestion? = nil,
    deliver: @escaping (HostQuestion, HostAnswer, Status) -> Void
  ) {
    self.kind = kind
    self.question = question
    self.engine = engine
    self.playback = playback
    self.deliver = deliver
    number = engine.options.registerQuestion?(self) ?? 0
  }

  var atClose: AtClose {
    switch kind {
    case .hook(.contentID), .hook(.certificate): return .completesBeforeClosed
    case .token, .payload, .spc, .server, .hook(.headers), .hook(.licenseURL), .hook(.licenseBody), .hook(.license):
      return .endsAfterwards
    case .customerLicense, .customerCall: return .staysOpen
    }
  }

  /// Any thread: whether an answer would be accepted now.
  package var isOpen: Bool { state.load(ordering: .acquiring) == 0 && mayBeAnswered }

  /// Whether the host may still answer. It may if the playback is open for the host, or if this kind of question stays
  /// open when the playback closes.
  private var mayBeAnswered: Bool { atClose == .staysOpen || engine.isOpen(playback) }

  /// Any thread. Returns false if the question was answered before, or the answer is too late.
  package func answer(_ value: Secret?) -> Bool { reply(value.map { .value($0) } ?? .none) }

  /// Any thread. Returns false if the question was answered before, or the answer is too late.
  package func reply(_ reply: HostAnswer) -> Bool {
    let isAccepted = {
      self.mayBeAnswered
        && self.state.compareExchange(expected: 0, desired: 1, ordering: .acquiringAndReleasing).exchanged
    }
    return engine.submit(if: isAccepted) {
      // Read `number` on the I/O thread, which wrote it. A host thread that guesses the number may answer before `init`
      // has returned; on that thread, reading `number` would not be safe.
      self.engine.options.unregisterQuestion?(self.number)
      self.engine.timers.cancel(self.timer)
      var status = Status.ok
      if case .none = reply { status = .callback }
      self.deliver(self, reply, status)
    }
  }

  /// I/O thread: ends the question without an answer, because the deadline has passed or the library no longer needs
  /// the answer.
  func expire(_ status: Status = .timeout) { if shut() { deliver(self, .none, status) } }

  /// I/O thread: refuses answers from now on.
  /// - Returns: true if the caller must still call `end`.
  func shut() -> Bool {
    guard state.compareExchange(expected: 0, desired: 2, ordering: .acquiringAndReleasing).exchanged else {
      return false
    }
    engine.timers.cancel(timer)
    engine.options.unregisterQuestion?(number)
    return true
  }

  /// I/O thread: reports that the question has no answer.
  func end(_ status: Status) { deliver(self, .none, status) }
}
