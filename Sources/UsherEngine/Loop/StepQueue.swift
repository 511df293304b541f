/// Keeps the actions of two steps apart: a step that begins while the actions of another step are being performed waits
/// until all of those are done.
struct StepQueue {
  private var waiting = Fifo<() -> Void>()
  private var isPerforming = false

  /// - Returns: false if the actions of another step are being performed; then `append` the step.
  mutating func begin() -> Bool {
    if isPerforming { return false }
    isPerforming = true
    return true
  }

  mutating func append(_ step: @escaping () -> Void) { waiting.append(step) }

  /// The step that has waited longest; if it returns nil, the next `begin` returns true again.
  mutating func next() -> (() -> Void)? {
    if let step = waiting.popFirst() { return step }
    isPerforming = false
    return nil
  }
}
