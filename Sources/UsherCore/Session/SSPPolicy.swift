/// A constant value with several owners, which share one copy of it in memory.
package final class Shared<Value: Sendable>: Sendable {
  package let value: Value
  package init(_ value: Value) { self.value = value }
}

/// The behaviour that a host chooses for an SSP delegate. The defaults are those of the header.
package struct SSPPolicy: Sendable {
  package enum MissingPeriod: Sendable { case error, noTimer }
  package enum HeartbeatStart: Sendable { case setup, license }
  package enum KeepAlive: Sendable { case auto, heartbeat, renewal }
  package enum Resetup: Sendable { case callbackOnly, always, never }
  package enum Suspend: Sendable { case keep, pause }
  /// The way in which a session opens: by a set-up request (SSM v1), by the first licence reply (SSP V2), or by the
  /// host's licence callback (customer SSM).
  package enum Opening: Sendable { case setup, license, customer }

  package var setupTimeout: Milliseconds = 5000
  package var teardownTimeout: Milliseconds = 3000
  package var tokenTimeout: Milliseconds = 5000
  package var payloadTimeout: Milliseconds = 5000
  package var missingPeriod = MissingPeriod.error
  package var heartbeatStart = HeartbeatStart.setup
  package var lenientNumbers = false
  package var periodMin: Milliseconds = 1000
  package var periodMax: Milliseconds = 86_400_000
  package var periodUpdates = false
  /// How early the library may send a keep-alive at most, in thousandths of the period.
  package var jitter: UInt32 = 50
  /// How long the library retries a failed keep-alive, counted from the time at which it was due, in thousandths of the
  /// period. 1000: until the lease ends; 0: the library does not retry a failed keep-alive.
  package var retry: UInt32 = 1000
  /// After this many consecutive periods without a successful keep-alive the session fails; nil: it never fails for
  /// this reason.
  package var failuresMax: UInt32? = 10
  package var teardownRetries: UInt32 = 3
  /// The time-out of the first attempt of a keep-alive; nil: three eighths of the period, but at least one second.
  package var keepAliveTimeout: Milliseconds?
  package var keepAlive = KeepAlive.auto
  package var resetup = Resetup.callbackOnly
  package var hasSSM = true
  package var opening = Opening.setup
  /// Whether the library sends a licence request only with a content token.
  package var needsToken = true
  /// How long a playback waits for a content token from the host if it has neither a token nor a token callback; 0: it
  /// does not wait.
  package var tokenWait: Milliseconds = 5000
  /// How long the library repeats set-up while the server refuses it because the account has too many sessions; 0: the
  /// library does not repeat it.
  package var slotWait: Milliseconds = 0
  /// Whether set-up starts only with the first licence request, because that request names the content.
  package var startsWithLicense = false
  package var suspend = Suspend.keep
  /// The period of an SSP V2 session if the licence reply that opens it has no usable period; 0: no keep-alives.
  package var periodFallback: Milliseconds = 60_000
  /// Whether a zap tears the session down, even if a stop of the player would leave the session to expire.
  package var zapTearsDown = true
  /// Whether a zap to an item of this delegate starts the item at once, while the teardown of the earlier item's
  /// session is in flight.
  package var zapsAtOnce = false
  /// Whether a close leaves the session to expire if the host does not say what happens to the session.
  package var leavesByDefault = false

  package init() {}

  /// Whether a licence request opens the session, instead of a set-up request.
  package var opensByLicense: Bool { opening != .setup }
}
