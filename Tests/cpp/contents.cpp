/*
 * contents.cpp - tests the resource loader and the readers of contents in usher.hpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wrapper.hpp"

namespace {

const uint8_t pssh[] = {0, 0, 0, 52, 'p', 's', 's', 'h', 1, 0, 0, 0, 0x10, 0x77, 0xef, 0xec, 0xc0, 0xb2, 0x4d, 0x02,
    0xac, 0xe3, 0x3c, 0x1e, 0x52, 0xe2, 0xfb, 0x4b, 0, 0, 0, 1, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
    0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0, 0, 0, 0};
const uint8_t tenc[] = {0, 0, 0, 32, 't', 'e', 'n', 'c', 1, 0, 0, 0, 0, 0x19, 1, 8, 0, 0x11, 0x22, 0x33, 0x44, 0x55,
    0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
const char playlist[] =
    "#EXTM3U\n#EXT-X-KEY:METHOD=SAMPLE-AES,URI=\"skd://one\",KEYFORMAT=\"com.apple.streamingkeydelivery\","
    "KEYFORMATVERSIONS=\"1\"\n";
const char manifest[] = "<MPD><ContentProtection schemeIdUri=\"urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b\"/></MPD>";

void readers() {
  const auto boxes = usher::read_pssh(usher::bytes_view(pssh, sizeof pssh));
  tell(boxes.size() == 1 && boxes[0].key_system == usher::key_system::clearkey && boxes[0].system_id.size() == 16,
      "a pssh box");
  tell(boxes.size() == 1 && boxes[0].key_ids.size() == 1 && boxes[0].key_ids[0][15] == 0xff &&
           boxes[0].init_data.size() == sizeof pssh,
      "its key id and init data");
  const auto defaults = usher::read_tenc(usher::bytes_view(tenc, sizeof tenc));
  tell(defaults.size() == 1 && defaults[0].crypt_blocks == 1 && defaults[0].skip_blocks == 9 &&
           defaults[0].key_ids.size() == 1,
      "a tenc box");
  const auto keys = usher::read_hls_keys(playlist);
  tell(keys.size() == 1 && keys[0].uri == "skd://one" && keys[0].key_system == usher::key_system::fairplay &&
           !keys[0].is_session,
      "a key line");
  const auto elements = usher::read_dash_protection(manifest);
  tell(elements.size() == 1 && elements[0].key_system == usher::key_system::clearkey, "a ContentProtection element");
  tell(usher::read_pssh("").empty(), "no boxes in an empty text");
  const auto id = usher::content_id("skd://host/path", usher::content_id_rule::host);
  tell(usher::bytes_view(id).text() == "host", "a content identifier by rule");
  throws(
      usher::status::invalid_argument, [] { return usher::content_id(""); }, "a content identifier of an empty URL");
  tell(usher::rewrite_hls_keys(playlist, "http://127.0.0.1/key/").find("URI=\"http://127.0.0.1/key/0\"") !=
           std::string::npos,
      "a playlist with other URIs");
  tell(usher::rewrite_hls_keys(playlist, "x", "abc") == playlist, "a playlist with another scheme stays unchanged");
  throws(
      usher::status::invalid_argument, [] { return usher::rewrite_hls_keys(playlist, std::string_view("a\0b", 3)); },
      "a prefix with a NUL");
}

/* A moov box with one encrypted track: moov/trak/mdia/minf/stbl/stsd/encv/sinf/schi/tenc. */
std::string movie() {
  const auto box = [](const char *type, const std::string &body) {
    const auto size = 8 + body.size();
    return std::string(2, '\0') + static_cast<char>(size >> 8) + static_cast<char>(size & 255) + type + body;
  };
  std::string boxes(reinterpret_cast<const char *>(tenc), sizeof tenc);
  boxes = box("sinf", box("schm", std::string(4, '\0') + "cbcs" + std::string(4, '\0')) + box("schi", boxes));
  boxes = box("stsd", std::string(8, '\0') + box("encv", std::string(78, '\0') + boxes));
  for (const char *type : {"stbl", "minf", "mdia", "trak"}) boxes = box(type, boxes);
  return box("moov", boxes + std::string(reinterpret_cast<const char *>(pssh), sizeof pssh));
}

