/// The reason why a run does not reach some cells. A cell is one input in one phase. Each cell that a run did not reach
/// needs a reason. If a reason says that a cell is impossible, no run may reach this cell.
struct Reason {
  let phases: [Phase]
  let inputs: [Input]
  let text: String
  /// Whether the cell is possible, but needs so many events at the same time that not every run reaches it.
  var isRare = false
}

enum Reasons {
  private static let active: [Phase] = [
    .noBeat, .beatWaits, .beating, .beatRefused, .beatRetries, .payloadAsked, .paused
  ]
  private static let ending: [Phase] = [.closing, .tearingDown, .retryingTeardown, .endedAwaiting]
  private static let unopened: [Phase] = [.queued, .idle, .contested, .awaitingSlot]
  private static let fromHost: [Input] = [
    .zap, .closed, .left, .stopped, .licenceAsked, .renewalAsked, .tokenGiven, .tokenMapped, .suspend, .resume,
    .networkChanged, .contextClosed
  ]
  private static let licences: [Input] = [
    .licenceGood, .licenceDenied, .licenceFailed, .renewalGood, .renewalDenied, .renewalFailed
  ]
  private static let customer: [Input] = [
    .customerLicence, .customerNoLicence, .customerBeat, .customerNoBeat, .customerTeardown, .customerNoTeardown
  ]

  static let all: [Reason] = [
    Reason(
      phases: [.unborn], inputs: Input.allCases.filter { $0 != .play && $0 != .licenceAsked },
      text: "the playback does not exist yet"),
    Reason(phases: [.gone], inputs: Input.allCases, text: "the engine has forgotten the playback"),
    Reason(
      phases: Phase.allCases.filter { $0 != .unborn && $0 != .gone }, inputs: [.play], text: "a playback is played once"
    ),
    Reason(phases: ending, inputs: [.zap, .stopped], text: "its player has no current playback any more"),
    Reason(
      phases: unopened + active + [.failed, .tearingDown, .retryingTeardown, .sessionless],
      inputs: [.setupGood, .setupDenied, .setupFailed],
      text: "no set-up is in flight"),
    Reason(
      phases: unopened + [.settingUp, .noBeat, .beatWaits, .beatRefused, .beatRetries, .payloadAsked, .sessionless],
      inputs: [.beatGood, .beatDenied, .beatFailed, .customerBeat, .customerNoBeat], text: "no heartbeat is in flight"),
    Reason(
      phases: unopened + [.settingUp] + active + [.failed, .closing, .retryingTeardown, .endedAwaiting, .sessionless],
      inputs: [.teardownGood, .teardownDenied, .teardownFailed, .customerTeardown, .customerNoTeardown],
      text: "no teardown is in flight"),
    Reason(phases: unopened, inputs: licences, text: "no licence request is in flight: requests wait for the session"),
    Reason(
      phases: [.settingUp], inputs: [.renewalGood, .renewalDenied, .renewalFailed],
      text: "renewals wait for the session"),
    Reason(
      phases: unopened + [.sessionless], inputs: [.customerLicence, .customerNoLicence],
      text: "the library asks the host when the playback starts, and then sets the session up"),
    Reason(phases: [.sessionless], inputs: [.tokenMapped], text: "every playback with a token map has a session"),
    Reason(phases: [.replacing], inputs: customer, text: "a customer's session is not replaced"),
    Reason(
      phases: [.queued] + ending, inputs: [.tokenCame, .noToken],
      text: "the library asks for a token only between start and close"),
    Reason(
      phases: [.contested, .awaitingSlot] + ending, inputs: [.payloadCame, .noPayload],
      text: "the library asks for no payload: there is no session to renew"),
    Reason(phases: ending, inputs: [.hookAnswered], text: "closing a playback ends its hook questions"),
    Reason(
      phases: [.noBeat, .paused, .failed, .sessionless], inputs: [.timer],
      text: "the session has no timer then"),
    Reason(
      phases: [
        .contested, .awaitingSlot, .beatRefused, .retryingTeardown, .replacing, .beating, .beatRetries, .closing,
        .tearingDown, .endedAwaiting
      ], inputs: fromHost,
      text: "the phase lasts one round trip", isRare: true),
    Reason(
      phases: active + [.idle, .failed, .settingUp, .payloadAsked], inputs: fromHost,
      text: "the host rarely does it in this phase", isRare: true),
    Reason(
      phases: [.replacing, .closing, .endedAwaiting], inputs: [.setupGood, .setupDenied, .setupFailed],
      text: "the reply must arrive in the second of the close", isRare: true),
    Reason(
      phases: [.paused, .failed, .replacing] + ending,
      inputs: [.beatGood, .beatDenied, .beatFailed, .customerBeat, .customerNoBeat],
      text: "the reply must arrive in the second in which the session ends", isRare: true),
    Reason(
      phases: [.settingUp] + active + [.replacing, .failed] + ending,
      inputs: licences + [.customerLicence, .customerNoLicence],
      text: "two requests must cross on the network", isRare: true),
    Reason(
      phases: [.replacing, .tearingDown],
      inputs: [.teardownGood, .teardownDenied, .teardownFailed, .customerNoTeardown],
      text: "needs a fault in the second of a close", isRare: true),
    Reason(
      phases: [.queued, .idle, .settingUp, .contested, .awaitingSlot] + active + [.replacing, .failed, .sessionless],
      inputs: [.tokenCame, .noToken, .payloadCame, .noPayload, .hookAnswered],
      text: "the question must be open when the phase changes", isRare: true),
    Reason(
      phases: Phase.allCases, inputs: [.requestTimedOut, .askTimedOut],
      text: "the request or question must begin in another phase", isRare: true),
    Reason(
      // For example, a session whose heartbeat was refused waits for the reply to a licence request. This reply, or the
      // failure of the request, usually comes before the session's timer. The timer fires first only if the licence
      // request waits in the request queue until it times out there.
      phases: [
        .queued, .idle, .settingUp, .contested, .awaitingSlot, .beating, .beatRefused, .replacing, .endedAwaiting
      ],
      inputs: [.timer],
      text: "another event mostly comes before the timer", isRare: true),
    Reason(
      phases: Phase.allCases, inputs: [.othersEnded], text: "it moves only playbacks that wait for another one",
      isRare: true)
  ]

