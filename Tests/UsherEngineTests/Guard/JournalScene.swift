import CGuard
import CPlatform
import Glibc

@testable import UsherCore
@testable import UsherEngine

/// A journal file in its own folder, and methods that use the file as contexts of the library do.
final class JournalScene {
  let folder: String
  var path: String { folder + "/journal" }
  let key: Secret?
  static let someKey = Secret((0..<32).map { UInt8($0) })

  init(key: Secret? = nil) {
    var name = Array("/tmp/usher-journal-XXXXXX\0".utf8CString)
    folder = mkdtemp(&name).map { String(cString: $0) } ?? "/nowhere"
    self.key = key
  }

  deinit {
    for name in ["journal", "copy", "moved"] {
      if rmdir("\(folder)/\(name)") != 0 { unlink("\(folder)/\(name)") }
    }
    rmdir(folder)
  }

  func open(at moment: MachineMoment = .now(), key: Secret? = nil) -> Journal {
    Journal(JournalOptions(path: Array(path.utf8) + [0], key: key ?? self.key, setupDelayMax: 3000), at: moment)
  }

  func record(_ token: String, lifetime: Milliseconds = 120_000, body: String = "{}") -> RecoveryRecord {
    RecoveryRecord(
      request: HTTPRequest(
        method: .post, endpoint: endpoint("teardown"), headers: [Secret(Array("t: \(token)\0".utf8))],
        body: Secret(Array(body.utf8)), isUrgent: true, tokens: []),
      token: secret(token), addresses: Array("head-end:443:192.0.2.1\0".utf8),
      cookies: [secret("h\tFALSE\t/\tTRUE\t0\tlb\tserver-7\0")],
      lifetime: lifetime, timeout: 1000, retries: 3)
  }

  /// Plays a context that dies while it holds one session. `tokens` are the tokens that this session had, in order.
  func die(with tokens: String...) {
    let journal = open()
    for token in tokens { _ = journal.keep(record(token), of: 7) }
    journal.end()
  }

  /// As `die(with:)`, but the library writes only the first token with a whole record, and each of the other tokens
  /// with an update, which changes only the token of the record.
  func die(with first: String, updated others: String...) {
    let journal = open()
    _ = journal.keep(record(first), of: 7)
    for token in others { _ = journal.update(7, token: secret(token), lifetime: 120_000) }
    journal.end()
  }

  /// Opens the journal as the next context does. Returns the header lines that have the tokens, and the faults.
  func found(at moment: MachineMoment = .now(), key: Secret? = nil) -> (tokens: [String], faults: String) {
    let journal = open(at: moment, key: key)
    defer { journal.end() }
    return (journal.left.compactMap { token($0) }, journal.faults)
  }

  func token(_ record: LeftSession) -> String? {
    guard
      let request = try? LeftSession.request(record.record, insecure: false, sendsCookies: false),
      let line = request.headers.first
    else { return nil }
    return line.withBytes { String(decoding: $0.dropLast(), as: UTF8.self) }
  }

  /// Runs `body` while every write to the file fails, because its open descriptor leads to /dev/full.
  func whileTheDiskIsFull(_ body: () -> Void) {
    var place = stat()
    stat(path, &place)
    let inode = place.st_ino
    let found = (0..<1024).first { (descriptor: Int32) in
      fstat(descriptor, &place) == 0 && place.st_ino == inode && place.st_mode & S_IFMT == S_IFREG
    }
    guard let found else { return }
    let saved = dup(found)
    let full = Glibc.open("/dev/full", O_WRONLY)
    dup2(full, found)
    body()
    dup2(saved, found)
    Glibc.close(saved)
    Glibc.close(full)
  }

  // MARK: The bytes of the file

  /// The bytes of a file: `start`, and after it only zeros, up to `size` bytes.
  struct Image: Equatable {
    var start: [UInt8]
    var size: Int
  }

  var image: Image {
    get {
      let file = Glibc.open(path, O_RDONLY)
      defer { Glibc.close(file) }
      let size = max(0, Int(lseek(file, 0, SEEK_END)))
      var all = [UInt8](repeating: 0, count: size)
      pread(file, &all, size, 0)
      // Looks for the last byte that is not 0, 64 bytes at a time. Single bytes would take a debug build long.
      var used = size
      all.withUnsafeBytes { bytes in
        while used > 0, platform_is_zero(bytes.baseAddress.map { $0 + max(0, used - 64) }, min(64, used)) != 0 {
          used = max(0, used - 64)
        }
      }
      return Image(start: Array(all[..<used]), size: size)
    }
    // Writes into the existing file. A new file would have another inode, and the library would refuse it as a copy.
    set {
      let file = Glibc.open(path, O_RDWR)
      defer { Glibc.close(file) }
      ftruncate(file, 0)
      pwrite(file, newValue.start, min(newValue.start.count, newValue.size), 0)
      ftruncate(file, off_t(newValue.size))
    }
  }

  func contains(_ text: String) -> Bool {
    image.start.withUnsafeBufferPointer { firstIndex(of: Array(text.utf8), in: $0) != nil }
  }
}
