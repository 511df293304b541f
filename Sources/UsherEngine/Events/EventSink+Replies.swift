internal import UsherCore

extension EventSink {
  /// Logs how a request ended. Call it only if the host wants lines of level debug.
  func logReply(_ reply: RequestDispatcher.Reply, _ playbacks: PlaybackTable) {
    let (playback, operation) = Self.subject(reply.transfer)
    var line = playback.map { LogLine(playback: $0, tag: playbacks[$0]?.host.tag, operation) } ?? LogLine(operation)
    line.add(": ")
    switch reply.outcome {
    case .response(let response):
      line.add("HTTP ")
      line.add(UInt64(clamping: response.status))
    case .failure(let failure): line.add(failure.message)
    }
    line.add(" after ")
    line.add(clock.now.since(reply.transfer.askedAt))
    line.add(" ms")
    write(.debug, line)
  }

  /// Returns the playback of a request, and the name of its operation.
  static func subject(_ transfer: Transfer) -> (PlaybackID?, StaticString) {
    switch transfer.purpose {
    case .ssm(let playback, _, .setup): return (playback, "set-up")
    case .ssm(let playback, _, .heartbeat): return (playback, "heartbeat")
    case .ssm(let playback, _, .teardown): return (playback, "teardown")
    case .license(let playback, _, _): return (playback, "licence")
    case .certificate: return (nil, "certificate")
    case .connection: return (nil, "connection")
    case .load(let playback, _, .entitlement): return (playback, "entitlement")
    case .load(let playback, _, .key): return (playback, "key")
    case .recovery: return (nil, "teardown")
    }
  }
}
