import Testing

@testable import UsherCore

@Suite struct URLTextTests {
  private func url(_ text: String) -> URLText? { URLText(Array(text.utf8)) }
  private func text(_ url: URLText?) -> String { url.map { String(decoding: $0.bytes, as: UTF8.self) } ?? "-" }

  @Test(arguments: ["", "http://a b/", "http://a/#x", "http://a/\n", "http://a/\u{7F}", "http://a/\u{0}", " http://a"])
  func url_withWhatDoesNotBelong_isRefused(given: String) {
    #expect(url(given) == nil)
  }

  @Test func version_autoRule_isAddedOnlyWhereItIsMissing() {
    let cases = [
      ("https://h/T/ssm", "https://h/T/ssm/v1"), ("https://h/T/ssm/", "https://h/T/ssm/v1"),
      ("https://h/T/ssm///", "https://h/T/ssm/v1"),
      ("https://h/T/ssm/v1", "https://h/T/ssm/v1"), ("https://h/T/ssm/v1/", "https://h/T/ssm/v1"),
      ("https://h/T/ssm/v2", "https://h/T/ssm/v2"),
      ("https://h/T/ssm/v12", "https://h/T/ssm/v12"), ("https://h/T/v", "https://h/T/v/v1"),
      ("https://h/T/v1x", "https://h/T/v1x/v1"),
      ("https://h/T/ssm?key=1", "https://h/T/ssm/v1?key=1"),
      ("https://h/T/ssm/v1/?key=/x/", "https://h/T/ssm/v1?key=/x/")
    ]
    for (given, expected) in cases { #expect(text(url(given)?.versioned(Array("v1".utf8), .auto)) == expected) }
  }

  @Test func version_otherRules_areFollowedLiterally() {
    #expect(text(url("https://h/ssm/v1")?.versioned(Array("v3".utf8), .always)) == "https://h/ssm/v1/v3")
    #expect(text(url("https://h/ssm/")?.versioned(Array("v1".utf8), .never)) == "https://h/ssm")
  }

  @Test func joining_keepsTheQueryBehindThePath() {
    #expect(text(url("https://h/ssm/v1/?a=b")?.joining("sessions/setup")) == "https://h/ssm/v1/sessions/setup?a=b")
  }

  @Test func adding_mergesIntoTheQuery() {
    #expect(text(url("https://h/l")?.adding("renew=true")) == "https://h/l?renew=true")
    #expect(text(url("https://h/l?")?.adding("renew=true")) == "https://h/l?renew=true")
    #expect(text(url("https://h/l?a=b?c")?.adding("renew=true")) == "https://h/l?a=b?c&renew=true")
  }
}
