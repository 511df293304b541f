import TestSupport

@testable import UsherCore
@testable import UsherEngine

extension World {
  /// Makes one event of the story happen.
  func perform(_ action: Action) {
    guard let engine else { return }
    coverage.items += 1
    log(describe(action))
    switch action {
    case .play(let id, let player, let kind, let choice): play(engine, id, player, kind, choice)
    case .close(let id, let leave):
      guard let play = plays[id] else { return }
      subject = (play, leave == true ? .left : .closed)
      // If the host has left a session to expire and then closes the playback again with a teardown, this call waits
      // for the I/O thread. In this simulation one thread plays both the host and the I/O thread, so the simulation
      // cannot make this call. The state model (`make model`) tests it instead.
      let ending: SSMSession.Ending? = play.closedAt == nil && leave == false ? .teardown : leave == nil ? nil : .leave
      noteClose(play, leave: leave)
      _ = engine.closePlayback(play.shared, ending)
    case .stop(let player):
      for play in live where play.player == player && play.closedAt == nil {
        noteClose(play, leave: nil)
        subject = (play, .stopped)
      }
      _ = engine.stopPlayer(screen(of: player), nil, waiting: 0)
    case .license(let id, let isRenewal, let timeout):
      if let play = plays[id] { license(play, isRenewal: isRenewal, timeout: timeout, other: timeout.map { $0 % 6 }) }
    case .certificate(let id):
      guard let play = plays[id] else { return }
      request(play, "certificate") {
        engine.requestCertificate(
          play.shared, timeout: mixed(story.seed, id) % 9000, isBlocking: false, complete: $0)
      }
    case .contentID(let id):
      if let play = plays[id] {
        request(play, "content identifier") {
          engine.requestContentID(
            play.shared, url: Array("skd://movie".utf8), timeout: 3000, isBlocking: false, complete: $0)
        }
      }
    case .load(let id):
      guard let play = plays[id] else { return }
      play.lastLoad = nextCompletion
      let number = nextCompletion
      request(play, "load") {
        engine.load(
          play.shared, number, loaders[Int(id % 3)], url: Array("skd://keys.example/k?cid=movie&x=K".utf8),
          timeout: 20_000, isBlocking: false, complete: $0)
      }
    case .cancelLoad(let id):
      guard let play = plays[id] else { return }
      let load = play.lastLoad
      runBlocking { _ = engine.cancelLoad(id, load) }
    case .giveToken(let id):
      guard let play = plays[id] else { return }
      play.tokens += 1
      let token = Secret(Token(.playback, id, play.tokens).bytes)
      subject = (play, .tokenGiven)
      runBlocking { _ = engine.giveToken(id, token) }
    case .mapToken(let content): mapToken(engine, content)
    case .header:
      guard let delegate = delegates[Int(Kind.plain.rawValue)] else { return }
      let line = mixed(story.seed, now) % 3 == 0 ? nil : Secret(Array("x-operator: \(now)".utf8) + [0])
      engine.setLicenseHeader(delegate, name: Array("x-operator".utf8), line: line)
    case .kill(let account): headEnd.kill(account: account)
    case .suspend:
      subject = (nil, .suspend)
      engine.suspend(nil)
    case .resume:
      subject = (nil, .resume)
      restartKeepAliveClocks()
      engine.resume(nil)
    case .networkChanged:
      subject = (nil, .networkChanged)
      engine.networkChanged()
    case .sleep(let duration):
      now += duration
      engine.clock.set(now)
      restartKeepAliveClocks()
      engine.submit {}
    case .late(let duration): lateUntil = now + duration
    case .networkDown(let lasts): downUntil = max(downUntil, now + lasts)
    case .fault(let fault, let route, let share, let lasts):
      faults = faults.filter { $0.until > now } + [(fault, route, share, now + lasts)]
    case .habit(let callback, let habit, let lasts):
      habits = habits.filter { $0.until > now } + [(callback, habit, now + lasts)]
    }
  }

