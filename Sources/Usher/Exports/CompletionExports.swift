public import CUsher
internal import UsherCore
internal import UsherEngine

// Answers of the host to the library's questions.

/// Implements `usher_complete_token`; contract in `include/usher/delegate.h`.
@_cdecl("usher_complete_token") @implementation
public func usher_complete_token(_ completion: usher_completion, _ text: UnsafePointer<CChar>!) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in try answer(completion, [.token], with: token(text, "token"))
  }
}

/// Implements `usher_complete_payload`; contract in `include/usher/player.h`.
@_cdecl("usher_complete_payload") @implementation
public func usher_complete_payload(_ completion: usher_completion, _ bytes: UnsafePointer<UInt8>!, _ size: Int) -> Int32
{
  report(handle(of: completion)) { () throws(UsherError) in
    try answer(completion, [.payload, .spc], with: bytes == nil ? nil : payload(bytes, size, "bytes"))
  }
}

/// Implements `usher_complete_hook`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_hook") @implementation
public func usher_complete_hook(_ completion: usher_completion, _ bytes: UnsafePointer<UInt8>!, _ size: Int) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion)
    guard case .hook(let kind) = ask.kind, kind != .headers else { throw UsherError(.invalidCompletion) }
    let value = bytes == nil ? nil : try payload(bytes, size, "bytes")
    if kind == .licenseURL, let value {
      guard let text = value.withBytes({ URLText(Array($0)) }),
        try Endpoint.checked(text, insecure: ask.engine.options.allowsInsecureHTTP) != nil
      else {
        throw refused("bytes: not a URL that the context allows")
      }
    }
    guard ask.answer(value) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_complete_headers`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_headers") @implementation
public func usher_complete_headers(_ completion: usher_completion, _ headers: UnsafePointer<CChar>!) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.kind == .hook(.headers) else { throw UsherError(.invalidCompletion) }
    _ = try headerLines(headers, "headers")
    guard ask.answer(try secretText(headers, "headers")) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_complete_server`; contract in `include/usher/loader.h`.
@_cdecl("usher_complete_server") @implementation
public func usher_complete_server(
  _ completion: usher_completion, _ url: UnsafePointer<CChar>!, _ headers: UnsafePointer<CChar>!
) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion, .server)
    let lines = try headerLines(headers, "headers")
    let server = try optionalEndpoint(url, ask.engine.options.allowsInsecureHTTP, "url")
    try reply(ask, server.map { .server(.keyServer($0, headers: lines)) } ?? .none)
  }
}

/// Implements `usher_complete_entitlement`; contract in `include/usher/loader.h`.
@_cdecl("usher_complete_entitlement") @implementation
public func usher_complete_entitlement(
  _ completion: usher_completion, _ entitlement: UnsafePointer<usher_entitlement>!
) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion, .server)
    let given = entitlement == nil ? usher_entitlement() : try options(entitlement)
    guard let kind = UInt8(exactly: given.token_kind), kind == 0 || SEESRequest.Kind(rawValue: kind) != nil else {
      throw refused("token_kind", isUnknown)
    }
    let wanted = ResourceLoader.Entitlement(
      server: try optionalEndpoint(given.url, ask.engine.options.allowsInsecureHTTP, "url"),
      content: given.content_id == nil && given.content_id_size == 0
        ? nil : try neededIdentifier(given.content_id, given.content_id_size, "content_id"),
      kind: SEESRequest.Kind(rawValue: kind))
    try reply(ask, .server(.entitlement(wanted)))
  }
}

/// Implements `usher_complete_builtin`; contract in `include/usher/hooks.h`.
@_cdecl("usher_complete_builtin") @implementation
public func usher_complete_builtin(_ completion: usher_completion) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.question != nil || ask.kind == .server, ask.reply(.builtin) else { throw UsherError(.invalidCompletion) }
  }
}

