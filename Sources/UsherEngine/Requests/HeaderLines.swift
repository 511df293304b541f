package import UsherCore

/// Joins "Name: value" lines, each ending in NUL, to one text.
func headerText(_ lines: [Secret]) -> Secret {
  let size = lines.reduce(0) { $0 + $1.count }
  return Secret(count: max(size - 1, 0)) { target in
    var at = 0
    for line in lines {
      line.withBytes { copy($0, into: target, at: at) }
      at += line.count
      if at <= target.count { target[at - 1] = 0x0A }
    }
  }
}

/// Splits a text into its lines, and adds a NUL to each.
package func headerLines(_ text: Secret) -> [Secret] {
  text.withBytes { bytes in
    bytes.split(separator: 0x0A).map { line in
      Secret(count: line.count + 1) { copy(UnsafeBufferPointer(rebasing: line), into: $0) }
    }
  }
}
