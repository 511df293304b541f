internal import UsherCore

/// Gives back the sessions that dead processes have left in the journal. Only the I/O thread uses this object.
final class Recovery {
  let journal: Journal
  var hasBegun = false
  /// For how many sessions the start of playbacks waits.
  var awaitedCount = 0
  /// The playbacks that start when the recovery has ended, or when its time is over.
  var waitingStarts: [PlaybackID] = []

  init(_ journal: Journal) { self.journal = journal }
}