  /// A number of screens. A run with so many screens, or more, must read replies late.
  static let screensWithLateReplies = 400

  /// Returns the errors of a run: cells that the run did not reach and that have no reason, and reasons that are wrong.
  /// In a large run it is also an error if the I/O thread read no reply late.
  static func judge(_ coverage: Coverage, screens: Int) -> [String] {
    var problems: [String] = []
    if screens >= screensWithLateReplies, coverage.lateReplies == 0 {
      problems.append("no reply waited in a socket while the I/O thread was late: the stories no longer test this")
    }
    for phase in Phase.allCases {
      for input in Input.allCases
      where coverage.count(phase, input) == 0 && !all.contains(where: { $0.names(phase, input) }) {
        problems.append("\(phase.name) | \(input.name): never reached, and no reason says why")
      }
    }
    for reason in all where !reason.isRare {
      for phase in reason.phases {
        for input in reason.inputs where coverage.count(phase, input) > 0 {
          problems.append("\(phase.name) | \(input.name): reached, but \"\(reason.text)\"")
        }
      }
    }
    // If a run reached all cells of a reason, the reason is out of date. Exception: a run of more than 500 stories may
    // reach all cells of a rare reason.
    for reason in all where !(reason.isRare && coverage.stories > 500) {
      let isAllReached = reason.phases.allSatisfy { phase in reason.inputs.allSatisfy { coverage.count(phase, $0) > 0 }
      }
      if isAllReached { problems.append("stale: \"\(reason.text)\": all its cells were reached") }
    }
    return problems
  }

  static func rare(_ coverage: Coverage) -> Int { count(coverage) { $0.isRare } }

  static func never(_ coverage: Coverage) -> Int { count(coverage) { !$0.isRare } }

  /// Returns the number of cells that the run did not reach and whose first reason is `wanted`.
  private static func count(_ coverage: Coverage, _ wanted: (Reason) -> Bool) -> Int {
    Phase.allCases.reduce(0) { sum, phase in
      sum
        + Input.allCases.filter { input in
          coverage.count(phase, input) == 0 && all.first { $0.names(phase, input) }.map(wanted) == true
        }.count
    }
  }
}

extension Reason {
  func names(_ phase: Phase, _ input: Input) -> Bool { phases.contains(phase) && inputs.contains(input) }
}
