internal import CGuard
internal import CPlatform

/// The file of a journal. Each context opens the file with its own descriptor. `journal.h` describes the pages.
final class JournalFile {
  let descriptor: Int32
  let inode: UInt64
  let bornAt: Int64

  enum Opening {
    case file(JournalFile)
    /// The file cannot be used, for this reason.
    case refused(String)
  }

  /// Opens the file, or makes it.
  /// - Parameter path: NUL-terminated.
  static func open(_ path: [UInt8]) -> Opening {
    let descriptor = path.withUnsafeBytes {
      platform_private_file_open($0.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
    var (inode, bornAt): (UInt64, Int64) = (0, 0)
    guard descriptor >= 0 else { return .refused(reason("the journal cannot be opened", descriptor)) }
    let fault = platform_file_identity(descriptor, &inode, &bornAt)
    guard fault == 0 else {
      platform_fd_close(descriptor)
      return .refused(reason("the journal cannot be opened", fault))
    }
    return .file(JournalFile(descriptor, inode, bornAt))
  }

  private init(_ descriptor: Int32, _ inode: UInt64, _ bornAt: Int64) {
    self.descriptor = descriptor
    self.inode = inode
    self.bornAt = bornAt
    ForkedDescriptors.add(descriptor)
  }

  deinit {
    ForkedDescriptors.remove(descriptor)
    platform_fd_close(descriptor)
  }

  /// Returns a text such as "the journal cannot be opened: Permission denied".
  static func reason(_ what: StaticString, _ fault: Int32) -> String {
    var line = LogLine(what)
    line.add(": ")
    switch fault {
    case PLATFORM_FILE_NOT_REGULAR: line.add("not a regular file")
    case PLATFORM_FILE_OF_ANOTHER_USER: line.add("the file belongs to another user")
    case PLATFORM_FILE_OPEN_TO_OTHERS: line.add("other users may read or write the file; set its mode to 0600")
    case PLATFORM_FILE_HAS_OTHER_NAMES: line.add("the file has other names (hard links), or was removed")
    default: line.add(String(cString: platform_error_text(-fault)))
    }
    return line.text()
  }

  // MARK: Pages

  static var pageCount: Int { Int(USHER_JOURNAL_PAGES) }
  static var slotCount: Int { Int(USHER_JOURNAL_SLOTS) }
  static var copySize: Int { Int(USHER_JOURNAL_COPY_SIZE) }
  static var updateSize: Int { Int(USHER_JOURNAL_UPDATE_SIZE) }
  static var pageSize: Int { Int(USHER_JOURNAL_HEADER_SIZE) + 2 * slotCount * (copySize + updateSize) }
  /// The number of the first copy for updates; the copies before it are for records.
  static var firstUpdate: Int { 2 * slotCount }
  static var copyCount: Int { 4 * slotCount }

  /// How many bytes a copy takes.
  static func size(_ copy: Int) -> Int { copy < firstUpdate ? copySize : updateSize }

  private func offset(_ page: Int) -> Int64 { Int64(page &* Self.pageSize) }
  private func offset(_ page: Int, copy: Int) -> Int64 {
    let copies = min(copy, Self.firstUpdate) &* Self.copySize
    let updates = max(0, copy &- Self.firstUpdate) &* Self.updateSize
    return offset(page) &+ Int64(Int(USHER_JOURNAL_HEADER_SIZE) &+ copies &+ updates)
  }

  /// How many pages the file has; the last one may be incomplete.
  var usedPages: Int {
    let size = max(0, Int(clamping: platform_file_size(descriptor)))
    return min((size &+ Self.pageSize &- 1) / Self.pageSize, Self.pageCount)
  }

  /// Whether the file has all bytes of the page.
  func isWhole(_ page: Int) -> Bool { platform_file_size(descriptor) >= offset(page &+ 1) }

  /// Returns 0 if this object has the lock of the page now, -EAGAIN if another context has it.
  func lock(_ page: Int) -> Int32 { platform_file_lock(descriptor, offset(page), 1) }
  func unlock(_ page: Int) { _ = platform_file_lock(descriptor, offset(page), 0) }

  /// Reserves the space of a page on the disk.
  func reserve(_ page: Int) -> Int32 { platform_file_reserve(descriptor, offset(page), Int64(Self.pageSize)) }

  /// Reads the header of a page. The bytes that the file does not have are 0.
  func readHeader(_ page: Int) -> usher_journal_header {
    var header = usher_journal_header()
    _ = withUnsafeMutableBytes(of: &header) { platform_file_read(descriptor, $0.baseAddress, $0.count, offset(page)) }
    return header
  }

  func writeHeader(_ header: usher_journal_header, _ page: Int) -> Int32 {
    withUnsafeBytes(of: header) { platform_file_write(descriptor, $0.baseAddress, $0.count, offset(page)) }
  }

  /// Reads a copy into `target`, which has `size(copy)` bytes. The bytes that the file does not have are 0.
  func read(_ page: Int, copy: Int, into target: UnsafeMutableRawBufferPointer) {
    target.initializeMemory(as: UInt8.self, repeating: 0)
    _ = platform_file_read(descriptor, target.baseAddress, target.count, offset(page, copy: copy))
  }

  func write(_ bytes: UnsafeRawBufferPointer, _ page: Int, copy: Int) -> Int32 {
    platform_file_write(descriptor, bytes.baseAddress, bytes.count, offset(page, copy: copy))
  }

  /// Overwrites the first `count` bytes of a copy with zeros; nil: the whole copy.
  func wipe(_ page: Int, copy: Int, count: Int? = nil) -> Int32 {
    [UInt8](repeating: 0, count: count ?? Self.size(copy)).withUnsafeBytes { write($0, page, copy: copy) }
  }
}

/// The descriptors of the journals. A child of fork() closes these descriptors: the lock of a page would otherwise stay
/// after the death of the host, as long as the child lives.
package enum ForkedDescriptors {
  private static var most: Int { 256 }
  nonisolated(unsafe) private static let monitor = Monitor()
  /// -1: the place is free.
  nonisolated(unsafe) private static let places: UnsafeMutablePointer<Int32> = {
    let places = UnsafeMutablePointer<Int32>.allocate(capacity: most)
    places.initialize(repeating: -1, count: most)
    return places
  }()

  /// Makes the table. Call it before the process forks, because the child of a fork must not allocate memory.
  package static func prepare() { _ = places }

  static func add(_ descriptor: Int32) { replace(-1, by: descriptor) }
  static func remove(_ descriptor: Int32) { replace(descriptor, by: -1) }

  private static func replace(_ old: Int32, by new: Int32) {
    monitor.locked {
      for index in 0..<most where places[index] == old {
        places[index] = new
        return
      }
    }
  }

  /// Called in the child only, where no other thread runs.
  package static func closeAll() { for index in 0..<most { platform_fd_close(places[index]) } }
}
