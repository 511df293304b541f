public import CUsher
internal import UsherCore
internal import UsherEngine

/// Implements `usher_response_get`; contract in `include/usher/license.h`.
@_cdecl("usher_response_get") @implementation
public func usher_response_get(_ response: OpaquePointer!, _ out: UnsafeMutablePointer<usher_response_info>!) -> Int32 {
  report(response) { () throws(UsherError) in
    let object = try borrow(response, as: ResponseObject.self)
    guard let out else { throw refused("out", isMissing) }
    let info = object.message.withUnsafeBytes { message in
      // The host may keep these pointers: the array and the secret live as long as the response, and neither moves.
      let text = message.baseAddress?.assumingMemoryBound(to: CChar.self)
      return object.answer.data?.withBytes { mapResponse(object.answer, $0, text) }
        ?? mapResponse(object.answer, nil, text)
    }
    try fill(out, info)
  }
}

/// Implements `usher_response_free`; contract in `include/usher/license.h`.
@_cdecl("usher_response_free") @implementation
public func usher_response_free(_ response: OpaquePointer!) -> Int32 {
  report(response) { () throws(UsherError) in
    _ = try release(response, as: ResponseObject.self)
  }
}