  private func play(_ engine: Engine, _ id: PlaybackID, _ player: UInt64, _ kind: Kind, _ choice: Choice) {
    guard let delegate = delegates[Int(kind.rawValue)] else { return }
    let play = Play(id, player, kind, choice, account: player / story.setting.perAccount)
    coverage.plays[Int(kind.rawValue)] += 1
    for other in live where other.player == player {
      if other.closedAt == nil { other.sideInput = .zap }
      noteClose(other, leave: nil, isZap: true)
    }
    play.wasPlayedLate = isLate
    plays[id] = play
    live.append(play)
    var token: Secret?
    if choice.hasToken, kind != .mapped {
      play.tokens += 1
      token = Secret(Token(.playback, id, play.tokens).bytes)
    }
    if choice.hasToken, kind == .mapped { mapToken(engine, choice.content) }
    var item = PlaybackItem(delegate: delegate, contentToken: token)
    if kind == .mapped { item.contentID = contentID(choice.content) }
    var callbacks = PlaybackCallbacks()
    if choice.hasPayload || !kind.asksHost {
      callbacks.payload = { [weak self] ask, _, host in self?.payloadAsked(ask, host) }
    }
    subject = (play, .play)
    let host = HostPlayback(handle: UInt(id), playerHandle: UInt(player), tag: id)
    let isPlaying = engine.play(play.shared, on: screen(of: player), host: host, item: item, callbacks: callbacks)
    if !isPlaying { fail("calls", "playback \(id) was refused") }
  }

  private func screen(of player: UInt64) -> PlayerShared { screens[player] ?? PlayerShared(player) }

  /// Records that a playback will close, and whether the library leaves its session to expire. Only the first call for
  /// a playback counts.
  func noteClose(_ play: Play, leave: Bool?, isZap: Bool = false) {
    guard play.closedAt == nil, let policy = delegates[Int(play.kind.rawValue)]?.policy else { return }
    play.closedAt = now
    play.isLeft = leave ?? (isZap ? !policy.zapTearsDown : policy.leavesByDefault)
  }

  private func mapToken(_ engine: Engine, _ content: UInt64) {
    guard let delegate = delegates[Int(Kind.mapped.rawValue)], let map = delegate.tokenMap else { return }
    nextContentToken += 1
    for play in live where play.kind == .mapped && play.choice.content == content { play.sideInput = .tokenMapped }
    let id = contentID(content)
    let result = id.withUnsafeBufferPointer {
      map.set($0, Secret(Token(.content, content, nextContentToken).bytes))
    }
    switch result {
    case .added, .addedByPruning, .replaced: engine.tokenMapped(delegate, id)
    case .full, .badKey: break
    }
  }

  /// Called after a sleep or a suspension: the checks measure from the present time how late the next keep-alives are.
  func restartKeepAliveClocks() { for play in live where play.lastBeat != nil { play.lastBeat = now } }

  private func describe(_ action: Action) -> String {
    switch action {
    case .play(let id, let player, let kind, let choice):
      let missing = (choice.hasToken ? "" : ", no token") + (choice.hasPayload ? "" : ", no payload callback")
      return "player \(player) plays playback \(id) (\(kind)\(missing))"
    case .close(let id, let leave):
      return "playback \(id) is closed\(leave.map { $0 ? ", left" : ", torn down" } ?? "")"
    case .stop(let player): return "player \(player) is stopped"
    case .license(let id, let isRenewal, let timeout):
      return "a \(isRenewal ? "renewal" : "licence") for playback \(id)\(timeout.map { ", within \($0) ms" } ?? "")"
    case .certificate(let id): return "a certificate for playback \(id)"
    case .contentID(let id): return "a content identifier for playback \(id)"
    case .load(let id): return "a key is loaded for playback \(id)"
    case .cancelLoad(let id): return "the last key load of playback \(id) is cancelled"
    case .giveToken(let id): return "playback \(id) is given its token"
    case .mapToken(let content): return "the token of content \(content) comes into the map"
    case .header: return "the default delegate's header changes"
    case .kill(let account): return "the operator kills \(account.map { "account \($0)" } ?? "everything")"
    case .suspend: return "the host is suspended"
    case .resume: return "the host is resumed"
    case .networkChanged: return "the network has changed"
    case .sleep(let duration): return "the machine sleeps for \(duration) ms"
    case .late(let duration): return "the I/O thread is late by \(duration) ms"
    case .networkDown(let lasts): return "the network is away for \(lasts) ms"
    case .fault(let fault, let route, let share, let lasts):
      let requests = "\(share == 1 ? "every" : "one in \(share)") request\(route.map { " (\($0))" } ?? "")"
      return "for \(lasts) ms \(requests) meets: \(fault)"
    case .habit(let callback, let habit, let lasts): return "for \(lasts) ms the \(callback) callback answers: \(habit)"
    }
  }
}
