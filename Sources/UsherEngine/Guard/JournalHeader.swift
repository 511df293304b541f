internal import CGuard
internal import CPlatform
internal import UsherCore

extension usher_journal_header {
  var boot: [UInt8] { withUnsafeBytes(of: boot_id) { Array($0) } }

  /// Sets all fields for a context that takes the page now.
  /// - Returns: false if OpenSSL fails.
  mutating func fill(
    _ page: Int, _ salt: [UInt8], _ cipher: JournalCipher, _ file: JournalFile, _ moment: MachineMoment
  ) -> Bool {
    magic = USHER_JOURNAL_MAGIC
    version = USHER_JOURNAL_VERSION
    flags = cipher.isClear ? USHER_JOURNAL_CLEAR : 0
    self.page = UInt32(truncatingIfNeeded: page)
    process = platform_process_id()
    user = moment.user
    machine = moment.machine
    inode = file.inode
    born_ns = file.bornAt
    withUnsafeMutableBytes(of: &boot_id) { $0.copyBytes(from: moment.boot) }
    withUnsafeMutableBytes(of: &self.salt) { $0.copyBytes(from: salt) }
    guard let sealed = cipher.tag(self) else { return false }
    withUnsafeMutableBytes(of: &tag) { $0.copyBytes(from: sealed) }
    checksum = usher_journal_header_checksum(&self)
    return true
  }

  /// Decides whether the records of the page may be used. Records of another machine, file or user must not be used,
  /// because the process that wrote them may still live.
  /// - Returns: the cipher that opens the records; or the reason why the records must not be used; or neither if the
  ///   page is free.
  func open(
    _ page: Int, _ key: Secret?, _ file: JournalFile, _ moment: MachineMoment
  ) -> (JournalCipher?, StaticString?) {
    var header = self
    if withUnsafeBytes(of: header, { platform_is_zero($0.baseAddress, $0.count) != 0 }) { return (nil, nil) }
    // Check the version before the checksum: another version may compute the checksum in another way.
    guard magic != USHER_JOURNAL_MAGIC || version == USHER_JOURNAL_VERSION else {
      return (nil, "another version of the library wrote them")
    }
    guard usher_journal_header_checksum(&header) == checksum, magic == USHER_JOURNAL_MAGIC else {
      return (nil, "the page is damaged, or is no page of a journal")
    }
    guard machine == moment.machine else { return (nil, "they were written on another machine") }
    guard inode == file.inode, born_ns == file.bornAt, self.page == UInt32(truncatingIfNeeded: page) else {
      return (nil, "the file is a copy of the file in which they were written")
    }
    guard user == moment.user else { return (nil, "another user wrote them") }
    let isClear = flags & USHER_JOURNAL_CLEAR != 0
    guard isClear == (key == nil) else {
      return (nil, isClear ? "they are in clear, and journal_key is set" : "they are encrypted: set journal_key")
    }
    let bytes = withUnsafeBytes(of: salt) { Array($0) }
    guard let cipher = JournalCipher.make(hostKey: key, salt: bytes), let sealed = cipher.tag(header) else {
      return (nil, "the system is short of memory")
    }
    guard withUnsafeBytes(of: tag, { $0.elementsEqual(sealed) }) else { return (nil, "journal_key is another key") }
    return (cipher, nil)
  }
}
