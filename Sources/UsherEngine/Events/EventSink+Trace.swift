internal import CPlatform
internal import UsherCore

/// The trace: log lines of level `trace`. Each line is one JSON object; docs/traces.md describes these objects. Call
/// these functions only if the host wants lines of this level.
extension EventSink {
  /// Writes the first line, which relates the context's clock to the time of day.
  func traceContext() {
    var line = TraceLine("context", at: clock.now)
    line.add("unix_ms", UInt64(clamping: platform_wall_clock_ms()))
    write(.trace, text: line.end())
  }

  /// Writes that the host has started a playback.
  func tracePlay(_ entry: PlaybackEntry) {
    var line = TraceLine("play", at: clock.now)
    line.add("playback", entry.id)
    line.add("player", entry.player)
    if entry.host.tag != 0 { line.add("tag", entry.host.tag) }
    write(.trace, text: line.end())
  }

  /// Writes that a request has left the queue and is sent.
  func traceRequest(_ transfer: Transfer) {
    let (playback, operation) = Self.subject(transfer)
    var line = TraceLine("request", at: clock.now)
    line.add("request", transfer.number)
    if let playback { line.add("playback", playback) }
    line.add("operation", text: operation)
    line.add("origin", text: String(decoding: transfer.request.endpoint.url.prefix(upToSlash: 3), as: UTF8.self))
    if transfer.isKeepAlive { line.add("keep_alive", literal: "true") }
    if transfer.queueDelay > 0 { line.add("queued_ms", transfer.queueDelay) }
    if let parent = transfer.request.traceParent { line.add("traceparent", text: parent.text) }
    write(.trace, text: line.end())
  }

  /// Writes how a request has ended.
  func traceReply(_ reply: RequestDispatcher.Reply) {
    var line = TraceLine("reply", at: clock.now)
    line.add("request", reply.transfer.number)
    switch reply.outcome {
    case .response(let response):
      line.add("http_status", UInt64(clamping: response.status))
      line.add("bytes", UInt64(clamping: response.body.count))
    case .failure(let failure):
      line.add("status", text: failure.status.name)
      line.add("message", text: failure.message)
    }
    write(.trace, text: line.end())
  }

  func trace(_ event: EngineEvent, _ playback: PlaybackID?) {
    var line = TraceLine("event", at: event.time)
    line.add("event", text: event.kind.name)
    if let playback { line.add("playback", playback) }
    if event.period > 0 { line.add("period_ms", event.period) }
    if event.lateness > 0 { line.add("late_ms", event.lateness) }
    let error = event.error
    if error.status != .ok {
      line.add("status", text: error.status.name)
      if error.httpStatus > 0 { line.add("http_status", UInt64(clamping: error.httpStatus)) }
      if error.serviceCode != 0 {
        line.add("service_code", error.serviceCode.magnitude, isNegative: error.serviceCode < 0)
      }
      line.add("message", text: error.message)
      if error.mustStop { line.add("must_stop", literal: "true") }
    }
    write(.trace, text: line.end())
  }
}

extension [UInt8] {
  /// Returns the bytes before the slash with this number, or before the query if that comes first. In a URL, scheme,
  /// host and port come before the third slash. A query may have secrets, and the query may follow the host without a
  /// slash.
  fileprivate func prefix(upToSlash number: Int) -> ArraySlice<UInt8> {
    var left = number
    return prefix { byte in
      if byte == 0x2F { left -= 1 }
      return left > 0 && byte != 0 && byte != 0x3F
    }
  }
}

/// A JSON object in one line.
private struct TraceLine {
  private var line = TextLine()

  @inline(never)
  init(_ kind: StaticString, at time: Milliseconds) {
    line.add("{\"t_ms\":")
    line.add(time)
    add("kind", text: kind)
  }

  private mutating func addName(_ name: StaticString) {
    line.add(",\"")
    line.add(name)
    line.add("\":")
  }

  /// Adds a field whose value is `true`, `false` or a number.
  @inline(never)
  mutating func add(_ name: StaticString, literal: StaticString) {
    addName(name)
    line.add(literal)
  }

  @inline(never)
  mutating func add(_ name: StaticString, _ number: UInt64, isNegative: Bool = false) {
    addName(name)
    if isNegative { line.add("-") }
    line.add(number)
  }

  @inline(never)
  mutating func add(_ name: StaticString, text: StaticString) {
    addName(name)
    line.add("\"")
    line.add(text)
    line.add("\"")
  }

  @inline(never)
  mutating func add(_ name: StaticString, text: String) {
    addName(name)
    line.add("\"")
    for byte in text.utf8 {
      if byte == 0x22 || byte == 0x5C { line.add("\\") }
      line.add(byte < 0x20 ? 0x20 : byte)
    }
    line.add("\"")
  }

  mutating func end() -> String {
    line.add("}")
    return line.text()
  }
}
