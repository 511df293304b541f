/*
 * ssp_v2_delegate.cpp - the licence delegate for SSM V2, ported line by line to C++. Arguments, actions and output are
 * those of ssp_v2_delegate.c. S1:12 is line 12 of document S1 (see README.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include <chrono>
#include <usher/usher.hpp>

struct app {
  usher::context drm_manager; // OTVDRMManager.shared
  usher::player player; // OTVAVPlayer
  usher::playback item; // OTVAVPlayerItem
  std::string clip, url, token;

  // Seed S1, line 16: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or back.
  void key_request() {
    try {
      const auto certificate = item.get_certificate();
      const auto content_id = item.get_content_id(url);
      spc asked;
      cdm_make_spc(&asked, certificate.data().data(), certificate.data().size(), content_id.data().data(),
          content_id.data().size());
      const auto ckc = item.get_license({usher::key_system::fairplay, {asked.bytes, asked.size},
          usher::license_type::request, std::chrono::milliseconds(0), url});
      cdm_play(clip.c_str(), &asked, ckc.data().data(), ckc.data().size());
    } catch (const usher::error &error) { // S1:23  "should not continue"
      std::printf("no licence: %s\n", usher::status_name(error.status()));
    }
  }

  // Seed S1, line 12: the page says "every playback will have an SSM session".
  void play() {
    usher::playback_options stream;
    stream.content_token = token;
    item = player.play(std::move(stream));
    std::printf("play: USHER_OK\n");
    key_request();
  }
};

// Seed S1, line 28: the method that the page declares as @objc func didReceiveSSMError(_ notification: NSNotification)
static void did_receive_ssm_error(const usher::event &notification) {
  const auto ssm_error = notification.error.service_code; // S1:31  userInfo?["errorCode"]
  const auto code = notification.error.http_status; // S1:33  userInfo?["code"]
  const auto &message = notification.error.message; // S1:35  userInfo?["message"]
  std::printf("%s: error %d HTTP status code %d and message %s\n", notification.name(), static_cast<int>(ssm_error),
      static_cast<int>(code), message.c_str());
  // Seed S1, line 43: the page says "stop playback and attempt to zap to the same stream".
  if (notification.type == usher::event_type::heartbeat_error) main_queue_post("zap\n");
}

// S1:25-27  NotificationCenter.default.addObserver(...)
static void observer(const usher::event &event) {
  switch (event.type) {
  case usher::event_type::setup_error:
  case usher::event_type::heartbeat_error:
  case usher::event_type::teardown_error: did_receive_ssm_error(event); break;
  default: std::printf("%s\n", event.name());
  }
}

int main(int argc, char **argv) {
  if (argc < 4 || !main_queue_open()) return 2;
  // S1:11  OTVSSPLicenseDelegateV2.init(certificateURL:licenseURL:ssmServerURL)
  usher::ssp_v2_options init;
  init.ssp.certificate_url = argv[1];
  init.ssp.license_url = argv[2];
  init.ssp.ssm_url = argv[3];
  app me;
  const auto license_delegate = me.drm_manager.new_ssp_v2_delegate(init);
  if (argc > 4) { // S1:15  setToken(sspTokenCallback:)
    const std::string fresh_token = argv[4];
    license_delegate.set_token_callback([=](usher::token_request request) { // S1:17  func token() -> String?
      std::printf("token()\n");
      if (fresh_token != "-") request.answer(fresh_token);
    });
  }
  me.drm_manager.set_delegate(license_delegate);
  me.drm_manager.add_observer(observer);
  me.player = me.drm_manager.new_player();
  for (action next; main_queue_next(&next);) {
    if (is(&next, "play")) {
      me.clip = word(&next, 1), me.url = word(&next, 2), me.token = word(&next, 3);
      me.play();
    }
    if (is(&next, "airplay")) me.key_request(); // S1:16
    if (is(&next, "background")) me.drm_manager.suspend(); // S1:40
    if (is(&next, "foreground")) me.drm_manager.resume(); // S1:42
    if (is(&next, "picture-in-picture")) std::printf("the SSM service as normal\n"); // S1:44: nothing to do
    if (is(&next, "stop") || is(&next, "zap")) { // S1:12  "When the playback stops, ..."
      me.player.stop();
      std::printf("stopped\n");
    }
    if (is(&next, "zap")) me.play(); // S1:43
    if (is(&next, "teardown")) { // S1:12  "... Application will need to teardown the session specifically"
      me.item.close(usher::close_mode::teardown);
      std::printf("teardown: USHER_OK\n");
    }
  }
}
