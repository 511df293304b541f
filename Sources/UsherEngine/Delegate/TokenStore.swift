package import UsherCore

/// The token map of a multi-instance delegate: content tokens by content identifier. Any thread may use this object.
package final class TokenStore {
  private let monitor = Monitor()
  private let map: TokenMap
  private let clock: Clock

  init(_ map: TokenMap, clock: Clock) {
    self.map = map
    self.clock = clock
  }

  package func set(_ id: UnsafeBufferPointer<UInt8>, _ token: Secret) -> TokenMap.SetResult {
    monitor.locked { map.set(id, token, now: clock.now) }
  }

  package func get(_ id: UnsafeBufferPointer<UInt8>) -> Secret? { monitor.locked { map.get(id, now: clock.now) } }

  package func remove(_ id: UnsafeBufferPointer<UInt8>) -> Bool { monitor.locked { map.remove(id, now: clock.now) } }

  package func clear() { monitor.locked { map.clear() } }

  package var count: Int { monitor.locked { map.count(now: clock.now) } }

  /// Pins an entry and returns its token and the pin.
  func hold(_ id: [UInt8]) -> (token: Secret, pin: TokenMap.Pin)? {
    id.withUnsafeBufferPointer { key in
      monitor.locked {
        guard let pin = map.pin(key, now: clock.now) else { return nil }
        guard let token = map.get(key, now: clock.now) else {
          map.unpin(pin)
          return nil
        }
        return (token, pin)
      }
    }
  }

  func release(_ pin: TokenMap.Pin) { monitor.locked { map.unpin(pin) } }
}

extension Engine {
  /// - Parameter seed: random.
  package func newTokenStore(bound: Int?, timeToLive: Milliseconds?, seed: UInt64) -> TokenStore {
    TokenStore(TokenMap(bound: bound, timeToLive: timeToLive, seed: seed), clock: clock)
  }
}
