// Fuzz targets for the readers of contents: asset ids, boxes, playlists, manifests.
@testable import UsherCore
@testable import UsherEngine

func readAsset(_ bytes: Bytes) {
  if let asset = try? AssetID(bytes) {
    must(!asset.text.isEmpty && asset.text.count <= bytes.count, "an asset's text is a part of its URL")
    must((asset.decoded?.count ?? 0) <= asset.text.count, "the decoded data are no longer than their text")
    let read = asset.read()
    must(!read.contentID.isEmpty && read.contentID.count <= asset.text.count, "a content id is a part of the asset id")
    must(read.iv.map { $0.count == 16 } ?? true, "an IV has 16 bytes")
  }
  for variant in ContentIdentifier.allCases {
    if let id = try? variant.bytes(of: bytes) {
      must(!id.isEmpty && id.count <= bytes.count, "a content identifier is a part of its URL")
    }
  }
  if let id = UUIDBytes(text: bytes) {
    must(UUIDBytes(text: id.text) == id, "writing and reading an id gives the same id")
  }
}

func readPSSH(_ bytes: Bytes) {
  let boxes = PSSH.all(in: bytes)
  must(boxes.count <= PSSH.mostBoxes, "no more boxes than allowed")
  for box in boxes + PSSH.all(inBase64: bytes) {
    must(box.box.count <= bytes.count && box.data.count + 28 <= box.box.count, "a box is a part of the input")
    must(
      box.listedKeyIDs.count <= [UUIDBytes].mostKeyIDs && box.keyIDs.count <= 2 * [UUIDBytes].mostKeyIDs,
      "no more key ids than allowed")
    must((box.contentIdentifier?.count ?? 0) <= box.data.count, "a content identifier is a part of its data")
    must(reading(box.box) { PSSH.all(in: $0) } == [box], "reading a box alone gives the same box")
    let again = PSSH.make(box.systemID, keyIDs: box.listedKeyIDs, data: box.data)
    let read = reading(again) { PSSH.all(in: $0) }.first
    must(
      read?.data == box.data && read?.listedKeyIDs == box.listedKeyIDs && read?.systemID == box.systemID,
      "writing and reading a box gives the same box")
  }
  let widevine = WidevineData(bytes)
  must(
    widevine.contentID.count <= bytes.count && widevine.keyIDs.count <= [UUIDBytes].mostKeyIDs,
    "no more Widevine key ids than allowed")
  if let header = PlayReadyHeader(bytes) {
    must(
      header.keyIDs.count <= [UUIDBytes].mostKeyIDs && header.licenseURL.count <= header.xml.count,
      "no more PlayReady key ids than allowed")
  }
}

func readTrackEncryption(_ bytes: Bytes) {
  let tracks = TrackEncryption.all(in: bytes)
  must(tracks.count <= TrackEncryption.mostTracks, "no more tracks than allowed")
  for track in tracks {
    must(
      [0, 8, 16].contains(track.ivSize) && [0, 8, 16].contains(track.constantIV.count),
      "an IV has 8 or 16 bytes, or is missing")
    must(track.cryptBlocks < 16 && track.skipBlocks < 16, "each count of a pattern has four bits")
  }
}

/// The first byte of the input makes two choices: how many bytes one read returns at most, and how large the gap in the
/// middle of the file is. With a large gap, offsets exceed 32 bits.
func readFile(_ bytes: Bytes) {
  guard let (choice, content) = choices(bytes) else { return }
  let most = choice & 15 == 0 ? Int.max : choice & 15
  let gap = UInt64(choice >> 4) << 40
  let half = UInt64(content.count / 2)
  var reads = 0
  let file = MP4File { offset, target in
    reads += 1
    must(target.count > 0 && target.count <= MP4File.windowSize, "a read is never larger than the window")
    must(offset <= UInt64(Int64.max), "an offset is never too large")
    let isAfter = offset >= half + gap
    if !isAfter && offset >= half {
      for index in target.indices { target[index] = 0 }
      return target.count
    }
    let start = Int(isAfter ? min(offset - gap, UInt64(content.count)) : offset)
    let count = min(most, target.count, isAfter ? content.count - start : Int(half) - start)
    for index in 0..<count { target[index] = content[start + index] }
    return count
  }
  let isGood = (try? file.scan()) != nil
  must(isGood || !file.message.bytes.isEmpty, "a failure has a message")
  must(file.message.count <= 255, "a message has at most 255 bytes")
  must(reads <= 40 * MP4File.mostBoxes, "the number of reads is limited")
  must(file.found.tracks.count <= TrackEncryption.mostTracks, "no more tracks than allowed")
  must(file.found.keyIDs.count <= [UUIDBytes].mostKeyIDs, "no more key ids than allowed")
  must(file.found.pssh.reduce(0) { $0 + $1.box.count } <= MP4File.mostPSSHBytes, "no more pssh boxes than allowed")
}

func readClearKeys(_ bytes: Bytes) {
  var count = 0
  do throws(ClearKeyLicense.Fault) {
    try ClearKeyLicense.read(bytes) { id, key in
      must(id.count == 16 && key.count == 16, "key ids and keys have 16 bytes")
      count += 1
    }
    must(count > 0 && count * 44 <= bytes.count, "a licence has at least one key, and each takes its bytes")
  } catch { must(!error.words.isEmpty && error.words.count < 128, "a failure has a short message") }
}

func readPlaylist(_ bytes: Bytes) {
  let keys = (try? HLSKey.all(in: bytes)) ?? []
  for key in keys {
    must(
      key.uri.count <= bytes.count && key.keyFormat.count <= max(bytes.count, 8), "an attribute is a part of its line")
    must(key.iv.map { $0.count == 16 } ?? true, "an IV has 16 bytes")
    _ = (key.keySystem, key.keyIDs, key.playReady)
  }
  let same = try? HLSRewrite.rewrite(bytes) { _ in nil }
  must(same.map { $0.elementsEqual(bytes) } ?? false, "without replacements the playlist is unchanged")
  let own = (try? HLSRewrite.rewrite(bytes) { $0.uri }) ?? Array(bytes)
  must(
    (try? own.withUnsafeBufferPointer { try HLSKey.all(in: $0) }) == keys, "replacing each URI by itself changes no key"
  )
  let other = Array("https://keys.example/1".utf8)
  let rewritten = (try? HLSRewrite.rewrite(bytes) { _ in other }) ?? []
  let found = (try? rewritten.withUnsafeBufferPointer { try HLSKey.all(in: $0) }) ?? []
  must(found.count == keys.count, "a rewritten playlist has as many keys")
  for (before, after) in zip(keys, found) {
    must(after.uri == (before.assetURL() == nil ? before.uri : other), "every asset's URI is replaced, and no other")
    must(
      after.method == before.method && after.keyFormat == before.keyFormat && after.iv == before.iv
        && after.keyID == before.keyID, "only URIs are replaced")
  }
}

func readManifest(_ bytes: Bytes) {
  let elements = (try? ContentProtection.all(in: bytes)) ?? []
  must(elements.count <= ContentProtection.mostElements, "no more elements than allowed")
  for element in elements {
    must(
      element.licenseURL.count <= bytes.count && element.schemeID.count <= bytes.count
        && element.value.count <= bytes.count, "a text does not grow")
    must(
      element.pssh.count <= PSSH.mostBoxes && element.defaultKeyIDs.count <= [UUIDBytes].mostKeyIDs,
      "no more values of an element than allowed")
    _ = (element.keySystem, element.keyIDs)
  }
}
