import CPlatform

private final class Body {
  let run: () -> Void
  init(_ run: @escaping () -> Void) { self.run = run }
}

private func runBody(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
  return nil
}

/// Runs `body` on a new thread.
func startThread(_ body: @escaping () -> Void) {
  var id: UInt64 = 0
  let box = Unmanaged.passRetained(Body(body))
  if platform_thread_start(runBody, box.toOpaque(), 1, &id) != 0 {
    box.release()
    body()
  }
}
