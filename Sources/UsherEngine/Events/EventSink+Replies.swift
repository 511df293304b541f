internal import UsherCore

extension EventSink {
  /// Logs how a request ended. Call it only if the host wants lines of level debug.
  func logReply(_ reply: RequestDispatcher.Reply, _ playbacks: PlaybackTable) {
    var line = name(reply.transfer, playbacks)
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

  private func name(_ transfer: Transfer, _ playbacks: PlaybackTable) -> LogLine {
    func line(_ playback: PlaybackID, _ word: StaticString) -> LogLine {
      LogLine(playback: playback, tag: playbacks[playback]?.host.tag, word)
    }
    switch transfer.purpose {
    case .ssm(let playback, _, .setup): return line(playback, "set-up")
    case .ssm(let playback, _, .heartbeat): return line(playback, "heartbeat")
    case .ssm(let playback, _, .teardown): return line(playback, "teardown")
    case .license(let playback, _, _): return line(playback, "licence")
    case .certificate: return LogLine("certificate")
    case .load(let playback, _, .entitlement): return line(playback, "entitlement")
    case .load(let playback, _, .key): return line(playback, "key")
    }
  }
}
