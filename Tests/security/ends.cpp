/*
 * ends.cpp - a host over https with global objects, whose destructors run after main has returned. See test_ends.py.
 *
 *   ends_cpp BASE_URL CA_FILE
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <optional>
#include <usher/usher.hpp>

static std::optional<usher::context> context;
static std::optional<usher::delegate> delegate;
static std::optional<usher::player> player;
static std::optional<usher::playback> playback;

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  usher::context_options options;
  options.ca_file = argv[2];
  context.emplace(options);
  usher::ssp_options server;
  server.license_url = argv[1];
  server.ssm_url = argv[1];
  delegate = context->new_ssp_delegate(server);
  player = context->new_player();
  usher::playback_options item;
  item.delegate = &*delegate;
  item.content_token = "content-token";
  playback = player->play(std::move(item));
  playback->wait_session();
  return 42;
}
