/*
 * ssp_delegate.cpp - the SSP licence delegate with SSM v1, ported line by line to C++. Arguments, actions and output
 * are those of ssp_delegate.c. S0:18 is line 18 of document S0 (see README.md).
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

  // Seed S0, line 28: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or back.
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
    } catch (const usher::error &error) { // S0:6  "playback can not continue"
      std::printf("no licence: %s\n", usher::status_name(error.status()));
    }
  }

  // Seed S0, line 20: the page says "every playback will have an SSM session".
  void play() {
    usher::playback_options stream;
    stream.content_token = token;
    item = player.play(std::move(stream)); // S0:18  sync: "blocks the main thread"
    const bool active = item.state() == usher::session_state::active;
    std::printf("play: USHER_OK, session %s\n", active ? "active" : "pending");
    key_request();
  }

  // Seed S0, line 20: the page says "the player will release the session when OTVAVPlayerItem is de-initialised".
  void deinit_item() {
    const auto began = std::chrono::steady_clock::now();
    item = usher::playback();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    std::printf("stopped after %d ms\n", static_cast<int>(took.count()));
  }
};

// Seed S0, line 50: the method that the page declares as @objc func didReceiveSSMError(_ notification: NSNotification)
static void did_receive_ssm_error(const usher::event &notification) {
  const auto ssm_error = notification.error.service_code; // S0:53  userInfo?["errorCode"]
  const auto code = notification.error.http_status; // S0:55  userInfo?["code"]
  const auto &message = notification.error.message; // S0:57  userInfo?["message"]
  std::printf("%s: error %d HTTP status code %d and message %s\n", notification.name(), static_cast<int>(ssm_error),
      static_cast<int>(code), message.c_str());
  // Seed S0, line 70: the page says "stop playback and attempt to zap to the same stream".
  if (notification.type == usher::event_type::heartbeat_error) main_queue_post("zap\n");
}

// S0:46-48  NotificationCenter.default.addObserver(...)
static void observer(const usher::event &event) {
  switch (event.type) {
  case usher::event_type::setup_error:
  case usher::event_type::heartbeat_error:
  case usher::event_type::teardown_error: did_receive_ssm_error(event); break;
  default: std::printf("%s\n", event.name());
  }
}

int main(int argc, char **argv) {
  if (argc < 5 || !main_queue_open()) return 2;
  // S0:14  OTVSSPLicenseDelegate.init(certificateURL:licenseURL:ssmServerURL:syncSSMSetupTeardown:)
  usher::ssp_options init;
  init.certificate_url = argv[1];
  init.license_url = argv[2];
  init.ssm_url = argv[3]; // S0:16
  init.sync_setup_teardown = std::string(argv[4]) == "1"; // S0:18
  app me;
  const auto license_delegate = me.drm_manager.new_ssp_delegate(init);
  if (argc > 5) { // S0:26  setToken(sspTokenCallback:)
    const std::string fresh_token = argv[5];
    license_delegate.set_token_callback([=](usher::token_request request) { // S0:30  func token() -> String?
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
    if (is(&next, "airplay")) me.key_request(); // S0:28
    if (is(&next, "background")) me.drm_manager.suspend(); // S0:66
    if (is(&next, "foreground")) me.drm_manager.resume(); // S0:69
    if (is(&next, "picture-in-picture")) std::printf("the SSM service as normal\n"); // S0:73: nothing to do
    if (is(&next, "zap")) { // S0:70
      me.deinit_item();
      me.play();
    }
    if (is(&next, "stop")) me.deinit_item();
  }
}
