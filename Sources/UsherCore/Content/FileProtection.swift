/// How an MP4 file is protected.
package struct FileProtection {
  /// A track with at least one encrypted sample entry.
  package final class Track {
    /// The number of the track in its `tkhd` box.
    package internal(set) var id: UInt32 = 0
    /// The scheme of the first encrypted sample entry; nil if this entry has no `schm` box.
    package internal(set) var scheme: UInt32?
    /// The `tenc` box of the first encrypted sample entry; nil if the scheme has no such box.
    package internal(set) var encryption: TrackEncryption?
    /// First the default key id, then the key ids of further sample entries, then those of sample groups.
    package internal(set) var keyIDs: [UUIDBytes] = []
    var hasFragment = false
  }

  package internal(set) var tracks: [Track] = []
  /// The `pssh` boxes of the `moov` box and of the first fragments, without duplicates.
  package internal(set) var pssh: [PSSH] = []
  /// The key ids of all tracks, without duplicates; if the tracks have none, those of the `pssh` boxes.
  package internal(set) var keyIDs: [UUIDBytes] = []
}
