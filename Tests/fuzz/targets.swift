// The entry point of the fuzz targets. The environment variable FUZZ_TARGET names the target that the process runs.
// Tests/fuzz/run starts the process.
import Glibc

typealias Bytes = UnsafeBufferPointer<UInt8>

let targets: [(name: StaticString, read: (Bytes) -> Void)] = [
  ("asset", readAsset), ("pssh", readPSSH), ("tenc", readTrackEncryption), ("mp4", readFile), ("hls", readPlaylist),
  ("dash", readManifest),
  ("url", readURL), ("text", readText), ("spc-request", writeRequests), ("token-map", useTokenMap),
  ("clearkey", readClearKeys), ("ssm", readSSMReply), ("licence", readLicence), ("custom-data", readCustomData),
  ("ckc", readCKC),
  ("certificate", readCertificate),
  ("entitlement", readEntitlement), ("expressplay", readExpressPlayError),
  ("retry-after", readRetryAfter), ("http1", readHTTP1), ("http2", readHTTP2), ("journal", readJournal)
]

private let chosen: (Bytes) -> Void = {
  let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = targets.first(where: { "\($0.name)" == name }) else {
    fatalError("FUZZ_TARGET is one of: \(targets.map { "\($0.name)" }.joined(separator: " "))")
  }
  return target.read
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func readOneInput(_ pointer: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  // Makes a copy in memory of exactly this size, so that the sanitizer notices a read beyond the end.
  let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
  if let pointer { copy.initialize(from: pointer, count: count) }
  defer { copy.deallocate() }
  chosen(Bytes(start: UnsafePointer(copy), count: count))
  return 0
}

/// Ends the process if the condition is false.
func must(_ claim: Bool, _ what: StaticString) {
  if !claim { fatalError("\(what)") }
}

/// Splits the input into the first byte, which makes choices, and the rest.
func choices(_ bytes: Bytes) -> (Int, Bytes)? { bytes.first.map { (Int($0), Bytes(rebasing: bytes[1...])) } }

func reading<R>(_ bytes: [UInt8], _ body: (Bytes) -> R) -> R { bytes.withUnsafeBufferPointer { body($0) } }
