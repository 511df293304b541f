internal import CCurl
package import UsherCore

nonisolated(unsafe) private let curlMonitor = Monitor()
/// Under `curlMonitor`: whether libcurl is initialised. libcurl counts its initialisations, so a host may initialise it
/// too.
nonisolated(unsafe) private var isCurlReady = false

/// Initialises libcurl with memory functions that wipe what they free, once per process.
private let isCurlWiping: Bool = curl_shim_wipe_freed_memory() != 0

/// Initialises libcurl once per process. An initialisation that failed is tried again at the next call.
/// - Parameter wiping: whether libcurl and OpenSSL must wipe the memory that they free.
package func ensureCurl(wiping: Bool) throws(UsherError) {
  if wiping, !isCurlWiping { throw UsherError(.state) }
  let isReady = curlMonitor.locked {
    if !isCurlReady { isCurlReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK }
    return isCurlReady
  }
  if !isReady { throw UsherError(.system) }
}
