/// The playback for which a host callback is called.
package struct HostPlayback {
  package let handle: UInt
  package let playerHandle: UInt
  package let tag: UInt64

  package init(handle: UInt, playerHandle: UInt, tag: UInt64) {
    self.handle = handle
    self.playerHandle = playerHandle
    self.tag = tag
  }
}
