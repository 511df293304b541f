internal import CCurl

/// Once per process; libcurl counts, and a host that did it too loses nothing.
private let isCurlReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

/// False: libcurl could not start.
package func ensureCurl() -> Bool { isCurlReady }
