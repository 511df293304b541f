internal import CPlatform
package import UsherCore

/// Passes on what the host reports: it is suspended, it resumes, or the network changed. The engine itself notices that
/// the machine has slept, or that the process was stopped.
extension Engine {
  /// Any thread: called when the computer or the host is suspended.
  /// - Parameter playback: the playback to suspend; nil: all.
  package func suspend(_ playback: PlaybackID?) { each(playback) { entry in self.step(entry) { $0.suspended() } } }

  /// Any thread: called when the computer or the host runs again.
  package func resume(_ playback: PlaybackID?) {
    each(playback) { entry in self.step(entry) { $0.resumed(now: self.clock.now) } }
  }

  /// Any thread: called when the network is back or has changed. New requests use new connections, and the sessions
  /// retry failed keep-alives at once. If the calling thread is in another network namespace than the I/O thread, the
  /// I/O thread moves to that namespace, and starts a new guardian there, which replaces the present one. Inside a
  /// callback the calling thread may be a thread of the library that is still in the old namespace, so the engine
  /// ignores the namespace of this thread.
  package func networkChanged() {
    let namespace = isCallbackThread() ? -1 : platform_netns_open()
    let isTaken = submitUnlessEnded {
      if namespace >= 0 { self.enterNamespace(namespace) }
      self.requests.networkChanged()
    }
    if !isTaken { platform_fd_close(namespace) }
    retryInNewNetwork()
  }

  private func enterNamespace(_ namespace: Int32) {
    let error = platform_netns_enter(namespace)
    platform_fd_close(namespace)
    if error == 0 { moveGuardian() }
    guard error > 0, events.logs(.warning) else { return }
    var line = LogLine("the library cannot move to the network namespace of the host's thread: error ")
    line.add(UInt64(clamping: error))
    events.write(.warning, line)
  }

  /// Called when a wait of the loop has ended. After an interruption, idle connections may be dead although no side has
  /// closed them: a router may have forgotten them, or this machine may be in another network.
  func noteInterruption(_ interruption: InterruptionWatch.Interruption) {
    switch interruption {
    case .none: break
    case .stopped(let time):
      requests.hasStopped()
      logInterruption("the process was stopped", time)
    case .slept(let time):
      requests.networkChanged()
      retryInNewNetwork()
      logInterruption("the machine has slept", time)
    }
  }

  private func logInterruption(_ what: StaticString, _ time: Milliseconds) {
    guard events.logs(.info) else { return }
    var line = LogLine(what)
    line.add(" for ")
    line.add(time)
    line.add(" ms: new requests use new connections")
    events.write(.info, line)
  }

  private func retryInNewNetwork() {
    each(nil) { entry in
      let endpoints = entry.delegate.endpoints
      for endpoint in [endpoints.heartbeat, endpoints.license] {
        if let endpoint { self.requests.distrust(endpoint.origin) }
      }
    }
    each(nil) { entry in self.step(entry) { $0.networkChanged(now: self.clock.now) } }
    submit { self.retryUnanswered() }
  }

  private func each(_ playback: PlaybackID?, _ body: @escaping (PlaybackEntry) -> Void) {
    submit {
      guard let playback else { return self.perform(on: self.playbacks.sortedIDs, body) }
      if let entry = self.playbacks[playback] { body(entry) }
    }
  }
}
