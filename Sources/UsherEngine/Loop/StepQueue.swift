/// Keeps the actions of different steps in order. If a step begins while the engine performs the actions of another
/// step, the new step waits until the engine has performed all of them.
struct StepQueue {
  private var waiting = Fifo<() -> Void>()
  private var isPerforming = false

  /// Begins a step, if it need not wait for another step.
  /// - Returns: false if the engine performs the actions of another step now; then `append` the new step.
  mutating func begin() -> Bool {
    if isPerforming { return false }
    isPerforming = true
    return true
  }

  mutating func append(_ step: @escaping () -> Void) { waiting.append(step) }

  /// Removes and returns the step that has waited longest. Returns nil if no step waits; the next `begin` then returns
  /// true.
  mutating func next() -> (() -> Void)? {
    if let step = waiting.popFirst() { return step }
    isPerforming = false
    return nil
  }
}
