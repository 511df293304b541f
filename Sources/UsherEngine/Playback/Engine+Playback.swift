internal import Synchronization
package import UsherCore

extension Engine {
  /// Any thread.
  package func addPlayer(_ id: PlayerID) {
    submit { self.players[id] = PlayerMachine() }
  }

  /// Any thread: stops it and forgets it once it is quiet.
  package func removePlayer(_ id: PlayerID) {
    submit { self.stopPlayer(id, nil, isLast: true) }
  }

  /// Any thread: the next item on a player.
  package func play(
    _ id: PlaybackID, on player: PlayerID, host: HostPlayback, item: PlaybackItem, shared: PlaybackShared,
    callbacks: PlaybackCallbacks
  ) {
    submit {
      var item = item
      let mapped = item.contentToken == nil && !item.isClear ? item.delegate.tokenMap?.hold(item.contentID) : nil
      if let mapped { item.contentToken = mapped.token }
      let entry = PlaybackEntry(id: id, player: player, host: host, item: item, shared: shared, callbacks: callbacks)
      if let mapped { entry.held.append((item.contentID, mapped.pin)) }
      self.playbacks[id] = entry
      self.openCount += 1
      if self.isClosing || self.players[player] == nil {
        self.close(entry, nil, .closed)
        return
      }
      self.perform(self.players[player]?.play(id) ?? [])
    }
  }

  /// With several closed at once, none's end starts what another had waiting.
  func perform(_ actions: [PlayerMachine<PlaybackID>.Action]) { holdBack { performNow(actions) } }

  private func performNow(_ actions: [PlayerMachine<PlaybackID>.Action]) {
    for action in actions {
      switch action {
      case .start(let id):
        guard let entry = playbacks[id] else { continue }
        step(entry) { $0.start(now: self.clock.now) }
      case .close(let id): if let entry = playbacks[id] { close(entry, entry.machine.ending(isZap: true), .closed) }
      case .replace(let id): if let entry = playbacks[id] { close(entry, entry.machine.ending(isZap: true), .replaced) }
      }
    }
  }

  /// Any thread.
  /// - Parameter ending: nil: what the delegate does by itself.
  package func closePlayback(_ id: PlaybackID, _ ending: SSMSession.Ending?) {
    submit { if let entry = self.playbacks[id] { self.close(entry, ending, .closed) } }
  }

  /// Any thread.
  package func stopPlayer(_ id: PlayerID, _ ending: SSMSession.Ending?) {
    submit { self.stopPlayer(id, ending, isLast: false) }
  }

  private func stopPlayer(_ id: PlayerID, _ ending: SSMSession.Ending?, isLast: Bool) {
    guard let player = players[id] else { return }
    holdBack {
      if let waiting = player.waiting, let entry = playbacks[waiting] { close(entry, ending, .closed) }
      if let current = player.current, let entry = playbacks[current] { close(entry, ending, .closed) }
    }
    if isLast { players.remove(id) }
  }

  func close(_ entry: PlaybackEntry, _ ending: SSMSession.Ending?, _ status: Status) {
    holdBack { closeNow(entry, ending, status) }
  }

  private func closeNow(_ entry: PlaybackEntry, _ ending: SSMSession.Ending?, _ status: Status) {
    // First: who hears that something of it ended finds it closed.
    entry.shared.publish(.ended)
    if !entry.machine.isClosing { endSetupWaits(entry, status) }
    // No answer is taken from here on; the machine hears of it when it knows of the close, so that the questions' ends are no errors to it.
    let questions = ([entry.tokenAsk, entry.payloadAsk].compactMap { $0 } + entry.hookAsks).filter { $0.shut() }
    let requests =
      entry.jobs.values.map { $0.transfer } + entry.abandoned.values.map { $0.transfer } + [entry.callTransfer]
    timers.cancel(entry.tokenTimer)
    for (_, pin) in entry.held { entry.delegate.tokenMap?.release(pin) }
    entry.held = []
    // Before its end may be told, which is the last of it.
    for question in questions where question.isRequest { question.end(status) }
    endCertificates(of: entry, status)
    endLoads(entry, status)
    step(entry) { $0.close(ending ?? $0.ending(isZap: false), status: status, now: self.clock.now) }
    withdrawUnsent(requests)
    for question in questions where !question.isRequest { question.end(status) }
  }

  /// What still waits for its place goes out no more: nothing follows the end, or the teardown.
  private func withdrawUnsent(_ ids: [TransferID]) {
    for id in ids {
      guard let transfer = transfers[id], transfer.isWaiting else { continue }
      abandonTransfer(id)
      reply(transfer, .failure(WireFailure(.closed)))
    }
  }

