import Testing

@testable import UsherCore

@Suite struct KeepAliveScheduleTests {
  @Test func beats_anySeedAndPeriod_areNeverLaterThanDueNorEarlierThanTheJitterAllows() {
    var dice = Dice(3)
    for _ in 0..<2000 {
      let period = 1 + dice.upTo(200_000)
      let jitter = UInt32(dice.upTo(500))
      let start = dice.upTo(1_000_000)
      var schedule = KeepAliveSchedule(
        start: start, leaseFrom: start, period: period, jitter: jitter, seed: dice.next())
      var last: Milliseconds?
      for beat in 1...20 as ClosedRange<UInt64> {
        #expect(schedule.due == start + beat * period)
        let at = schedule.sendAt
        #expect(at <= schedule.due)
        if let last { #expect(at - last == period) }
        last = at
        #expect(schedule.due - at <= period * UInt64(jitter) / 1000)
        schedule.advance(past: at)
      }
    }
  }

  @Test func jitter_sameSeed_isTheSame_andSeedsSpread() {
    func beats(_ seed: UInt64) -> [Milliseconds] {
      var schedule = KeepAliveSchedule(start: 0, leaseFrom: 0, period: 60_000, jitter: 50, seed: seed)
      return (0..<10).map { _ in
        let at = schedule.sendAt
        schedule.advance(past: at)
        return at
      }
    }
    #expect(beats(5) == beats(5))
    let firsts = Set((0..<100 as Range<UInt64>).map { beats(($0 &+ 1) &* 0x9E37_79B9_7F4A_7C15)[0] })
    #expect(firsts.count > 30)
  }

  @Test func jitter_none_isOnTheDot() {
    let schedule = KeepAliveSchedule(start: 7, leaseFrom: 7, period: 1000, jitter: 0, seed: 1)
    #expect(schedule.sendAt == 1007)
  }

  @Test func advance_pastMissedInstants_keepsTheGrid() {
    var dice = Dice(4)
    for _ in 0..<2000 {
      let period = 1 + dice.upTo(10_000)
      var schedule = KeepAliveSchedule(start: 0, leaseFrom: 0, period: period, jitter: 0, seed: 1)
      let now = dice.upTo(1_000_000)
      schedule.advance(past: now)
      #expect(schedule.due % period == 0)
      #expect(schedule.due > now)
      #expect(schedule.due <= max(now + period, 2 * period))
    }
  }

  /// At least half a period is always left for retries. The retries end with the server's lease, which began between
  /// the request and its reply.
  @Test func firstBeat_afterAReplyOfAnyLateness_leavesHalfAPeriod() {
    var dice = Dice(5)
    for _ in 0..<2000 {
      let period = 2 + dice.upTo(100_000)
      let leaseFrom = dice.upTo(1_000_000)
      let start = leaseFrom + dice.upTo(3 * period)
      let schedule = KeepAliveSchedule(start: start, leaseFrom: leaseFrom, period: period, jitter: 0, seed: 1)
      let end = schedule.retriesEnd(permille: 1000)
      #expect(schedule.due >= start && schedule.due <= start + period)
      #expect(schedule.due <= max(start, leaseFrom + period + period / 2))
      #expect(end >= schedule.due + period / 2)
      #expect(end <= max(leaseFrom + 2 * period, start + period - period / 2))
    }
  }

  /// The policy allows retries only for a part of a period. This part begins when the beat is due, also after a late
  /// reply.
  @Test func retries_ofAPartOfAPeriod_countFromTheTimeTheBeatIsDue() {
    let schedule = KeepAliveSchedule(start: 7000, leaseFrom: 0, period: 60_000, jitter: 0, seed: 1)
    #expect(schedule.due == 67_000)
    #expect(schedule.retriesEnd(permille: 100) == 73_000)
    #expect(schedule.retriesEnd(permille: 1000) == 120_000)
  }

  @Test func schedule_atTheEndOfTime_neverTraps() {
    var schedule = KeepAliveSchedule(start: .max - 5, leaseFrom: .max - 5, period: 1000, jitter: 500, seed: 9)
    _ = schedule.sendAt
    schedule.advance(past: .max)
    schedule.advance(past: 0)
    schedule.change(period: .max, start: 5, leaseFrom: 5)
    _ = schedule.sendAt
    schedule.advance(past: .max)
    #expect(schedule.due == .max)
  }
}
