internal import CCurl
package import UsherCore

/// Initialises libcurl once per process. libcurl counts its initialisations, so a host may initialise it too.
private let isCurlReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

/// Initialises libcurl with memory functions that wipe what they free, once per process.
private let isCurlWiping: Bool = curl_shim_wipe_freed_memory() != 0

/// - Parameter wiping: whether libcurl and OpenSSL must wipe the memory that they free.
package func ensureCurl(wiping: Bool) throws(UsherError) {
  if wiping, !isCurlWiping { throw UsherError(.state) }
  if !isCurlReady { throw UsherError(.system) }
}
