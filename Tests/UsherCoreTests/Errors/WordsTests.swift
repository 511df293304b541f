import Testing

@testable import UsherCore

@Suite struct WordsTests {
  @Test func statusNames_areUniqueAndWellFormed() {
    let names = Status.allCases.map { string($0.name) }
    #expect(Set(names).count == names.count)
    #expect(names.allSatisfy { $0 == "USHER_OK" || $0.hasPrefix("USHER_E_") })
    #expect(Set(Status.allCases.map(\.rawValue)).count == Status.allCases.count)
  }

  @Test func statusTexts_areOneLineEach() {
    let texts = Status.allCases.map(\.message)
    #expect(Set(texts).count == texts.count)
    #expect(texts.allSatisfy { !$0.isEmpty && !$0.contains("\n") })
  }

  @Test func explanation_sameCode_dependsOnWhoAnswered() {
    let session = explanation(origin: .ssm, status: .limit, code: 1007)
    let license = explanation(origin: .license, status: .refused, code: 1007)
    #expect(session.isKnown && license.isKnown)
    #expect(string(session.summary) != string(license.summary))
    #expect(string(session.summary).contains("Too many"))
    #expect(!string(license.summary).contains("Too many"))
  }

  @Test func explanation_unknownCode_fallsBackToTheStatus() {
    for origin in [Origin.ssm, .license, .certificate, .local] {
      let words = explanation(origin: origin, status: .tls, code: 987_654_321)
      #expect(!words.isKnown)
      #expect(string(words.summary) == string(explanation(origin: .local, status: .tls, code: 0).summary))
    }
    #expect(!explanation(origin: .certificate, status: nil, code: 1007).isKnown)
  }

  @Test func explanation_ofEveryPublishedCode_isKnown() {
    for code in [
      1000, 1001, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1011, 1012, 1013, 1017, 1018, 3001, 3004, 4000, 4001
    ] as [Int64] {
      #expect(explanation(origin: .ssm, status: nil, code: code).isKnown, "\(code)")
    }
    for code in [
      1001, 1010, 2001, 2102, 3001, 3011, 4000, 4001, 4002, 4003, 4004, 4005, 4006, 4007, 4008, 4009, 4016, 4017, 4025,
      4027
    ] as [Int64] {
      #expect(explanation(origin: .license, status: nil, code: code).isKnown, "\(code)")
    }
    for code in [.min, -1, 0, 9999, .max] as [Int64] {
      for origin in [Origin.ssm, .license, .certificate, .local] {
        #expect(!explanation(origin: origin, status: .ok, code: code).isKnown)
      }
    }
  }

  @Test func failure_isTransient_byItsKind() {
    #expect(WireFailure(.transport).isTransient)
    #expect(WireFailure(.http, httpStatus: 503).isTransient)
    #expect(WireFailure(.http, httpStatus: 429).isTransient)
    #expect(!WireFailure(.http, httpStatus: 404).isTransient)
    #expect(!WireFailure(.refused, httpStatus: 400, serviceCode: 1006).isTransient)
    #expect(WireFailure(.refused, httpStatus: 503, serviceCode: 4001).isTransient)
    #expect(WireFailure(.redirect, httpStatus: 302).isTransient)
  }

  @Test func error_withoutMessage_takesTheStatusText() {
    #expect(UsherError(.limit).message == Status.limit.message)
    #expect(UsherError(.limit, message: "full").message == "full")
    #expect(UsherError(.limit).stopping().mustStop)
  }
}
