/// Why some phases never meet some inputs. What a run did not reach must stand here; what stands here as impossible must not be reached.
struct Reason {
  let phases: [Phase]
  let inputs: [Input]
  let text: String
  /// It can be, but needs so much to come together that not every run has it.
  var isRare = false
}

enum Reasons {
  private static let active: [Phase] = [
    .noBeat, .beatWaits, .beating, .beatRefused, .beatRetries, .payloadAsked, .paused
  ]
  private static let ending: [Phase] = [.closing, .tearingDown, .retryingTeardown, .endedAwaiting]
  private static let unopened: [Phase] = [.turn, .idle, .contested]
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
      text: "nothing happens to what is not there yet"),
    Reason(phases: [.gone], inputs: Input.allCases, text: "nothing is known of it any more"),
    Reason(
      phases: Phase.allCases.filter { $0 != .unborn && $0 != .gone }, inputs: [.play], text: "a playback is played once"
    ),
    Reason(phases: ending, inputs: [.zap, .stopped], text: "its screen has let go of it"),
    Reason(
      phases: unopened + active + [.failed, .tearingDown, .retryingTeardown, .sessionless],
      inputs: [.setupGood, .setupDenied, .setupFailed],
      text: "no set-up is under way"),
    Reason(
      phases: unopened + [.settingUp, .noBeat, .beatWaits, .beatRefused, .beatRetries, .payloadAsked, .sessionless],
      inputs: [.beatGood, .beatDenied, .beatFailed, .customerBeat, .customerNoBeat], text: "no heartbeat is under way"),
    Reason(
      phases: unopened + [.settingUp] + active + [.failed, .closing, .retryingTeardown, .endedAwaiting, .sessionless],
      inputs: [.teardownGood, .teardownDenied, .teardownFailed, .customerTeardown, .customerNoTeardown],
      text: "no teardown is under way"),
    Reason(phases: unopened, inputs: licences, text: "no licence is under way: what is asked for waits"),
    Reason(
      phases: [.settingUp], inputs: [.renewalGood, .renewalDenied, .renewalFailed],
      text: "renewals wait for the session"),
    Reason(
      phases: unopened + [.sessionless], inputs: [.customerLicence, .customerNoLicence],
      text: "the host is asked when its turn has come, and then sets up"),
    Reason(phases: [.sessionless], inputs: [.tokenMapped], text: "who plays with a token map has a session"),
    Reason(phases: [.replacing], inputs: customer, text: "a customer's session is not replaced"),
    Reason(
      phases: [.turn] + ending, inputs: [.tokenCame, .noToken],
      text: "the host is asked for a token from its turn to its close"),
    Reason(
      phases: [.contested] + ending, inputs: [.payloadCame, .noPayload],
      text: "no payload is asked for: there is nothing to renew yet, or no more"),
    Reason(phases: ending, inputs: [.hookAnswered], text: "hooks are taken back when a playback closes"),
    Reason(
      phases: [.noBeat, .beatRefused, .paused, .failed, .sessionless], inputs: [.timer],
      text: "no timer of the session runs"),
    Reason(
      phases: [
        .contested, .beatRefused, .retryingTeardown, .replacing, .beating, .beatRetries, .closing, .tearingDown,
        .endedAwaiting
      ], inputs: fromHost,
      text: "the phase lasts for a round trip", isRare: true),
    Reason(
      phases: active + [.idle, .failed, .settingUp, .payloadAsked], inputs: fromHost,
      text: "the host rarely does it then", isRare: true),
    Reason(
      phases: [.replacing, .closing, .endedAwaiting], inputs: [.setupGood, .setupDenied, .setupFailed],
      text: "the reply has to come in the second of the close", isRare: true),
    Reason(
      phases: [.paused, .failed, .replacing] + ending,
      inputs: [.beatGood, .beatDenied, .beatFailed, .customerBeat, .customerNoBeat],
      text: "the reply has to come in the second of another end", isRare: true),
    Reason(
      phases: [.settingUp] + active + [.replacing, .failed] + ending,
      inputs: licences + [.customerLicence, .customerNoLicence],
      text: "two requests have to cross", isRare: true),
    Reason(
      phases: [.replacing, .tearingDown],
      inputs: [.teardownGood, .teardownDenied, .teardownFailed, .customerNoTeardown],
      text: "needs a fault in the second of a close", isRare: true),
    Reason(
      phases: [.turn, .idle, .settingUp, .contested] + active + [.replacing, .failed, .sessionless],
      inputs: [.tokenCame, .noToken, .payloadCame, .noPayload, .hookAnswered],
      text: "the question has to be open when the phase changes", isRare: true),
    Reason(
      phases: Phase.allCases, inputs: [.requestTimedOut, .askTimedOut],
      text: "what runs out has to begin in another phase", isRare: true),
    Reason(
      phases: [.turn, .idle, .settingUp, .contested, .beating, .replacing, .endedAwaiting], inputs: [.timer],
      text: "the timer has to move it, which others mostly do before", isRare: true),
    Reason(
      phases: Phase.allCases, inputs: [.othersEnded], text: "only what waits for another playback is moved by it",
      isRare: true)
  ]

  /// What is wrong with them, after a run.
  static func judge(_ coverage: Coverage) -> [String] {
    var problems: [String] = []
    for phase in Phase.allCases {
      for input in Input.allCases
      where coverage.count(phase, input) == 0 && !all.contains(where: { $0.names(phase, input) }) {
        problems.append("\(phase.name) | \(input.name): never met, and no reason says why")
      }
    }
    for reason in all where !reason.isRare {
      for phase in reason.phases {
        for input in reason.inputs where coverage.count(phase, input) > 0 {
          problems.append("\(phase.name) | \(input.name): met, though \"\(reason.text)\"")
        }
      }
    }
    // Where little was told, what is called rare must not all have come.
    for reason in all where !(reason.isRare && coverage.stories > 500) {
      let isAllReached = reason.phases.allSatisfy { phase in reason.inputs.allSatisfy { coverage.count(phase, $0) > 0 }
      }
      if isAllReached { problems.append("stale: \"\(reason.text)\": all of it was reached") }
    }
    return problems
  }

  static func rare(_ coverage: Coverage) -> Int { count(coverage) { $0.isRare } }

  static func never(_ coverage: Coverage) -> Int { count(coverage) { !$0.isRare } }

  /// Cells that were not reached, by the first reason that names them.
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
