/*
 * customer_ssm.cpp - the application's own session management, ported line by line to C++. Arguments, actions and
 * output are those of customer_ssm.c. S3:53 is line 53 of document S3 (see README.md).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "av_player.h"
#include "http.h"
#include <usher/usher.hpp>

// S3:22  CustomerCallback(licenseURL: licenseURL, ssmServerURL: ssmServerURL)
struct customer_callback {
  std::string license_url, ssm_server_url;
  usher::renew_type renew_type = usher::customer_license().renewal; // S3:112  "defualt value is ... enforced"
  double heartbeat_period = 0; // S3:92
  std::string content_token, session_token;
  usher::playback_ref item;

  // Keeps the newest session token of the operator's servers.
  void keep_session_token(const http_reply &reply) {
    if (json_object *token = http_member(&reply, "sessionToken")) session_token = json_object_get_string(token);
  }

  // Seed S3, line 53: the page says "It will be necessary to perform a secure session setup before acquiring the
  // licence for the first time".
  bool session_setup() {
    http_reply reply;
    http_ask(&reply, ssm_server_url.c_str(), "/v1/sessions/setup", content_token.c_str(), "{}", 2);
    keep_session_token(reply);
    heartbeat_period = json_object_get_double(http_member(&reply, "heartbeat"));
    json_object_put(reply.json);
    return reply.status == 200;
  }

  // Seed S3, line 43: the callback that the page declares as func license(keySystem: String, payload: Data,
  // licenseType: OTVLicenseRequestType) -> OTVSSMLicenseResponse
  void license(usher::customer_request request) {
    usher::customer_license response; // S3:113  license: nil, heartbeat: 0
    const bool renewal = request.type() == usher::license_type::renewal; // S3:64
    const bool fairplay = request.key_system() == "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2"; // S3:83
    uint8_t ckc[4096];
    std::printf(
        "license(%s, %s)\n", fairplay ? "FairPlay" : request.key_system().c_str(), renewal ? "renewal" : "request");
    if (renewal || session_setup()) {
      const std::string tokens = renewal ? session_token : content_token + "," + session_token;
      http_reply reply;
      http_ask(&reply, license_url.c_str(), renewal ? "?renew=true" : "", tokens.c_str(), request.payload().data(),
          request.payload().size());
      keep_session_token(reply);
      response.license = {ckc, http_bytes(&reply, "CkcMessage", ckc, sizeof ckc)}; // S3:97  "is the CKC message"
      json_object_put(reply.json);
    }
    response.heartbeat = std::chrono::duration<double>(heartbeat_period); // S3:113  init(license:heartbeat:renewType:)
    response.renewal = renew_type;
    request.answer(response);
  }

  // Seed S3, line 48: the callback func heartbeat(), which "has no parameters or return values" (line 101).
  void heartbeat() {
    http_reply reply;
    http_ask(&reply, ssm_server_url.c_str(), "/v1/sessions/heartbeat", session_token.c_str(), "{}", 2);
    keep_session_token(reply);
    json_object_put(reply.json);
    std::printf("heartbeat(): %ld\n", reply.status);
    if (reply.status >= 400) item.close(); // S3:101  "the application must take any necessary actions"
  }
};

static void play(const usher::player &player, usher::playback &item, customer_callback &callback, const char *clip,
    const std::string &skd) {
  usher::playback_options stream;
  stream.renewed = [](usher::playback_ref, const usher::response_info &ckc, uint64_t) { // a renewed licence for the CDM
    std::printf("renewed: CKC of %d bytes\n", static_cast<int>(ckc.data.size()));
  };
  try {
    item = player.play(std::move(stream));
    callback.item = item;
    const auto certificate = item.get_certificate();
    const auto content_id = item.get_content_id(skd);
    spc asked;
    cdm_make_spc(&asked, certificate.data().data(), certificate.data().size(), content_id.data().data(),
        content_id.data().size());
    const auto ckc = item.get_license({usher::key_system::fairplay, {asked.bytes, asked.size}}); // ckcMessage()
    cdm_play(clip, &asked, ckc.data().data(), ckc.data().size());
  } catch (const usher::error &error) { std::printf("no licence: %s\n", usher::status_name(error.status())); }
}

int main(int argc, char **argv) {
  if (argc < 5 || !main_queue_open()) return 2;
  curl_global_init(CURL_GLOBAL_ALL);
  // S3:19  getFairplayCertificate(certificateURL: fairplayCertificateURL)
  http_reply fairplay_certificate;
  http_ask(&fairplay_certificate, argv[1], "", "", nullptr, 0);
  customer_callback callback;
  callback.license_url = argv[2];
  callback.ssm_server_url = argv[3];
  if (std::string(argv[4]) == "heartbeat") callback.renew_type = usher::renew_type::heartbeat;
  if (std::string(argv[4]) == "enforced") callback.renew_type = usher::renew_type::enforced;
  usher::context drm_manager; // OTVDRMManager.shared
  // S3:20  OTVCustomerSSMDelegate(certificate: fairplayCertificate)
  usher::customer_options init;
  init.certificate = {fairplay_certificate.body, fairplay_certificate.size};
  const auto customer_ssm_delegate = drm_manager.new_customer_delegate(std::move(init));
  // Seed S3, line 23: customerSSMDelegate.setCallback(customerCallback) sets "a pair of callbacks" (line 10).
  usher::customer_callbacks callbacks;
  callbacks.license = [&](usher::customer_request request) { callback.license(std::move(request)); };
  callbacks.heartbeat = [&] { callback.heartbeat(); };
  customer_ssm_delegate.set_callbacks(std::move(callbacks));
  // S3:25  OTVDRMManager.shared.setLicenseDelegate(customerSSMDelegate)
  drm_manager.set_delegate(customer_ssm_delegate);
  drm_manager.add_observer([](const usher::event &event) { std::printf("%s\n", event.name()); });
  const auto player = drm_manager.new_player();
  usher::playback item;
  for (action next; main_queue_next(&next);) {
    if (is(&next, "play")) {
      callback.content_token = word(&next, 3);
      play(player, item, callback, word(&next, 1), word(&next, 2));
    }
    if (is(&next, "stop")) { // S3:10  "The client application handles session management"
      item.close();
      item.wait_closed();
      http_reply done;
      http_ask(
          &done, callback.ssm_server_url.c_str(), "/v1/sessions/teardown", callback.session_token.c_str(), "{}", 2);
      json_object_put(done.json);
      std::printf("stopped: %ld\n", done.status);
    }
  }
  drm_manager.close(); // no callback runs afterwards
}
