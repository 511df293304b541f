import TestSupport

@testable import UsherCore
@testable import UsherEngine

/// The delegates of one story: one delegate of each kind. Each delegate has its own random policy.
extension World {
  func prepare(_ engine: Engine) {
    for kind in Kind.allCases { delegates.append(delegate(kind, engine)) }
    for player in 1...story.setting.players {
      screens[player] = PlayerShared(player)
      engine.addPlayer(player)
    }
    for (delegate, kind) in zip(delegates, Kind.allCases) {
      guard let delegate else { continue }
      if hasTokenCallback(kind) {
        engine.setTokenCallback(delegate) { [weak self] ask, host in self?.tokenAsked(ask, host) }
      }
      if kind == .hooked || kind == .common { engine.setHooks(delegate, hooks(kind)) }
    }
    for route in [ResourceLoader.Route.keyServer, .tokenURL, .entitlement] { loaders.append(loader(route)) }
    engine.setLog { [weak self] _, line in self?.logged(line) }
    engine.addObserver(1) { [weak self] event in self?.receive(event) }
  }

  private func dice(_ kind: Kind) -> Dice { Dice(mixed(story.seed, 0xDE1E, UInt64(kind.rawValue))) }

  func hasTokenCallback(_ kind: Kind) -> Bool {
    var dice = Dice(mixed(story.seed, 0x70CE, UInt64(kind.rawValue)))
    return !kind.isCustomer && kind != .mapped && kind != .plain && kind != .loader && dice.one(in: 3)
  }

  private func policy(_ kind: Kind) -> SSPPolicy {
    var dice = dice(kind)
    var policy = SSPPolicy()
    policy.jitter = dice.pick([50, 50, 0, 500])
    policy.teardownRetries = dice.pick([3, 3, 1, 0])
    policy.failuresMax = dice.pick([10, 10, 2, nil])
    policy.retry = dice.pick([1000, 500, 0])
    policy.suspend = dice.pick([.keep, .pause])
    policy.heartbeatStart = story.setting.isFaultless ? .setup : dice.pick([.setup, .setup, .license])
    policy.resetup = dice.pick([.callbackOnly, .callbackOnly, .always, .never])
    policy.tokenWait = dice.pick([5000, 5000, 0])
    policy.periodUpdates = dice.one(in: 2)
    policy.periodFallback = story.setting.period
    var slots = Dice(mixed(story.seed, 0x5107, UInt64(kind.rawValue)))
    if !kind.isCustomer { policy.slotWait = slots.pick([0, 0, 8000]) }
    policy.zapsAtOnce = slots.one(in: 3)
    switch kind {
    case .v2Renewals, .v2Heartbeats:
      policy.opening = .license
      policy.leavesByDefault = !dice.one(in: 3)
      policy.zapTearsDown = !dice.one(in: 3)
    case .customerHeartbeats, .customerRenewals:
      policy.opening = .customer
      policy.needsToken = false
      policy.resetup = .never
    case .plain, .common, .loader:
      policy.hasSSM = false
      policy.needsToken = false
    case .heartbeats, .renewals, .widevine, .mapped, .hooked: break
    }
    return policy
  }

  private func endpoint(_ path: String, _ route: Route) -> Endpoint {
    let letter = String(decoding: [route.rawValue], as: UTF8.self)
    return Endpoint(
      url: Array("https://head-end.example/\(path)?x=\(letter)".utf8) + [0], origin: Array("shead-end".utf8),
      isLoopback: false)
  }

  private func delegate(_ kind: Kind, _ engine: Engine) -> LicenseDelegate {
    var endpoints = LicenseDelegate.Endpoints(
      license: endpoint("licence", .license), licenseRenewal: endpoint("licence", .renewal))
    if kind.hasServerSession {
      endpoints.setup = endpoint("setup", .setup)
      endpoints.heartbeat = endpoint("heartbeat", .heartbeat)
      endpoints.teardown = endpoint("teardown", .teardown)
      endpoints.widevineRenewal = endpoint("renewal", .widevineRenewal)
    }
    let map = kind == .mapped ? engine.newTokenStore(bound: 4, timeToLive: 3_600_000, seed: story.seed) : nil
    let delegate = LicenseDelegate(
      policy: policy(kind), endpoints: endpoints,
      certificates: CertificateSource(endpoint("certificate", .certificate)), setupBody: Array("{}".utf8),
      keepAliveBody: Array("{}".utf8), tokenMap: map)
    if kind.isCustomer { delegate.customer = customer(kind) }
    return delegate
  }

  private func customer(_ kind: Kind) -> CustomerCallbacks {
    CustomerCallbacks(
      license: { [weak self] ask, question, host in self?.customerLicence(ask, question, host, kind) },
      heartbeat: { [weak self] ask, host in self?.customerCall(ask, host, isTeardown: false) },
      teardown: { [weak self] ask, host in self?.customerCall(ask, host, isTeardown: true) })
  }

  private func hooks(_ kind: Kind) -> DelegateHooks {
    var hooks = DelegateHooks()
    let hook: DelegateHooks.Hook = { [weak self] ask, question, host in self?.hookAsked(ask, question, host) }
    hooks.headers = hook
    hooks.licenseURL = hook
    hooks.licenseBody = hook
    hooks.license = hook
    hooks.certificate = hook
    hooks.contentID = hook
    return hooks
  }

  private func loader(_ route: ResourceLoader.Route) -> ResourceLoader {
    var options = ResourceLoader.Options()
    options.route = route
    if route == .keyServer { options.keyServer = endpoint("key", .key) }
    if route == .entitlement { options.entitlementServer = endpoint("entitlement", .entitlement) }
    Array("keys.example".utf8).withUnsafeBufferPointer { _ = options.allowed.add($0) }
    let certificates = CertificateSource(endpoint("certificate", .certificate))
    let callbacks = ResourceLoader.Callbacks { [weak self] ask, _, host in self?.payloadAsked(ask, host) }
    return ResourceLoader(options, certificates: certificates, callbacks: callbacks)
  }
}
