/// What every function returns; the values are those of `include/usher/error.h`, and a test compares the two.
package enum Status: Int32, Sendable, CaseIterable {
  case ok = 0
  case invalidArgument = -1, invalidHandle = -2, closed = -3, replaced = -4, noDelegate = -5, timeout = -6, wouldDeadlock = -7
  case forked = -8, system = -9, callback = -10, invalidCompletion = -11, state = -12
  case transport = -20, tls = -21, http = -22, refused = -23, limit = -24, protocolError = -25, tooLarge = -26, noToken = -27
  case redirect = -28, session = -29, renewalMissed = -30, declined = -31, full = -32, notAllowed = -33
}

/// Which server answered; the same code means different things at different origins.
package enum Origin: Int32, Sendable { case local = 0, ssm, license, certificate, entitlement }

package enum Operation: Int32, Sendable { case none = 0, setup, heartbeat, teardown, license, renewal, certificate, entitlement }
