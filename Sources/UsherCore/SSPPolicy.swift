/// What a host decides about an SSP delegate's behaviour; the defaults are the header's.
package struct SSPPolicy: Sendable {
  package enum MissingPeriod: Sendable { case error, noTimer }
  package enum HeartbeatStart: Sendable { case setup, license }
  package enum KeepAlive: Sendable { case auto, heartbeat, renewal }
  package enum Resetup: Sendable { case callbackOnly, always, never }

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

  package init() {}
}
