internal import UsherCore

/// The host's parts of a delegate: asked one after the other, each now or later; where the host has none, or says so, the built-in behaviour.
extension Engine {
  /// Puts a question to the host in the order of the playback. Its end, however it comes, is told on the I/O thread, once; without the playback where that
  /// is gone by then.
  func ask(
    _ entry: PlaybackEntry, _ kind: Ask.Kind, _ question: HookQuestion? = nil, atMost: Milliseconds,
    endsWithPlayback: Bool = true,
    put: @escaping (Ask, HostPlayback) -> Void, answered: @escaping (PlaybackEntry?, AskReply, Status) -> Void
  ) {
    let id = entry.id
    let ask = Ask(kind, engine: self, question: question) { reply, status in
      let entry = self.playbacks[id]
      entry?.hookAsks.removeAll { !$0.isOpen }
      entry?.customerAsks.removeAll { !$0.isOpen }
      answered(entry, reply, status)
    }
    if endsWithPlayback { entry.hookAsks.append(ask) } else { entry.customerAsks.append(ask) }
    ask.timer = timers.set(at: clock.now.adding(atMost), .ask(ask))
    let host = entry.host
    call(id) { put(ask, host) }
  }
}
