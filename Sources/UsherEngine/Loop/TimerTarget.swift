internal import UsherCore

/// The purpose of a timer of a context.
enum TimerTarget {
  case session(PlaybackID)
  case transfer(TransferID)
  case ask(HostQuestion)
  case license(PlaybackID, LicenseID)
  case certificate(CertificateSource, CertificateWaiter)
  case wait(Wait<Status>)
  case token(PlaybackID)
  case load(PlaybackID, LoadingJob)
}

typealias Timers = TimerHeap<TimerTarget>
