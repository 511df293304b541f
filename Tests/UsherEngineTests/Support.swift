@_exported import TestSupport
import Testing

@testable import UsherCore
@testable import UsherEngine

func endpoint(_ path: String, host: String = "head-end") -> Endpoint {
  Endpoint(url: Array("https://\(host)/\(path)".utf8) + [0], origin: Array(host.utf8), isLoopback: false)
}

func request(_ path: String = "x", host: String = "head-end", urgent: Bool = false) -> HTTPRequest {
  HTTPRequest(method: .post, endpoint: endpoint(path, host: host), headers: [], body: nil, isUrgent: urgent, tokens: [])
}
