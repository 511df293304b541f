internal import UsherCore

extension Engine {
  /// Hands a reply to whom its request was for; nil: there is none.
  func handle(_ reply: RequestDispatcher.Reply?) {
    guard let reply else { return }
    log(reply)
    let secrets = reply.transfer.request.tokens
    switch reply.transfer.purpose {
    case .ssm(let playback, let request, let call):
      let decoded = ReplyDecoder.ssm(reply.outcome, call, hiding: secrets)
      ssmReplied(playback, request, call, decoded, queueDelay: reply.transfer.queueDelay)
    case .license(let playback, let request, let license):
      licenseReplied(playback, request, license, reply.outcome, secrets)
    case .certificate(let source): certificateReplied(source, reply.outcome)
    case .load(let playback, let job, let step): loadReplied(playback, job, step, reply.outcome, secrets)
    }
  }

  private func log(_ reply: RequestDispatcher.Reply) {
    guard events.logs(.debug) else { return }
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
    events.write(.debug, line)
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
