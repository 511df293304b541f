// minimal.cpp - one playback under a concurrent-stream session: session set-up, licence, heartbeats, teardown.
//
//   c++ -std=c++17 minimal.cpp $(pkg-config --cflags --libs usher) -o minimal
//   ./minimal LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
//
// SPDX-License-Identifier: Apache-2.0
#include "../c/challenge.h"
#include <atomic>
#include <chrono>
#include <iostream>
#include <thread>
#include <usher/usher.hpp>

int main(int argc, char **argv) {
  if (argc != 5) return std::cerr << "usage: " << argv[0] << " LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", 2;
  char text[128];
  if (!challenge_for(argv[4], text)) return std::cerr << argv[4] << ": a key id has 32 hex digits\n", 2;
  const std::string challenge = text;
  std::atomic<bool> stop = false;
  try {
    usher::context context;
    context.add_observer([&](const usher::event &event) {
      std::cout << event.name() << ' ' << event.error.message << '\n';
      if (event.error.must_stop) stop = true;
    });
    usher::ssp_options ssp;
    ssp.license_url = argv[1];
    ssp.ssm_url = argv[2];
    const auto delegate = context.new_ssp_delegate(ssp);
    context.set_delegate(delegate);

    const auto screen = context.new_player();
    usher::playback_options item;
    item.content_token = argv[3];
    const auto playback = screen.play(item); // sets the session up in the background
    const auto licence =
        playback.get_license({usher::key_system::clearkey, challenge}); // waits for the session, then for the licence
    std::cout << "a licence of " << licence.data().size() << " bytes\n";
    for (int frame = 0; frame < 40 && !stop; frame++)
      std::this_thread::sleep_for(std::chrono::milliseconds(40)); // decode; the library sends heartbeats
    context.close(); // waits until the session is torn down
  } catch (const usher::error &error) {
    const auto words = usher::explain(error.detail());
    std::cerr << words.summary << ' ' << words.advice << " (" << usher::status_name(error.status()) << ": "
              << error.what() << ")\n";
    return 1;
  }
}
