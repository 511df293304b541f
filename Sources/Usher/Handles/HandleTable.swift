internal import CPlatform
internal import CUsher
internal import Synchronization
internal import UsherCore
internal import UsherEngine

/// The object behind a handle.
class HandleObject {
  /// Returns whether the handle becomes stale when `context` is freed.
  func ends(with context: ContextObject) -> Bool { false }
  /// The engine that tells the host why a function refuses a call with this handle.
  var teller: Engine? { nil }
}

/// The table of all handles in the process. A handle has an index and a generation, by which the table recognises stale
/// handles; the library never dereferences a handle.
final class HandleTable {
  private struct Slot {
    var generation: UInt32
    var object: HandleObject?
  }
  private let monitor = Monitor()
  private var slots: [Slot] = []
  private var free: [UInt32] = []

  /// Adds an object and returns its handle; never 0.
  func give(_ object: HandleObject) -> UInt {
    monitor.locked {
      if let index = free.popLast() {
        slots[Int(index)].object = object
        return handle(index)
      }
      slots.append(Slot(generation: 1, object: object))
      return handle(UInt32(slots.count - 1))
    }
  }

  func find(_ handle: UInt) -> HandleObject? {
    monitor.locked { slot(handle).flatMap { slots[$0].object } }
  }

  /// Removes an object from the table; its handle is stale from then on.
  func release(_ handle: UInt) -> HandleObject? {
    monitor.locked {
      guard let index = slot(handle), let object = slots[index].object else { return nil }
      clear(index)
      return object
    }
  }

  /// Removes all objects whose handles become invalid when the host frees `context`.
  func releaseAll(with context: ContextObject) {
    let ended = monitor.locked { () -> [HandleObject] in
      slots.indices.compactMap { index in
        guard let object = slots[index].object, object.ends(with: context) else { return nil }
        clear(index)
        return object
      }
    }
    // Release the objects here, without the lock, because their release may call the host's code.
    withExtendedLifetime(ended) {}
  }

  private func clear(_ index: Int) {
    slots[index].object = nil
    slots[index].generation &+= 1
    if slots[index].generation == 0 { slots[index].generation = 1 }
    free.append(UInt32(index))
  }

  private func handle(_ index: UInt32) -> UInt { UInt(slots[Int(index)].generation) << 32 | UInt(index) << 3 | 5 }

  private func slot(_ handle: UInt) -> Int? {
    guard handle & 7 == 5 else { return nil }
    let index = Int((handle & 0xFFFF_FFFF) >> 3)
    guard index < slots.count, UInt(slots[index].generation) == handle >> 32 else { return nil }
    return index
  }
}

nonisolated(unsafe) let handles = HandleTable()

/// Whether this process is a child of fork(), where the state of locks and threads is unknown.
private let isForked = Atomic<Bool>(false)

/// Registers the fork handler, once per process, before the first context is made.
private let forkGuard: Int32 = {
  ForkedDescriptors.prepare()
  return platform_at_fork_child {
    isForked.store(true, ordering: .releasing)
    ForkedDescriptors.closeAll()
  }
}()

/// Returns false if the system had no memory for the handler.
func guardAgainstFork() -> Bool { forkGuard == 0 }

func isForkedProcess() -> Bool { isForked.load(ordering: .acquiring) }

/// Runs the body of an exported function, and returns the status of the error that the body throws. If the exported
/// function refuses the call, `report` tells the host why.
/// - Parameters:
///   - handle: the handle that the host passed; nil: the exported function takes none.
///   - destroy: the host's function that frees `user`; nil: the exported function takes none. Usually the body calls
///     this function, or stores it for a later call. In a child of fork() the body does not run, so `report` itself
///     calls the function there.
@inline(never)
func report(
  _ handle: OpaquePointer? = nil, owing destroy: usher_destroy_fn? = nil, _ user: UnsafeMutableRawPointer? = nil,
  _ body: () throws(UsherError) -> Void
) -> Int32 {
  if isForkedProcess() {
    destroy?(user)
    return Status.forked.rawValue
  }
  let cancellation = platform_cancel_off()
  defer { platform_cancel_restore(cancellation) }
  do {
    try body()
    return Status.ok.rawValue
  } catch {
    return status(of: error, refusing: handle)
  }
}

/// Returns the object of a handle. Throws if the handle is stale or of another kind.
func borrow<Object: HandleObject>(_ handle: OpaquePointer?, as kind: Object.Type) throws(UsherError) -> Object {
  guard let object = handles.find(UInt(bitPattern: handle)) as? Object else { throw UsherError(.invalidHandle) }
  return object
}

/// Removes a handle from the table and returns its object; nil for NULL. Throws if the handle is stale or of another
/// kind.
func release<Object: HandleObject>(_ handle: OpaquePointer?, as kind: Object.Type) throws(UsherError) -> Object? {
  guard let handle else { return nil }
  let value = UInt(bitPattern: handle)
  guard handles.find(value) is Object, let object = handles.release(value) as? Object else {
    throw UsherError(.invalidHandle)
  }
  return object
}

/// Throws if the calling thread is inside a callback.
func refuseInCallbacks() throws(UsherError) {
  if isCallbackThread() { throw UsherError(.wouldDeadlock) }
}

/// Returns whether the calling thread must not wait, because it would wait for its own work: it is inside a callback,
/// or it is the pumping thread.
func mustNotWait(_ engine: Engine) -> Bool { isCallbackThread() || engine.calls.pump?.isPumpingThread == true }

func refuseToWait(_ engine: Engine) throws(UsherError) {
  if mustNotWait(engine) { throw UsherError(.wouldDeadlock) }
}