void files() {
  const std::string file = movie();
  const auto read = [&](uint64_t offset, uint8_t *buffer, size_t size) -> int64_t {
    return offset < file.size() ? static_cast<int64_t>(file.copy(reinterpret_cast<char *>(buffer), size, offset)) : 0;
  };
  const auto found = usher::read_mp4(read);
  tell(found.whole.part == usher::part::file && found.whole.scheme == "cbcs" && found.whole.key_ids.size() == 1 &&
           found.whole.init_data.size() == sizeof pssh,
      "a file: scheme, key id and init data");
  tell(found.tracks.size() == 1 && found.tracks[0].part == usher::part::track && found.tracks[0].crypt_blocks == 1,
      "its track");
  tell(found.pssh.size() == 1 && found.pssh[0].key_system == usher::key_system::clearkey, "its pssh box");
  try {
    usher::read_mp4([&](uint64_t offset, uint8_t *buffer, size_t size) -> int64_t {
      return read(offset, buffer, offset < 60 ? std::min<size_t>(size, 60 - offset) : 0);
    });
    tell(0, "a file that ends too early is refused");
  } catch (const usher::error &error) {
    tell(error.status() == usher::status::protocol && std::string(error.what()).find("moov/trak[1]/") == 0,
        "the path of the box: %s", error.what());
  }
  try {
    usher::read_mp4([](uint64_t, uint8_t *, size_t) -> int64_t { throw std::runtime_error("no disk"); });
    tell(0, "an exception of the reader arrives");
  } catch (const std::runtime_error &error) { tell(std::string(error.what()) == "no disk", "the reader's exception"); }
  throws(
      usher::status::invalid_argument, [] { return usher::read_mp4(nullptr); }, "no reader");

  const auto request = usher::clear_key_request(found.whole.key_ids);
  tell(request == "{\"kids\":[\"ABEiM0RVZneImaq7zN3u_w\"],\"type\":\"temporary\"}", "a Clear Key request");
  throws(
      usher::status::invalid_argument, [] { return usher::clear_key_request({}); }, "a request without key ids");
  std::string keys;
  for (char letter = 'A'; letter < 'A' + 12; letter++)
    keys += std::string(keys.empty() ? "" : ",") + "{\"kty\":\"oct\",\"kid\":\"ABEiM0RVZneImaq7zN3u_w\",\"k\":\"" +
            std::string(20, letter) + "AA\"}";
  const auto pairs = usher::clear_keys("{\"keys\":[" + keys + "]}");
  tell(pairs.size() == 12 && pairs[0].key_id == found.whole.key_ids[0] && pairs[1].key[0] == 0x04, "twelve keys");
  try {
    usher::clear_keys("{\"keys\":[]}");
    tell(0, "a licence without keys is refused");
  } catch (const usher::error &error) { tell(std::string(error.what()) == "the licence has no keys", "in words"); }
}

