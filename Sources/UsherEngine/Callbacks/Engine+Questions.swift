internal import UsherCore

extension Engine {
  /// The only way to ask the host. The question comes in the order of the playback's callbacks. `answered` runs on the
  /// I/O thread, once, however the question ends; its playback is nil if that has been removed by then.
  /// - Parameters:
  ///   - question: what a hook is asked.
  ///   - deadline: how long the host has for the answer.
  ///   - put: calls the host; runs where host code runs.
  @discardableResult
  func askHost(
    _ entry: PlaybackEntry, _ kind: HostQuestion.Kind, _ question: HookQuestion? = nil, atMost deadline: Milliseconds,
    put: @escaping (HostQuestion, HostPlayback) -> Void,
    answered: @escaping (PlaybackEntry?, HostAnswer, Status) -> Void
  ) -> HostQuestion {
    let id = entry.id
    let ask = HostQuestion(kind, engine: self, question: question) { reply, status in
      let entry = self.playbacks[id]
      entry?.questions.removeAll { !$0.isOpen }
      answered(entry, reply, status)
    }
    entry.questions.append(ask)
    ask.timer = timers.set(at: clock.now.adding(deadline), .ask(ask))
    let host = entry.host
    calls.run(id) { put(ask, host) }
    return ask
  }
}