  /// Lets something happen to a playback's machine and performs what it answers.
  func step(_ entry: PlaybackEntry, _ happen: (inout PlaybackMachine) -> [PlaybackMachine.Action]) {
    entry.machine.hasTokenCallback = entry.delegate.tokenCallback != nil
    follow(entry, happen(&entry.machine))
  }

  /// Kept out of `step`, which is compiled anew for each thing that can happen.
  @inline(never)
  private func follow(_ entry: PlaybackEntry, _ actions: [PlaybackMachine.Action]) {
    let reached = entry.machine.standing()
    entry.shared.publish(reached.sessionState)
    // Before a set-up that follows goes out: of that one it is not news.
    let hasGivenBack = trackTeardown(entry, reached)
    perform(actions, entry)
    if hasGivenBack { letContestedGoOn() }
    let settled = entry.machine.standing()
    entry.shared.publish(settled.sessionState)
    if entry.setupStatus == nil, settled.sessionState == .none, !settled.isWaiting { endSetupWaits(entry, .ok) }
    if settled.isFinished, playbacks.remove(entry.id) != nil { timers.cancel(entry.sessionTimer) }
    let isOpen = !settled.isClosed || settled.isGivingBack
    let isAwaited = !isOpen && settled.awaitsToken
    guard isOpen != entry.isOpen || isAwaited != entry.isAwaited else { return }
    openCount += (isOpen ? 1 : 0) - (entry.isOpen ? 1 : 0)
    awaitedCount += (isAwaited ? 1 : 0) - (entry.isAwaited ? 1 : 0)
    entry.isOpen = isOpen
    entry.isAwaited = isAwaited
    checkClosed()
  }

  private func perform(_ actions: [PlaybackMachine.Action], _ entry: PlaybackEntry) {
    for action in actions {
      switch action {
      case .sendSSM(let request, let call, let token):
        if let customer = entry.delegate.customer {
          askCustomer(customer, entry, request, call)
          continue
        }
        guard let message = entry.delegate.ssmRequest(call, token: token) else { continue }
        if call == .setup { entry.slotsGivenBackAtSetup = slotsGivenBack }
        let id = send(
          message, for: .ssm(entry.id, request, call),
          atMost: call == .heartbeat ? entry.machine.session.keepAliveTimeout : .never)
        if call != .teardown { entry.callTransfer = id }
      case .sendLicense(let request, let license, let content, let session, let renewal):
        sendLicense(entry, request, license, content: content, session: session, isRenewal: renewal)
      case .setTimer(let at):
        timers.cancel(entry.sessionTimer)
        entry.sessionTimer = timers.set(at: at, .session(entry.id))
      case .cancelTimer:
        timers.cancel(entry.sessionTimer)
        entry.sessionTimer = 0
      case .askToken: askToken(entry)
      case .awaitToken(let atMost):
        timers.cancel(entry.tokenTimer)
        entry.tokenTimer = timers.set(at: clock.now.adding(atMost), .token(entry.id))
      case .askPayload(let keySystem): askPayload(entry, keySystem)
      case .report(let report): tell(report, entry)
      case .deliverLicense(let license, let data): deliver(entry, license, data)
      case .failLicense(let license, let error): fail(entry, license, error)
      case .nextMayStart:
        perform(players[entry.player]?.nextMayStart(after: entry.id) ?? [])
      case .closed(let status, let orphanPossible):
        var error = UsherError(status == .replaced ? .replaced : .ok)
        error.orphanPossible = orphanPossible
        emit(.playbackClosed, entry, error: error)
        entry.hasToldClosed = true
        for wait in entry.closeWaits { endCloseWait(wait, entry.id) }
        entry.closeWaits = []
        entry.callbacks = PlaybackCallbacks()
      }
    }
  }

  private func tell(_ report: PlaybackMachine.Report, _ entry: PlaybackEntry) {
    switch report {
    case .started(let period):
      emit(.sessionStarted, entry, period: period)
      endSetupWaits(entry, .ok)
    case .setupError(let error):
      emit(.setupError, entry, error: error)
      endSetupWaits(entry, error.status)
    case .heartbeatError(let error): emit(.heartbeatError, entry, error: error)
    case .teardownError(let error):
      // Of a slot whose token came after the end was told: events have ended, the log has not.
      guard entry.hasToldClosed else { return emit(.teardownError, entry, error: error) }
      guard wants(.warning) else { return }
      var line = name(entry.id, "a session that came late could not be given back: ")
      line.add(error.message)
      tell(.warning, line)
    case .keptAlive(let lateness): emit(.keptAlive, entry, lateness: lateness)
    case .recovered: emit(.recovered, entry)
    case .doubtful: emit(.sessionDoubtful, entry)
    case .ended(let left): emit(.sessionEnded, entry, isLeft: left)
    case .sessionless: emit(.noSession, entry)
    }
  }

