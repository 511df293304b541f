/*
 * multi_instance.cpp - several players at the same time, ported line by line to C++. Arguments, actions and output are
 * those of multi_instance.c. S2:17 is line 17 of document S2 (see README.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <map>
#include <mutex>
#include <usher/usher.hpp>

// Seed S2, line 15: MultiInstanceDelegate, a subclass of OTVCommonLicenseDelegate. The application writes this class.
class multi_instance_delegate : public usher::common_delegate {
public:
  // Seed S2, line 17: setStreamToken: the token is "stored in a map using the content ID as the key".
  void set_stream_token(const std::string &token, const std::string &content_id) {
    const std::lock_guard<std::mutex> guard(lock_);
    token_id_map_[content_id] = token;
  }
  // Seed S2, line 21: the page says "tokens can be removed from tokenIDMap when they are no longer required".
  void remove(const std::string &content_id) {
    const std::lock_guard<std::mutex> guard(lock_);
    token_id_map_.erase(content_id);
  }
  // Seed S2, line 19: generateHTTPHeaders(assetID). The asset ID is "base-64 encoded JSON which includes the SSP
  // content ID".
  void http_headers(usher::headers_request request) override {
    const auto id = usher::content_id(request.asset_id(), usher::content_id_rule::ssp);
    const std::lock_guard<std::mutex> guard(lock_);
    const auto found = token_id_map_.find(std::string(id.begin(), id.end()));
    if (found != token_id_map_.end()) // S2:19  "The stream's token can then be pulled from the map"
      request.answer("nv-authorizations: " + found->second);
  }

private:
  std::mutex lock_;
  std::map<std::string, std::string> token_id_map_;
};

// S2:5  "create two players"
struct screen {
  usher::player player;
  usher::playback item;

  // Seed S2, line 23: the page says "the clear stream does not require a license and so does not have a token or
  // content ID".
  void play_clear(const char *clip) {
    usher::playback_options stream;
    stream.clear = true;
    item = player.play(std::move(stream));
    decode(clip, "");
  }

  // Seed S2, line 19: plays an encrypted stream. The sentence "When a license request is made ..." describes this.
  void play(const char *clip, const std::string &skd) {
    const std::string asset_id = skd.substr(std::string("skd://").size());
    try {
      item = player.play({});
      const auto content_id = item.get_content_id(skd);
      spc asked;
      cdm_make_spc(&asked, nullptr, 0, content_id.data().data(), content_id.data().size());
      const auto ckc = item.get_license({usher::key_system::fairplay, {asked.bytes, asked.size},
          usher::license_type::request, usher::milliseconds(0), asset_id});
      cdm_play(clip, &asked, ckc.data().data(), ckc.data().size());
    } catch (const usher::error &error) { std::printf("no licence: %s\n", usher::status_name(error.status())); }
  }
};

int main(int argc, char **argv) {
  if (argc < 5 || !main_queue_open()) return 2;
  const std::string kind = argv[1];
  usher::default_options urls;
  urls.certificate_url = argv[2];
  urls.license_url = argv[3];
  usher::ssp_options ssp;
  ssp.certificate_url = argv[2];
  ssp.license_url = argv[3];
  ssp.ssm_url = argv[4];
  const auto own = std::make_shared<multi_instance_delegate>();
  usher::context drm_manager; // OTVDRMManager.shared
  usher::delegate license_delegate;
  if (kind == "default") license_delegate = drm_manager.new_default_delegate(urls); // S2:13
  if (kind == "own") license_delegate = drm_manager.new_common_delegate(urls, own); // S2:15
  if (kind == "library") license_delegate = drm_manager.new_multi_instance_delegate(ssp);
  if (kind != "none") drm_manager.set_delegate(license_delegate);
  screen screens[2];
  for (auto &screen : screens) screen.player = drm_manager.new_player();
  for (action next; main_queue_next(&next);) {
    screen &at = screens[std::string(word(&next, 1)) == "1"];
    if (is(&next, "header")) license_delegate.set_http_header("nv-authorizations", word(&next, 1)); // S2:17
    if (is(&next, "token")) { // S2:17
      if (kind == "own") own->set_stream_token(word(&next, 1), word(&next, 2));
      else license_delegate.tokens().set(word(&next, 2), word(&next, 1));
    }
    if (is(&next, "remove")) { // S2:21
      if (kind == "own") own->remove(word(&next, 1));
      else license_delegate.tokens().remove(word(&next, 1));
    }
    if (is(&next, "play")) at.play(word(&next, 2), word(&next, 3));
    if (is(&next, "clear")) at.play_clear(word(&next, 2));
    if (is(&next, "stop")) at.player.stop();
  }
}