void loading() {
  witness w;
  std::atomic<int> asked{0}, told{0};
  std::optional<usher::spc_request> kept;
  std::mutex lock;
  {
    usher::context context;
    usher::loader_options options;
    options.license_url = enforced_url();
    options.extra_headers = std::string("nv-authorizations: ") + free_token();
    options.certificate = "the certificate";
    options.content_id_rule = usher::content_id_rule::after_scheme;
    options.spc = [&, w](usher::spc_request request) {
      asked += request.certificate().text() == "the certificate" &&
               request.content_id().text() == request.url().text().substr(6) && request.tag() == 7;
      if (request.content_id().text() == "later") {
        std::lock_guard<std::mutex> hold(lock);
        kept = std::move(request);
      } else if (request.content_id().text() == "one") {
        request.answer("SPC");
      }
    };
    auto loader = context.add_loader(options);
    auto player = context.new_player();
    usher::playback_options item;
    item.tag = 7;
    auto playback = player.play(item); // without a delegate: the loader is enough
    tell(playback.get_resource("skd://one").data().text().substr(0, 4) == "CKC1", "loader: from a URL to a CKC");
    throws(
        usher::status::callback, [&] { return playback.get_resource("skd://none"); },
        "an SPC request destroyed without an answer");
    throws(
        usher::status::declined, [&] { return playback.get_resource("abc://one"); }, "a scheme that no loader has");
    const auto id = playback.load_resource(
        "skd://later", [&, w](usher::playback_ref of, const usher::response_info &info, uint64_t tag) {
          told += of == playback && info.error.status == usher::status::closed && tag == 7;
        });
    tell(until([&] { return asked == 3; }),
        "the SPC callback runs for each load, with certificate and content identifier");
    playback.cancel_load(id);
    tell(until([&] { return told == 1; }), "a cancelled load reports that it was cancelled");
    throws(
        usher::status::state, [&] { playback.cancel_load(id); }, "cancelled twice");
    {
      std::lock_guard<std::mutex> hold(lock);
      tell(kept && !kept->answer("SPC"), "the SPC for it is too late");
      kept.reset();
    }
    throws(
        usher::status::declined,
        [&, w] {
          playback.load_resource("abc://one", [w](usher::playback_ref, const usher::response_info &, uint64_t) {});
        },
        "not handled");
    throws(
        usher::status::invalid_argument, [&] { return context.add_loader({}); }, "a loader without an SPC callback");
    throws(
        usher::status::invalid_argument,
        [&] {
          auto bad = options;
          bad.spc_field = std::string("a\0b", 3);
          return context.add_loader(bad);
        },
        "a field with a NUL");
    usher::loader_options choosing;
    choosing.spc = [](usher::spc_request request) { request.answer("SPC"); };
    choosing.server = [&, w](usher::server_request request) {
      const auto url = request.url().text();
      if (url == "skd://one") request.answer(enforced_url(), std::string("nv-authorizations: ") + free_token());
      if (url == "skd://builtin") request.use_builtin();
      if (url == "skd://entitled") {
        usher::entitlement wanted;
        wanted.url = license_url();
        wanted.token_kind = usher::token_kind::time_based;
        request.ask_entitlement(wanted);
      }
    };
    auto other = context.add_loader(choosing);
    tell(playback.get_resource("skd://one").data().text().substr(0, 4) == "CKC1",
        "loader: the host chooses the server and its headers");
    throws(
        usher::status::callback, [&] { return playback.get_resource("skd://none"); },
        "a server request destroyed without an answer");
    throws(
        usher::status::not_allowed, [&] { return playback.get_resource("skd://builtin"); },
        "without a callback the URL would name the server");
    bool is_entitlement = false;
    try {
      playback.get_resource("skd://entitled");
    } catch (const usher::error &error) { is_entitlement = error.detail().operation == usher::operation::entitlement; }
    tell(is_entitlement, "loader: the library asks the entitlement server of the host");
    choosing.server = nullptr;
    choosing.route = usher::route::entitlement;
    choosing.token_url = [w](usher::server_request request) {
      if (request.entitlement_id().text() == "one")
        request.answer(enforced_url(), std::string("nv-authorizations: ") + free_token());
    };
    auto third = context.add_loader(choosing);
    tell(
        playback.get_resource("skd://one").data().text().substr(0, 4) == "CKC1", "loader: the host gets the token URL");
    third.free();
    other.free();
    loader.free();
    throws(
        usher::status::declined, [&] { return playback.get_resource("skd://one"); }, "a loader that was freed");
    options.spc = nullptr;
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
}

} // namespace

int contents() {
  readers();
  files();
  loading();
  return failed;
}
