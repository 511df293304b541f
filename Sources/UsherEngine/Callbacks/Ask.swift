internal import Synchronization
package import UsherCore

/// What the host answered.
package enum AskReply {
  /// There is none.
  case none
  /// A token, a payload, what a hook makes.
  case value(Secret)
  /// What the built-in behaviour would make.
  case builtin
  /// A customer's licence.
  case license(CustomerLicense)
  /// Why there is none, in the host's words or its server's.
  case failed(WireFailure)

  package var secret: Secret? {
    if case .value(let secret) = self { return secret }
    return nil
  }
}

/// One question put to the host; answered at most once, from any thread, before its deadline.
package final class Ask {
  package enum Kind: Equatable {
    case token, payload
    case hook(HookKind)
    case customerLicense, customerCall
  }

  package let kind: Kind
  /// What a hook is asked.
  package let question: HookQuestion?
  /// What the host answers with.
  package private(set) var number: UInt64 = 0
  package let engine: Engine
  private let state = Atomic<UInt8>(0)
  private let deliver: (AskReply, Status) -> Void
  var timer: UInt64?

  /// - Parameter deliver: runs on the I/O thread, once.
  init(_ kind: Kind, engine: Engine, question: HookQuestion? = nil, deliver: @escaping (AskReply, Status) -> Void) {
    self.kind = kind
    self.question = question
    self.engine = engine
    self.deliver = deliver
    number = engine.options.nameAsk?(self) ?? 0
  }

  /// The host waits for what comes of it, and the session does not.
  var isRequest: Bool { kind == .hook(.contentID) || kind == .hook(.certificate) }

  package var isOpen: Bool { state.load(ordering: .acquiring) == 0 }

  /// Any thread. False: answered before, or too late.
  package func answer(_ value: Secret?) -> Bool { reply(value.map { .value($0) } ?? .none) }

  /// Any thread. False: answered before, or too late.
  package func reply(_ reply: AskReply) -> Bool {
    guard state.compareExchange(expected: 0, desired: 1, ordering: .acquiringAndReleasing).exchanged else {
      return false
    }
    engine.submit {
      // Here, where `number` was written: who knows it early, before `init` is done, may answer, too.
      self.engine.options.forgetAsk?(self.number)
      self.engine.timers.cancel(self.timer)
      var status = Status.ok
      if case .none = reply { status = .callback }
      self.deliver(reply, status)
    }
    return true
  }

  /// I/O thread.
  func expire(_ status: Status = .timeout) { if shut() { deliver(.none, status) } }

  /// I/O thread: no answer is taken any more. True: `end` is still to be called.
  func shut() -> Bool {
    guard state.compareExchange(expected: 0, desired: 2, ordering: .acquiringAndReleasing).exchanged else {
      return false
    }
    engine.timers.cancel(timer)
    engine.options.forgetAsk?(number)
    return true
  }

  /// I/O thread: tells who asked that there is no answer.
  func end(_ status: Status) { deliver(.none, status) }
}
