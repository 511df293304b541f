/// A value that many hold and none changes, where each would be the larger for it.
package final class Shared<Value: Sendable>: Sendable {
  package let value: Value
  package init(_ value: Value) { self.value = value }
}

/// What a host decides about an SSP delegate's behaviour; the defaults are the header's.
package struct SSPPolicy: Sendable {
  package enum MissingPeriod: Sendable { case error, noTimer }
  package enum HeartbeatStart: Sendable { case setup, license }
  package enum KeepAlive: Sendable { case auto, heartbeat, renewal }
  package enum Resetup: Sendable { case callbackOnly, always, never }
  package enum Suspend: Sendable { case keep, pause }
  /// What brings a session into being: a set-up call of ours (SSM v1), the first licence reply (SSP V2), the host's licence callback (customer SSM).
  package enum Opening: Sendable { case setup, license, customer }

  package var setupTimeout: Milliseconds = 5000
  package var teardownTimeout: Milliseconds = 3000
  package var tokenTimeout: Milliseconds = 5000
  package var payloadTimeout: Milliseconds = 5000
  package var missingPeriod = MissingPeriod.error
  package var heartbeatStart = HeartbeatStart.setup
  package var lenientNumbers = false
  package var periodMin: Milliseconds = 50
  package var periodMax: Milliseconds = 86_400_000
  package var periodUpdates = false
  /// Thousandths of the period.
  package var jitter: UInt32 = 50
  package var retry: UInt32 = 500
  /// nil: never stop.
  package var failuresMax: UInt32? = 10
  package var teardownRetries: UInt32 = 3
  /// nil: three eighths of the period, at least a second.
  package var keepAliveTimeout: Milliseconds?
  package var keepAlive = KeepAlive.auto
  package var resetup = Resetup.callbackOnly
  package var hasSSM = true
  package var opening = Opening.setup
  /// No licence request goes out without a content token.
  package var needsToken = true
  /// How long a playback without content token and token callback waits for the host to give one; 0: not at all.
  package var tokenWait: Milliseconds = 5000
  /// The session begins with the first licence request, which names the content.
  package var startsWithLicense = false
  package var suspend = Suspend.keep
  /// Period of a session whose opening licence reply names none; 0: no keep-alives.
  package var periodFallback: Milliseconds = 60_000
  /// A zap tears a session down that a stop would leave to expire.
  package var zapTearsDown = true
  /// A close that says nothing leaves the session to expire.
  package var leavesByDefault = false

  package init() {}

  /// The first licence request opens the session.
  package var opensByLicense: Bool { opening != .setup }
}
