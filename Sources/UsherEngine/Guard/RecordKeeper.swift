package import UsherCore

/// Keeps the recovery records of a context somewhere: in the memory that the guardian shares, or in a file. Only the
/// I/O thread calls it.
package protocol RecordKeeper: AnyObject {
  /// Keeps the record of a playback, in place of the one before.
  /// - Returns: false if there is no room for it; then the playback has no record.
  func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool
  /// Keeps the record of a playback with another token of the same length; nothing else has changed except the end of
  /// the lease.
  /// - Returns: false if the keeper cannot do this; then the caller calls `keep`.
  func renew(_ playback: PlaybackID, token: Secret, after last: Secret, lifetime: Milliseconds) -> Bool
  /// Removes the record of a playback; does nothing if there is none.
  func clear(_ playback: PlaybackID)
}
