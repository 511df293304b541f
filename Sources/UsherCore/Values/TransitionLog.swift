#if !hasFeature(Embedded)
  /// Records the phase transitions of the machines, in the checked build. `make model` compares these transitions with
  /// the comments that list each phase's successors. The class must be Sendable, because the machines that hold a log
  /// are Sendable. `@unchecked` is safe, because only one thread uses a machine and its log.
  package final class TransitionLog: @unchecked Sendable {
    package struct Transition: Hashable {
      package let machine: String
      package let from: String
      package let to: String
    }

    package private(set) var transitions: Set<Transition> = []

    package init() {}

    func add(_ machine: String, _ from: String, _ to: String) {
      transitions.insert(Transition(machine: machine, from: from, to: to))
    }
  }
#endif
