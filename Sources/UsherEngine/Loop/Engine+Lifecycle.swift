package import UsherCore

/// Passes on what the host reports: it is suspended, it resumes, or the network changed.
extension Engine {
  /// Any thread: called when the computer or the host is suspended.
  /// - Parameter playback: the playback to suspend; nil: all.
  package func suspend(_ playback: PlaybackID?) { each(playback) { entry in self.step(entry) { $0.suspended() } } }

  /// Any thread: called when the computer or the host runs again.
  package func resume(_ playback: PlaybackID?) {
    each(playback) { entry in self.step(entry) { $0.resumed(now: self.clock.now) } }
  }

  /// Any thread: called when the network is back or has changed. New requests use new connections, and the sessions
  /// retry failed keep-alives at once.
  package func networkChanged() {
    submit { self.requests.networkChanged() }
    each(nil) { entry in
      let endpoints = entry.delegate.endpoints
      for endpoint in [endpoints.heartbeat, endpoints.license] {
        if let endpoint { self.requests.distrust(endpoint.origin) }
      }
    }
    each(nil) { entry in self.step(entry) { $0.networkChanged(now: self.clock.now) } }
  }

  private func each(_ playback: PlaybackID?, _ body: @escaping (PlaybackEntry) -> Void) {
    submit {
      guard let playback else { return self.perform(on: self.playbacks.sortedIDs, body) }
      if let entry = self.playbacks[playback] { body(entry) }
    }
  }
}
