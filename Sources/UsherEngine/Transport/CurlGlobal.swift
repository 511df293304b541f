internal import CCurl
internal import CPlatform
internal import Synchronization
package import UsherCore

nonisolated(unsafe) private let curlMonitor = Monitor()
/// Whether libcurl is initialised; the lock `curlMonitor` guards this variable. libcurl counts its initialisations, so
/// a host may initialise it too.
nonisolated(unsafe) private var isCurlReady = false

/// Initialises libcurl with memory functions that wipe what they free, once per process.
private let isCurlWiping: Bool = curl_shim_wipe_freed_memory() != 0

/// Initialises libcurl once per process. If the initialisation fails, the next call tries again.
/// - Parameter wiping: whether libcurl and OpenSSL must wipe the memory that they free.
package func ensureCurl(wiping: Bool) throws(UsherError) {
  if wiping, !isCurlWiping { throw UsherError(.state) }
  let isReady = curlMonitor.locked {
    if !isCurlReady {
      CurlUsers.process = platform_process_id()
      curl_shim_keep_openssl_at_exit()
      isCurlReady =
        curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
        && curl_shim_before_openssl_ends({ CurlUsers.refuseAll() }) != 0
    }
    return isCurlReady
  }
  if !isReady { throw UsherError(.system) }
}

/// Counts the threads that use libcurl or OpenSSL now. OpenSSL may free its memory at the exit of the process. Before
/// OpenSSL does so, the library waits until no thread uses OpenSSL; from then on no thread may use libcurl. (The
/// library asks OpenSSL to keep its memory at exit. But the host may have initialised OpenSSL before, or may free the
/// memory itself.)
enum CurlUsers {
  private static var refusal: Int { 1 << 32 }
  private static let state = Atomic<Int>(0)
  /// The process that initialised libcurl.
  nonisolated(unsafe) fileprivate static var process: Int32 = 0

  /// Called when the calling thread begins to use libcurl. Returns false if the thread must not use libcurl; then the
  /// thread must not call `leave` either.
  static func enter() -> Bool {
    if state.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue < refusal { return true }
    leave()
    return false
  }

  /// Called when the calling thread stops using libcurl, until it calls `enter` again.
  static func leave() { _ = state.wrappingSubtract(1, ordering: .sequentiallyConsistent) }

  /// Refuses every thread that calls `enter` from now on, and waits until the threads that use libcurl now have called
  /// `leave`. These threads need at most some milliseconds; the wait has a limit, so that a broken thread cannot stop
  /// the exit of the process.
  fileprivate static func refuseAll() {
    // In a child of fork() the threads that used libcurl do not exist, so do not wait for them.
    guard platform_process_id() == process else { return }
    _ = state.bitwiseOr(refusal, ordering: .sequentiallyConsistent)
    for _ in 0..<1000 where state.load(ordering: .sequentiallyConsistent) & (refusal - 1) != 0 { platform_sleep_ms(1) }
  }
}
