import UsherCore

#if canImport(Glibc)
  import Glibc
#endif

/// Reads the comment above each phase of some machines, and compares it with the transitions that a search has seen.
/// One line of the comment lists the phases that may follow, like `/// → settingUp, failed, ended` or `/// → nothing`.
package struct PhaseComments {
  /// The enumeration of a machine's phases.
  package struct Source {
    let machine: String
    /// The name of the enumeration.
    let name: String
    /// The file, relative to the root of the repository.
    let path: String
    /// The transitions that the comments list and the search does not see, because it is not deep enough: from a
    /// phase to phases.
    let unseen: [String: Set<String>]

    package init(
      _ machine: String, _ name: String = "Phase", in path: String, unseen: [String: Set<String>] = [:]
    ) {
      self.machine = machine
      self.name = name
      self.path = path
      self.unseen = unseen
    }
  }

  private struct Comment {
    let machine: String
    let phase: String
    let successors: Set<String>
    /// The file and the line of the comment.
    let place: String
    let unseen: Set<String>
  }

  private var comments: [Comment] = []
  /// The errors in the comments that this type finds without the results of a search.
  private var errors: [String] = []

  package init(_ sources: [Source]) {
    for source in sources { read(source) }
    for comment in comments {
      let phases = Set(comments.filter { $0.machine == comment.machine }.map { $0.phase })
      for unknown in comment.successors.subtracting(phases).sorted() {
        errors.append("\(comment.place): \(comment.machine) has no phase \(unknown)")
      }
    }
  }

  /// Returns the differences between the comments and the transitions, one line for each.
  /// - Parameter isWhole: whether the search was deep enough to see every transition. If not, the result has only the
  ///   transitions that no comment lists.
  package func differences(_ seen: Set<TransitionLog.Transition>, isWhole: Bool) -> [String] {
    var lines = isWhole ? errors : []
    for comment in comments {
      let successors = Set(seen.filter { $0.machine == comment.machine && $0.from == comment.phase }.map { $0.to })
      let phase = "\(comment.place): \(comment.machine).\(comment.phase)"
      for missing in successors.subtracting(comment.successors).sorted() {
        lines.append("\(phase): \(missing) followed, and the comment does not list it")
      }
      guard isWhole else { continue }
      for extra in comment.successors.subtracting(successors).subtracting(comment.unseen).sorted() {
        lines.append("\(phase): the comment lists \(extra), which never followed")
      }
      let wrong = comment.unseen.filter { successors.contains($0) || !comment.successors.contains($0) }
      for wrong in wrong.sorted() {
        lines.append("\(phase): \(wrong) is listed as unseen, but it followed, or the comment does not list it")
      }
    }
    return lines
  }

  private mutating func read(_ source: Source) {
    let (machine, path) = (source.machine, source.path)
    guard let text = Self.contents(Self.root + path) else { return errors.append("\(path): cannot be read") }
    let count = comments.count
    var end: String?
    var successors: Set<String>?
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let words = line.split(whereSeparator: { " ,:({".contains($0) }).map(String.init)
      if end == nil, words.drop(while: { $0 == "private" }).starts(with: ["enum", source.name]) {
        end = line.prefix { $0 == " " } + "}"
      }
      guard let end else { continue }
      if line == end { break }
      if words.starts(with: ["///", "→"]) { successors = Set(words.dropFirst(2)).subtracting(["nothing"]) }
      // Skip the cases of a switch, which begin with a dot: they declare no phase.
      guard words.count > 1, words[0] == "case", words[1].first != "." else { continue }
      let place = "\(path):\(index + 1)"
      if let successors {
        comments.append(
          Comment(
            machine: machine, phase: words[1], successors: successors, place: place,
            unseen: source.unseen[words[1]] ?? []))
      } else {
        errors.append("\(place): no line `/// → …` above \(machine).\(words[1])")
      }
      successors = nil
    }
    if comments.count == count { errors.append("\(path): no phases found") }
  }

  /// The root of the repository, with a slash.
  private static var root: String {
    #filePath.split(separator: "/").dropLast(3).reduce(into: "/") { $0 += $1 + "/" }
  }

  private static func contents(_ path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    while case let byte = getc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
    return String(decoding: bytes, as: UTF8.self)
  }
}
