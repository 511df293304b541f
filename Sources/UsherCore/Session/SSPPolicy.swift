/// A constant value in one place in memory, for many owners that would otherwise each store a copy.
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
  /// What opens a session: a set-up request (SSM v1), the first licence reply (SSP V2), or the host's licence callback
  /// (customer SSM).
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
  /// The most that a keep-alive may be early, in thousandths of the period.
  package var jitter: UInt32 = 50
  /// How late a failed keep-alive may be tried again, in thousandths of the period; 0: it is not tried again.
  package var retry: UInt32 = 500
  /// After this many failed periods in a row the session fails; nil: never.
  package var failuresMax: UInt32? = 10
  package var teardownRetries: UInt32 = 3
  /// nil: three eighths of the period, but at least one second.
  package var keepAliveTimeout: Milliseconds?
  package var keepAlive = KeepAlive.auto
  package var resetup = Resetup.callbackOnly
  package var hasSSM = true
  package var opening = Opening.setup
  /// No licence request is sent without a content token.
  package var needsToken = true
  /// How long a playback that has neither a content token nor a token callback waits for the host to give a token;
  /// 0: it does not wait.
  package var tokenWait: Milliseconds = 5000
  /// Set-up starts with the first licence request, which names the content.
  package var startsWithLicense = false
  package var suspend = Suspend.keep
  /// The period of a session whose opening licence reply has none; 0: no keep-alives.
  package var periodFallback: Milliseconds = 60_000
  /// A zap tears the session down, even where a stop would leave it to expire.
  package var zapTearsDown = true
  /// Closing leaves the session to expire where the host does not say what to do.
  package var leavesByDefault = false

  package init() {}

  /// A licence request opens the session, no set-up request.
  package var opensByLicense: Bool { opening != .setup }
}
