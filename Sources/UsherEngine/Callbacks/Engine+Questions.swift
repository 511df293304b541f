internal import UsherCore

extension Engine {
  /// Asks the host a question. All questions use this function. The question waits in the playback's lane behind the
  /// other callbacks of the playback. `answered` runs on the I/O thread exactly once, with or without an answer;
  /// `answered` gets nil instead of the playback if the engine has removed the playback by then.
  /// - Parameters:
  ///   - question: the question to a hook; nil if no hook is asked.
  ///   - deadline: how much time the host has to answer.
  ///   - put: calls the host's callback, on a thread that runs host code. The engine does not call `put` if the
  ///     question has ended before.
  @discardableResult
  func askHost(
    _ entry: PlaybackEntry, _ kind: HostQuestion.Kind, _ question: HookQuestion? = nil, atMost deadline: Milliseconds,
    put: @escaping (HostQuestion, HostPlayback) -> Void,
    answered: @escaping (PlaybackEntry?, HostAnswer, Status) -> Void
  ) -> HostQuestion {
    let id = entry.id
    let ask = HostQuestion(kind, engine: self, playback: entry.shared, question: question) { ask, reply, status in
      let entry = self.playbacks[id]
      entry?.questions.removeAll { $0 === ask }
      answered(entry, self.secrets.cleaned(reply, entry), status)
    }
    entry.questions.append(ask)
    ask.timer = timers.set(at: clock.now.adding(deadline), .ask(ask))
    let host = entry.host
    // The playback may have closed, or the deadline may have passed, while this job waited in the lane. Then the
    // question accepts no answer, so do not ask the host.
    calls.run(id) { if ask.isOpen { put(ask, host) } }
    return ask
  }
}
