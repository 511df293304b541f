internal import CCurl

/// Initialises libcurl once per process. libcurl counts its initialisations, so a host may initialise it too.
private let isCurlReady: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

/// Returns false if libcurl could not be initialised.
package func ensureCurl() -> Bool { isCurlReady }