/// Implements `usher_hook_builtin`; contract in `include/usher/hooks.h`.
@_cdecl("usher_hook_builtin") @implementation
public func usher_hook_builtin(_ completion: usher_completion, _ out: UnsafeMutablePointer<OpaquePointer?>!) -> Int32 {
  out?.pointee = nil
  return report(handle(of: completion)) { () throws(UsherError) in
    guard let out else { throw refused("out", isMissing) }
    let ask = try question(completion)
    guard let asked = ask.question, ask.isOpen else { throw UsherError(.invalidCompletion) }
    let answer: RequestResult
    switch asked.builtin() {
    case .value(let value):
      answer = RequestResult(
        data: value, period: 0, renewType: .none, isRenewal: asked.isRenewal, error: UsherError(.ok))
    case .failed(let error):
      answer = RequestResult(data: nil, period: 0, renewType: .none, isRenewal: asked.isRenewal, error: error)
    }
    out.pointee = OpaquePointer(bitPattern: handles.give(ResponseObject(context: nil, answer: answer)))
    if answer.error.status != .ok { throw answer.error }
  }
}

/// Implements `usher_complete_license`; contract in `include/usher/customer.h`.
@_cdecl("usher_complete_license") @implementation
public func usher_complete_license(
  _ completion: usher_completion, _ license: UnsafePointer<usher_customer_license>!
) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.kind == .customerLicense else { throw UsherError(.invalidCompletion) }
    let reply: HostAnswer = license == nil ? .none : try customerReply(try options(license))
    guard ask.reply(reply) else { throw UsherError(.invalidCompletion) }
  }
}

private func customerReply(_ given: usher_customer_license) throws(UsherError) -> HostAnswer {
  guard given.license != nil || given.license_size != 0 else {
    let words = try secretText(given.message, "message")
    guard (words?.count ?? 0) <= 1000 else { throw refused("message: too long") }
    let status: Status = given.service_code != 0 ? .refused : (given.http_status > 0 ? .http : .callback)
    var failure = WireFailure(
      status, httpStatus: given.http_status > 0 ? given.http_status : -1, serviceCode: given.service_code)
    switch given.origin {
    case USHER_ORIGIN_LOCAL: if status == .callback { failure.origin = .local }
    case USHER_ORIGIN_SSM: failure.origin = .ssm
    case USHER_ORIGIN_LICENSE: failure.origin = .license
    default: throw refused("origin", ": not LOCAL, SSM or LICENSE")
    }
    return .failed(failure, words: words)
  }
  guard given.heartbeat_s >= 0, given.heartbeat_s <= 1e9 else { throw refused("heartbeat_s: out of range") }
  let isEnforced: Bool?
  switch given.renew_type {
  case USHER_RENEW_DEFAULT, USHER_RENEW_ENFORCED: isEnforced = true
  case USHER_RENEW_HEARTBEAT: isEnforced = false
  case USHER_RENEW_NONE: isEnforced = nil
  default: throw refused("renew_type", isUnknown)
  }
  let data = try payload(given.license, given.license_size, "license")
  return .license(CustomerLicense(data: data, period: given.heartbeat_s, isEnforced: isEnforced))
}

/// Implements `usher_complete_call`; contract in `include/usher/customer.h`.
@_cdecl("usher_complete_call") @implementation
public func usher_complete_call(_ completion: usher_completion, _ status: Int32) -> Int32 {
  report(handle(of: completion)) { () throws(UsherError) in
    let ask = try question(completion)
    guard ask.kind == .customerCall else { throw UsherError(.invalidCompletion) }
    guard let status = Status(rawValue: status) else { throw refused("status", isUnknown) }
    guard ask.reply(status == .ok ? .value(Secret([])) : .failed(customerCallFailure(status), words: nil)) else {
      throw UsherError(.invalidCompletion)
    }
  }
}

/// Returns the question that has this completion id.
func question(_ completion: usher_completion) throws(UsherError) -> HostQuestion {
  guard let object = handles.find(UInt(completion)) as? CompletionObject else { throw UsherError(.invalidCompletion) }
  return object.ask
}

/// Returns the question that has this completion id, if it is of this kind.
private func question(_ completion: usher_completion, _ kind: HostQuestion.Kind) throws(UsherError) -> HostQuestion {
  let ask = try question(completion)
  guard ask.kind == kind else { throw UsherError(.invalidCompletion) }
  return ask
}

private func reply(_ ask: HostQuestion, _ answer: HostAnswer) throws(UsherError) {
  guard ask.reply(answer) else { throw UsherError(.invalidCompletion) }
}

/// Answers a question if its kind is one of `kinds`.
private func answer(
  _ completion: usher_completion, _ kinds: [HostQuestion.Kind], with value: Secret?
) throws(UsherError) {
  let ask = try question(completion)
  guard kinds.contains(ask.kind), ask.answer(value) else { throw UsherError(.invalidCompletion) }
}
