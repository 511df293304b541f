import Testing

@testable import UsherCore

@Suite struct TimeTests {
  @Test func adding_saturates() {
    #expect((5 as Milliseconds).adding(6) == 11)
    #expect(Milliseconds.max.adding(1) == .max)
    #expect((1 as Milliseconds).adding(.never) == .never)
  }

  @Test func since_neverGoesBelowZero() {
    #expect((9 as Milliseconds).since(4) == 5)
    #expect((4 as Milliseconds).since(9) == 0)
    #expect((0 as Milliseconds).since(.max) == 0)
  }

  @Test func permille_ofAnything_neverTraps() {
    #expect((60_000 as Milliseconds).permille(50) == 3000)
    #expect((999 as Milliseconds).permille(500) == 499)
    #expect((0 as Milliseconds).permille(1000) == 0)
    #expect(Milliseconds.max.permille(1000) <= .max)
    _ = Milliseconds.max.permille(.max)
  }
}