  func endSetupWaits(_ entry: PlaybackEntry, _ status: Status) {
    entry.setupStatus = status
    for wait in entry.setupWaits { wait.end(status) }
    entry.setupWaits = []
  }

  /// Knows which slots are being given back. True: one was.
  private func trackTeardown(_ entry: PlaybackEntry, _ standing: PlaybackMachine.Standing) -> Bool {
    let isContested = standing.waitsForOwnTeardowns
    if isContested != entry.isContested {
      entry.isContested = isContested
      if isContested { contested.insert(entry.id) } else { contested.remove(entry.id) }
    }
    let wasGivingBack = entry.isGivingBack
    let isGivingBack = standing.isGivingBack
    guard isGivingBack != wasGivingBack else { return false }
    entry.isGivingBack = isGivingBack
    if isGivingBack { givingBack.insert(entry.id) } else { givingBack.remove(entry.id) }
    guard wasGivingBack else { return false }
    slotsGivenBack &+= 1
    return true
  }

  /// Set-ups that were refused wait no longer, once nothing of ours is being given back to their head-end.
  private func letContestedGoOn() {
    for id in Array(contested) {
      guard let waiting = playbacks[id], !hasGiveBack(besides: waiting) else { continue }
      step(waiting) { $0.ownTeardownsEnded(now: self.clock.now) }
    }
  }

  /// Whether another playback is giving a slot back to the same head-end.
  private func hasGiveBack(besides entry: PlaybackEntry) -> Bool {
    givingBack.contains { id in
      guard id != entry.id, let other = playbacks[id] else { return false }
      if other.delegate === entry.delegate { return true }
      guard let theirs = other.delegate.endpoints.teardown, let ours = entry.delegate.endpoints.teardown else {
        return false
      }
      return theirs.origin == ours.origin
    }
  }

  func ssmReplied(
    _ playback: PlaybackID, _ request: RequestID, _ call: SSMSession.Call, _ outcome: SSMOutcome,
    queueDelay: Milliseconds = 0
  ) {
    guard let entry = playbacks[playback] else { return }
    let others = ownTeardowns(besides: entry)
    step(entry) {
      $0.ssmReplied(request, call, outcome, ownTeardowns: others, queueDelay: queueDelay, now: self.clock.now)
    }
  }

  /// Since the session of `entry` was asked for.
  func ownTeardowns(besides entry: PlaybackEntry) -> SSMSession.OwnTeardowns {
    hasGiveBack(besides: entry) ? .underWay : (slotsGivenBack == entry.slotsGivenBackAtSetup ? .none : .ended)
  }

  func sessionTimerFired(_ id: PlaybackID) {
    guard let entry = playbacks[id] else { return }
    entry.sessionTimer = 0
    step(entry) { $0.timerFired(now: self.clock.now) }
  }

  private func askToken(_ entry: PlaybackEntry) {
    guard let callback = entry.delegate.tokenCallback else {
      step(entry) { $0.tokenAnswered(nil, now: self.clock.now) }
      return
    }
    let id = entry.id
    let ask = Ask(.token, engine: self) { reply, _ in
      guard let entry = self.playbacks[id] else { return }
      entry.tokenAsk = nil
      self.step(entry) { $0.tokenAnswered(reply.secret, now: self.clock.now) }
    }
    entry.tokenAsk = ask
    ask.timer = timers.set(at: clock.now.adding(entry.delegate.policy.tokenTimeout), .ask(ask))
    let host = entry.host
    call(entry.id) { callback(ask, host) }
  }

  private func askPayload(_ entry: PlaybackEntry, _ keySystem: KeySystem?) {
    guard let callback = entry.callbacks.payload, let keySystem else {
      emit(.renewalDue, entry)
      return
    }
    guard entry.payloadAsk == nil else { return }
    let id = entry.id
    let ask = Ask(.payload, engine: self) { reply, status in
      guard let entry = self.playbacks[id] else { return }
      entry.payloadAsk = nil
      if let payload = reply.secret {
        self.renew(entry, keySystem, payload)
      } else {
        self.step(entry) { $0.payloadFailed(status, now: self.clock.now) }
      }
    }
    entry.payloadAsk = ask
    ask.timer = timers.set(at: clock.now.adding(entry.delegate.policy.payloadTimeout), .ask(ask))
    let host = entry.host
    call(entry.id) { callback(ask, keySystem, host) }
  }

