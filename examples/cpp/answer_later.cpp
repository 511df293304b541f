// answer_later.cpp - plays an encrypted clip under a session; other threads answer the library's questions later.
//
//   flags=$(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c)
//   c++ -std=c++17 -pthread answer_later.cpp $flags -o answer_later
//   ./answer_later CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID       (key id: 32 hex digits)
//
// SPDX-License-Identifier: Apache-2.0
#include "../c/challenge.h"
#include "../c/clip.h" // decodes the clip; in your app, the player does this
#include <chrono>
#include <future>
#include <iostream>
#include <list>
#include <thread>
#include <usher/usher.hpp>

int main(int argc, char **argv) try {
  if (argc != 6) return std::cerr << "usage: " << argv[0] << " CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", 2;
  char text[128];
  if (!challenge_for(argv[5], text)) return std::cerr << argv[5] << ": a key id has 32 hex digits\n", 2;
  const std::string token = argv[4], challenge = text;
  std::list<std::future<void>> answers; // one playback asks one question at a time: no lock needed
  const auto later = [&answers](auto request, const char *what, const std::string &answer) {
    answers.push_back(std::async(std::launch::async, [question = std::move(request), what, &answer]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(50)); // your app: ask the back end, or the CDM
      const bool taken = question.answer(answer); // false: after the deadline or after close
      std::cout << what << ": answered later, " << (taken ? "in time" : "too late") << std::endl;
    }));
  };

  usher::context context;
  context.add_observer(
      [](const usher::event &event) { std::cout << event.name() << ' ' << event.error.message << std::endl; });
  usher::ssp_options ssp;
  ssp.license_url = argv[2], ssp.ssm_url = argv[3];
  const auto delegate = context.new_ssp_delegate(ssp);
  delegate.set_token_callback([&](usher::token_request request) { later(std::move(request), "token", token); });
  usher::playback_options item; // without a token: the library calls the token callback
  item.delegate = &delegate;
  item.payload = [&](usher::payload_request request) { later(std::move(request), "payload", challenge); };
  const auto screen = context.new_player();
  const auto playback = screen.play(std::move(item));
  const auto licence = playback.get_license(
      {usher::key_system::clearkey, challenge}); // waits for the token, the session and the licence
  const int failed = clip_play(argv[1], licence.data().data(), licence.data().size(), playback.handle());
  context.close(); // waits until the session is torn down
  for (auto &answer : answers) answer.get();
  return failed;
} catch (const usher::error &error) { return std::cerr << error.what() << '\n', 1; }
