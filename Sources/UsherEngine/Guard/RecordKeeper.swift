package import UsherCore

/// Keeps the recovery records of a context somewhere: in the memory that the guardian shares, or in a file. Only the
/// I/O thread calls these methods.
package protocol RecordKeeper: AnyObject {
  /// Keeps the record of a playback. The new record replaces the earlier record of this playback.
  /// - Returns: false if the keeper could not keep the record. If there is no room for the record, the playback then
  ///   has no record. Otherwise the playback may still have its earlier record.
  func keep(_ record: RecoveryRecord, of playback: PlaybackID) -> Bool
  /// Puts another session token into the record of a playback, and makes the record valid for `lifetime` from now. The
  /// rest of the record stays.
  /// - Returns: false if the keeper cannot do this, for example if the two tokens differ in length; then the caller
  ///   calls `keep`.
  func update(_ playback: PlaybackID, token: Secret, lifetime: Milliseconds) -> Bool
  /// Removes the record of a playback; does nothing if there is none.
  func clear(_ playback: PlaybackID)
}