  /// Any thread: (re)places a delegate's token callback.
  package func setTokenCallback(_ delegate: LicenseDelegate, _ callback: LicenseDelegate.TokenCallback?) {
    submit { delegate.tokenCallback = callback }
  }

  // MARK: Waits

  private func bound(_ wait: Wait<Status>, _ timeout: Milliseconds?) {
    if let timeout { _ = timers.set(at: clock.now.adding(timeout), .wait(wait)) }
  }

  /// Any thread but a callback's: waits until set-up has ended.
  package func waitForSession(_ id: PlaybackID, _ timeout: Milliseconds) -> Status {
    let wait = Wait<Status>()
    submit {
      guard let entry = self.playbacks[id] else { return wait.end(.closed) }
      if let failure = entry.machine.session.failure { return wait.end(failure.status) }
      if let status = entry.setupStatus { return wait.end(status) }
      entry.setupWaits.append(wait)
      self.bound(wait, timeout)
    }
    return wait.wait()
  }

  /// Behind what the playback's lane still has to tell, so that who waited finds its observers told. In pumped mode they are told when the host pumps,
  /// which is not waited for.
  private func endCloseWait(_ wait: Wait<Status>, _ id: PlaybackID) {
    if executor.isBusy(id) { call(id) { wait.end(.ok) } } else { wait.end(.ok) }
  }

  /// Any thread but a callback's: waits until a playback is closed.
  package func waitForClose(_ id: PlaybackID, _ timeout: Milliseconds?) -> Status { waitForClose(id, timeout) { _ in } }

  /// Any thread but a callback's: closes a playback, in the same breath.
  /// - Parameter ending: nil: what the delegate does by itself.
  package func closeAndWait(_ id: PlaybackID, _ timeout: Milliseconds, _ ending: SSMSession.Ending?) -> Status {
    waitForClose(id, timeout) { self.close($0, ending, .closed) }
  }

  private func waitForClose(
    _ id: PlaybackID, _ timeout: Milliseconds?, then: @escaping (PlaybackEntry) -> Void
  ) -> Status {
    let wait = Wait<Status>()
    submit {
      self.bound(wait, timeout)
      guard let entry = self.playbacks[id], !entry.machine.isClosed else { return self.endCloseWait(wait, id) }
      entry.closeWaits.append(wait)
      then(entry)
    }
    return wait.wait()
  }

  /// Any thread: begins closing everything.
  package func beginClosing() {
    _ = closingBegan.compareExchange(expected: 0, desired: monotonicMilliseconds(), ordering: .relaxed)
    submit {
      guard !self.isClosing else { return }
      self.isClosing = true
      self.holdBack {
        // Those that wait for their turn first, so that it does not come.
        let entries = self.playbacks.sortedIDs.compactMap { self.playbacks[$0] }
        for entry in entries where entry.machine.isWaiting { self.close(entry, nil, .closed) }
        for entry in entries where !entry.machine.isClosing { self.close(entry, nil, .closed) }
      }
      self.checkClosed()
    }
  }

  /// Any thread but a callback's: closes everything and waits, also for replies that may bring a token, which is then given back. Returns how many
  /// playbacks are still open.
  package func close(within timeout: Milliseconds) -> Int {
    let wait = Wait<Status>()
    beginClosing()
    waitForAllClosed(wait, within: timeout)
    _ = wait.wait()
    return sync { self.openCount }
  }

  /// Any thread: ends the wait when everything is closed, or its time is over.
  func waitForAllClosed(_ wait: Wait<Status>, within timeout: Milliseconds) {
    submit {
      self.closeWaits.append(wait)
      self.bound(wait, timeout)
      self.checkClosed()
    }
  }

  /// Waits, at most a second, for the callbacks that tell of the end; in pumped mode they come when the host pumps.
  package func letCallbacksTell() {
    if pump == nil { _ = settle(transfers: .max, callbacks: 0, within: 1000) }
  }

  var isAllClosed: Bool { openCount == 0 && awaitedCount == 0 }

  private func checkClosed() {
    guard isClosing, !closeWaits.isEmpty, isAllClosed else { return }
    for wait in closeWaits { wait.end(.ok) }
    closeWaits = []
  }
}
