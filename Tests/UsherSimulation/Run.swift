@testable import UsherEngine

/// Plays many stories on several threads. Stops when a story breaks a promise.
final class Run {
  private let monitor = Monitor()
  private let seeds: [UInt64]
  private let hours: UInt64
  private let players: UInt64
  private var next = 0
  private var running = 0
  private(set) var coverage = Coverage()
  /// The stories that are being played, with the real time at which each began.
  private var playing: [UInt64: Int64] = [:]
  /// The seed of a story that has run for more than a minute; nil if there is none. Most stories take seconds.
  private(set) var hanging: UInt64?
  private(set) var broken: (seed: UInt64, violation: World.Violation)?

  init(seeds: [UInt64], players: UInt64, hours: UInt64) {
    self.seeds = seeds
    self.players = players
    self.hours = hours
  }

  func run(threads: Int) {
    monitor.locked { running = threads }
    for _ in 0..<threads {
      startThread { [self] in
        while let seed = take() { play(seed) }
        monitor.locked {
          running -= 1
          monitor.broadcast()
        }
      }
    }
    monitor.locked {
      while running > 0, hanging == nil {
        _ = monitor.wait(until: monotonicMilliseconds() + 1000)
        hanging = playing.first { monotonicMilliseconds() - $0.value > 60_000 }?.key
      }
    }
  }

  private func take() -> UInt64? {
    monitor.locked {
      guard broken == nil, next < seeds.count else { return nil }
      defer { next += 1 }
      playing[seeds[next]] = monotonicMilliseconds()
      return seeds[next]
    }
  }

  private func play(_ seed: UInt64) {
    let world = World(Story(seed: seed, players: players, hours: hours))
    let violation = world.run()
    monitor.locked {
      playing[seed] = nil
      coverage.add(world.coverage)
      // If several stories break a promise, keeps the one with the lowest seed, so that the result does not depend on
      // the order of the threads.
      if let violation, seed < broken?.seed ?? .max { broken = (seed, violation) }
    }
  }
}
