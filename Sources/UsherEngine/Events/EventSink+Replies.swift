internal import UsherCore

extension EventSink {
  /// Logs how a request ended, at level debug.
  func logReply(_ reply: RequestDispatcher.Reply) {
    guard logs(.debug) else { return }
    var line = name(reply.transfer)
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

  private func name(_ transfer: Transfer) -> LogLine {
    switch transfer.purpose {
    case .ssm(let playback, _, .setup): return LogLine(playback: playback, "set-up")
    case .ssm(let playback, _, .heartbeat): return LogLine(playback: playback, "heartbeat")
    case .ssm(let playback, _, .teardown): return LogLine(playback: playback, "teardown")
    case .license(let playback, _, _): return LogLine(playback: playback, "licence")
    case .certificate: return LogLine("certificate")
    case .load(let playback, _, .entitlement): return LogLine(playback: playback, "entitlement")
    case .load(let playback, _, .key): return LogLine(playback: playback, "key")
    }
  }
}
