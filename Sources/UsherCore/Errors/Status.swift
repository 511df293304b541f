/// The statuses that the functions of the C interface return. The values are those of `include/usher/error.h`; a test
/// compares the two.
package enum Status: Int32, Sendable, CaseIterable {
  case ok = 0
  case invalidArgument = -1
  case invalidHandle = -2
  case closed = -3
  case replaced = -4
  case noDelegate = -5
  case timeout = -6
  case wouldDeadlock = -7
  case forked = -8
  case system = -9
  case callback = -10
  case invalidCompletion = -11
  case state = -12
  case transport = -20
  case tls = -21
  case http = -22
  case refused = -23
  case limit = -24
  case protocolError = -25
  case tooLarge = -26
  case noToken = -27
  case redirect = -28
  case session = -29
  case renewalMissed = -30
  case declined = -31
  case full = -32
  case notAllowed = -33
}

/// The server from which an error came; `local`: the error came from no server. The same code has different meanings at
/// different servers.
package enum Origin: Int32, Sendable {
  case local = 0
  case ssm, license, certificate, entitlement
}

package enum Operation: Int32, Sendable {
  case none = 0
  case setup, heartbeat, teardown, license, renewal, certificate, entitlement
}
