import Testing

@testable import UsherCore

@Suite struct XMLScannerTests {
  /// Returns what the scanner finds: `<name a=value>` for each start tag, `</name>` for each end tag, and the texts.
  private func told(_ xml: [UInt8]) -> [String] {
    withBytes(xml) { xml in
      var scanner = XMLScanner(xml)
      var told: [String] = []
      while let token = scanner.next() {
        switch token {
        case .open(let tag):
          let name = String(decoding: tag.name.bytes, as: UTF8.self)
          let attribute = tag.attribute("a").map { " a=" + String(decoding: $0, as: UTF8.self) } ?? ""
          told.append("<\(name)\(attribute)\(tag.isEmpty ? "/" : "")>")
        case .close(let name): told.append("</\(String(decoding: name.bytes, as: UTF8.self))>")
        case .text(let text): told.append(String(decoding: text.decoded(), as: UTF8.self))
        }
      }
      return told
    }
  }
  private func told(_ xml: String) -> [String] { told(bytes(xml)) }

  @Test(arguments: [
    ("<x>t</x>", ["<x>", "t", "</x>"]), ("<x/>", ["<x/>"]), ("<x />", ["<x/>"]),
    ("<p:x a='1' b=\"2\"/>", ["<p:x a=1/>"]),
    ("<x\n\ta = \"1\"\n>", ["<x a=1>"]), ("<x b='a=\"9\"' q:A='1'>", ["<x a=1>"]),
    ("<x a='>'/>y", ["<x a=>/>", "y"]), ("<x a='/'>", ["<x a=/>"]),
    ("<x a=\"&lt;&#65;&#x42;&quot;\"/>", ["<x a=<AB\"/>"]), ("a<!-- <x> -- -->b", ["a", "b"]),
    ("<![CDATA[<x>&amp;]]>", ["<x>&amp;"]),
    ("<?xml version='1.0'?><x/>", ["<x/>"]),
    ("<!DOCTYPE x [<!ENTITY e \"v>\"> <!ELEMENT y>]><x>&e;</x>", ["<x>", "&e;", "</x>"]),
    ("&amp;&unknown;& &#0;&#xD800;&#1114112;&#99999999999;&;", ["&&unknown;& \u{0}&#xD800;&#1114112;&#99999999999;&;"]),
    ("<x a=1 b='2'>", ["<x>"]), ("<x a>", ["<x>"]), ("<x aa='1' a='2'>", ["<x a=2>"]), ("<x a='1' a='2'>", ["<x a=1>"]),
    ("</ x>", ["</>"]), ("<>", ["<>"]),
    ("</>", ["</>"])
  ])
  func markup_isTold(xml: String, expected: [String]) {
    #expect(told(xml) == expected)
  }

  @Test(arguments: ["", "<", "<x", "<x a='", "<x a='>", "<!--", "<!-- --", "<![CDATA[x]]", "<?", "<!", "<!DOCTYPE x [>"]
  )
  func markup_cutOff_ends(xml: String) {
    #expect(told(xml) == [] && told("a" + xml) == ["a"])
  }

  @Test func markup_large_isLinear() {
    for piece in ["<", "<x ", "&", "<!--", "<a>", "]]>", "x='", "&#x41;", "<!["] {
      _ = told(String(repeating: piece, count: 300_000 / piece.utf8.count))
    }
  }

  @Test func hostileMarkup_neverTraps() {
    var dice = Dice(111)
    let pieces = [
      "<", ">", "/", "x", "a", "=", "'", "\"", " ", "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "<!", "[", "]", "&",
      "&amp;", "&#", ";", ":"
    ]
    for _ in 0..<10_000 { _ = told(hostile(&dice, pieces)) }
  }
}
