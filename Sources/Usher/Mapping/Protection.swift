internal import CUsher
internal import UsherCore
internal import UsherEngine

/// One way in which content is protected, read from any of the formats that the library knows.
struct Protection {
  private var system: UUIDBytes?
  private var keySystem: KeySystem?
  private var keyIDs: [UInt8] = []
  private var contentID: [UInt8] = []
  private var initData: [UInt8] = []
  private var uri: [UInt8] = []
  private var iv: [UInt8] = []
  /// NUL-terminated.
  private var scheme: [UInt8] = []
  private var cryptBlocks: UInt32 = 0
  private var skipBlocks: UInt32 = 0
  private var isSession = false
  private var part = USHER_PART_ELEMENT
  private var trackID: UInt32 = 0

  private init() {}

  /// Describes the whole file.
  private init(_ file: FileProtection) {
    self.init()
    if let first = file.tracks.first { self = Protection(first) }
    part = USHER_PART_FILE
    trackID = 0
    iv = []
    keyIDs = file.keyIDs.joined
    for box in file.pssh {
      initData += box.box
      if contentID.isEmpty { contentID = box.contentIdentifier ?? [] }
    }
  }

  @inline(never)
  private init(_ track: FileProtection.Track) {
    self.init()
    iv = track.encryption?.constantIV ?? []
    cryptBlocks = UInt32(track.encryption?.cryptBlocks ?? 0)
    skipBlocks = UInt32(track.encryption?.skipBlocks ?? 0)
    part = USHER_PART_TRACK
    trackID = track.id
    keyIDs = track.keyIDs.joined
    if let four = track.scheme { scheme = Protection.text(four) }
  }

  /// Passes the parts of a file to `fn`: first the whole file, then its tracks, then its `pssh` boxes.
  static func pass(_ file: FileProtection, to fn: usher_protection_fn, _ user: UnsafeMutableRawPointer?) {
    Protection(file).pass(to: fn, user)
    for track in file.tracks { Protection(track).pass(to: fn, user) }
    for box in file.pssh {
      var part = Protection(box)
      part.part = USHER_PART_PSSH
      part.pass(to: fn, user)
    }
  }

  @inline(never)
  init(_ pssh: PSSH) {
    system = pssh.systemID
    keySystem = pssh.keySystem
    keyIDs = pssh.keyIDs.joined
    contentID = pssh.contentIdentifier ?? []
    initData = pssh.box
    if keySystem == .playReady { uri = pssh.data.withUnsafeBufferPointer { PlayReadyHeader($0) }?.licenseURL ?? [] }
    if keySystem == .widevine, let four = pssh.widevine.protectionScheme { scheme = Protection.text(four) }
  }

  init(_ track: TrackEncryption) {
    keyIDs = track.isProtected ? track.defaultKeyID.bytes : []
    iv = track.constantIV
    if let four = track.scheme { scheme = Protection.text(four) }
    cryptBlocks = UInt32(track.cryptBlocks)
    skipBlocks = UInt32(track.skipBlocks)
  }

  init(_ key: HLSKey) {
    keySystem = key.keySystem
    system = keySystem?.uuid
    let asset = Protection.asset(key)
    let ids = key.keyIDs
    keyIDs = (ids.isEmpty ? asset?.keyID.map { [$0] } ?? [] : ids).joined
    contentID = key.pssh.first?.contentIdentifier ?? asset?.contentIdentifier ?? []
    initData = key.pssh.flatMap { $0.box }
    uri = key.method == .none ? [] : key.uri
    iv = key.iv ?? []
    switch key.method {
    case .none, .other: break
    case .aes128: scheme = Array("aes1".utf8) + [0]
    case .sampleAES: scheme = Array("cbcs".utf8) + [0]
    case .sampleAESCTR: scheme = Array("cenc".utf8) + [0]
    }
    isSession = key.isSession
  }

  private static func asset(_ key: HLSKey) -> Asset? {
    guard let url = key.assetURL() else { return nil }
    return url.withUnsafeBufferPointer { text -> Asset? in (try? AssetID(text))?.read() }
  }

  init(_ element: ContentProtection) {
    keySystem = element.keySystem
    system = element.systemID
    keyIDs = element.keyIDs.joined
    contentID = element.pssh.first?.contentIdentifier ?? []
    initData = element.pssh.flatMap { $0.box }
    uri = element.licenseURL.isEmpty ? element.playReady?.licenseURL ?? [] : element.licenseURL
    if element.isCommon, element.value.count == 4 { scheme = element.value + [0] }
  }

  @inline(never)
  private static func text(_ four: UInt32) -> [UInt8] {
    var text: [UInt8] = []
    for shift in [24, 16, 8, 0] as [UInt32] { text.append(UInt8(truncatingIfNeeded: four >> shift)) }
    text.append(0)
    return text
  }

  /// Calls `fn` with the C form, whose pointers live until `fn` returns.
  @inline(never)
  func pass(to fn: usher_protection_fn, _ user: UnsafeMutableRawPointer?) {
    // Copy all parts into one block, so that one closure is enough to get pointers to all of them.
    let parts = [system?.bytes ?? [], keyIDs, contentID, initData, uri, iv, scheme]
    let all = parts.flatMap { $0 }
    all.withUnsafeBufferPointer { block in
      var offset = 0
      func next(_ index: Int) -> UnsafePointer<UInt8>? {
        defer { offset += parts[index].count }
        return parts[index].isEmpty ? nil : block.baseAddress.map { $0 + offset }
      }
      var form = usher_protection()
      form.struct_size = MemoryLayout<usher_protection>.size
      form.key_system = keySystem.map { UnsafeRawPointer($0.identifier.utf8Start).assumingMemoryBound(to: CChar.self) }
      form.system_id = next(0)
      form.key_ids = next(1)
      form.key_id_count = keyIDs.count / 16
      form.content_id = next(2)
      form.content_id_size = contentID.count
      form.init_data = next(3)
      form.init_data_size = initData.count
      form.uri = next(4)
      form.uri_size = uri.count
      form.iv = next(5)
      form.iv_size = iv.count
      form.scheme = next(6).map { UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self) }
      form.crypt_blocks = cryptBlocks
      form.skip_blocks = skipBlocks
      form.is_session = isSession ? 1 : 0
      form.part = part
      form.track_id = trackID
      fn(&form, user)
    }
  }
}
