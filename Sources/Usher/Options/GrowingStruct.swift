internal import CPlatform
internal import CUsher
internal import UsherCore

/// A struct that the host makes and that begins with `struct_size`, its size. A later release may add fields at its
/// end, so a host that was built with other headers has a smaller or a larger struct. docs/abi.md has the rules.
protocol GrowingStruct {
  /// The size in the oldest release that hosts may have been built with.
  static var firstSize: Int { get }
}

/// Reads the option struct behind a pointer. A field that the host's struct does not have is 0, which means "the
/// default". Throws if the struct is smaller than in the first release, if no struct can have its size, or if the
/// struct has bytes other than 0 after the last field that this library knows.
func options<Options: GrowingStruct>(_ pointer: UnsafePointer<Options>?) throws(UsherError) -> Options {
  guard let pointer else { throw refused("options or request", isMissing) }
  let host = UnsafeRawPointer(pointer)
  let whole = try wholeStruct(host, first: Options.firstSize, known: MemoryLayout<Options>.size)
  defer { if whole != host { free(UnsafeMutableRawPointer(mutating: whole)) } }
  return whole.load(as: Options.self)
}

/// Returns `pointer` if `options` can read the struct behind it, otherwise nil. Use only fields that the first release
/// had.
func readable<Options: GrowingStruct>(_ pointer: UnsafePointer<Options>?) -> UnsafePointer<Options>? {
  isReadable(pointer, first: Options.firstSize, known: MemoryLayout<Options>.size) ? pointer : nil
}

/// Writes a result into the host's struct, but only the fields that the host's struct has. Sets the `struct_size` of
/// the host's struct to the number of bytes that the library wrote.
func fill<Result: GrowingStruct>(_ out: UnsafeMutablePointer<Result>, _ result: Result) throws(UsherError) {
  let target = UnsafeMutableRawPointer(out)
  let count = min(try sizeOfStruct(target, first: Result.firstSize), MemoryLayout<Result>.size)
  withUnsafeBytes(of: result) { if let source = $0.baseAddress { target.copyMemory(from: source, byteCount: count) } }
  target.storeBytes(of: count, as: Int.self)
}

/// Returns the host's struct. If the struct is smaller than `known`, returns a copy that has this size and ends with
/// zeros; the caller frees the copy.
@inline(never)
private func wholeStruct(_ host: UnsafeRawPointer, first: Int, known: Int) throws(UsherError) -> UnsafeRawPointer {
  let size = try checkedSize(host, first: first, known: known)
  guard size < known else { return host }
  guard let copy = calloc(1, known) else { throw UsherError(.system) }
  copy.copyMemory(from: host, byteCount: size)
  return UnsafeRawPointer(copy)
}

@inline(never)
private func isReadable(_ host: UnsafeRawPointer?, first: Int, known: Int) -> Bool {
  guard let host else { return false }
  do throws(UsherError) { _ = try checkedSize(host, first: first, known: known) } catch { return false }
  return true
}

private func checkedSize(_ host: UnsafeRawPointer, first: Int, known: Int) throws(UsherError) -> Int {
  let size = try sizeOfStruct(host, first: first)
  for offset in known..<max(size, known) where host.load(fromByteOffset: offset, as: UInt8.self) != 0 {
    throw refused("struct_size: fields that this library does not know are set")
  }
  return size
}

/// Reads the `struct_size` of a host's struct. The size of every such struct is a multiple of the size of a pointer.
@inline(never)
private func sizeOfStruct(_ host: UnsafeRawPointer, first: Int) throws(UsherError) -> Int {
  let size = host.load(as: Int.self)
  guard size >= first, size <= 1 << 16, size % MemoryLayout<Int>.size == 0 else {
    throw refused("struct_size: not one of a release")
  }
  return size
}
