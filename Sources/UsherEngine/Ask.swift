internal import Synchronization
package import UsherCore

/// One question put to the host; answered at most once, from any thread, before its deadline.
package final class Ask {
  package enum Kind { case token, payload }

  package let kind: Kind
  /// What the host answers with.
  package private(set) var number: UInt64 = 0
  private let state = Atomic<UInt8>(0)
  private let engine: Engine
  private let deliver: (Secret?, Status) -> Void
  var timer: UInt64?

  /// - Parameter deliver: runs on the I/O thread, once.
  init(_ kind: Kind, engine: Engine, deliver: @escaping (Secret?, Status) -> Void) {
    self.kind = kind
    self.engine = engine
    self.deliver = deliver
    number = engine.options.nameAsk?(self) ?? 0
  }

  /// Any thread. False: answered before, or too late.
  package func answer(_ value: Secret?) -> Bool {
    guard state.compareExchange(expected: 0, desired: 1, ordering: .acquiringAndReleasing).exchanged else { return false }
    engine.options.forgetAsk?(number)
    engine.submit {
      self.engine.timers.cancel(self.timer)
      self.deliver(value, value == nil ? .callback : .ok)
    }
    return true
  }

  /// I/O thread.
  func expire(_ status: Status = .timeout) {
    guard state.compareExchange(expected: 0, desired: 2, ordering: .acquiringAndReleasing).exchanged else { return }
    engine.timers.cancel(timer)
    engine.options.forgetAsk?(number)
    deliver(nil, status)
  }
}
