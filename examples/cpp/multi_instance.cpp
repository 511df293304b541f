// multi_instance.cpp - the main picture and a preview: plays two encrypted streams at once, each with its own content
// token, key and SSM session.
//
//   flags=$(pkg-config --cflags --libs usher libavformat libavcodec libavutil)
//   c++ -std=c++17 -pthread multi_instance.cpp $flags -o multi_instance
//   ./multi_instance LICENSE_URL SSM_URL CLIP CONTENT_ID CONTENT_TOKEN KEY_ID
//      PREVIEW CONTENT_ID CONTENT_TOKEN KEY_ID      (one line; key ids: 32 hex digits)
//
// SPDX-License-Identifier: Apache-2.0
#include "../c/challenge.h"
#include "../c/clip.h" // decodes the clip; in your app, the player does this
#include <future>
#include <iostream>
#include <usher/usher.hpp>

struct stream {
  std::string clip, content_id, token, key_id;
};

// Returns whether the stream was played to its end.
static bool play(const usher::player &screen, const stream &stream) try {
  usher::playback_options item;
  item.content_id = stream.content_id; // the delegate has the token for this content id
  const auto playback = screen.play(std::move(item));
  char text[128];
  if (!challenge_for(stream.key_id.c_str(), text))
    return std::cerr << stream.key_id << ": a key id has 32 hex digits\n", false;
  const std::string challenge = text;
  const auto licence = playback.get_license({usher::key_system::clearkey, challenge});
  const bool played =
      clip_play(stream.clip.c_str(), licence.data().data(), licence.data().size(), playback.handle()) == 0;
  playback.close();
  return played;
} catch (const usher::error &error) {
  const auto words = usher::explain(error.detail());
  std::cerr << stream.content_id << ": " << words.summary << ' ' << words.advice << '\n';
  return false;
}

int main(int argc, char **argv) try {
  if (argc != 11)
    return std::cerr << "usage: " << argv[0]
                     << " LICENSE_URL SSM_URL  CLIP CONTENT_ID CONTENT_TOKEN KEY_ID  PREVIEW ...\n",
           2;
  const stream main_picture{argv[3], argv[4], argv[5], argv[6]}, preview{argv[7], argv[8], argv[9], argv[10]};
  usher::ssp_options ssp;
  ssp.license_url = argv[1], ssp.ssm_url = argv[2];
  usher::context context;
  const auto delegate = context.new_multi_instance_delegate(ssp);
  for (const auto *stream : {&main_picture, &preview}) delegate.tokens().set(stream->content_id, stream->token);
  context.set_delegate(delegate);
  const auto large_screen = context.new_player(), small_screen = context.new_player();
  auto preview_played = std::async(std::launch::async, [&] { return play(small_screen, preview); });
  const bool main_played = play(large_screen, main_picture);
  const bool both = preview_played.get() && main_played;
  context.close(); // waits until both sessions are torn down
  return both ? 0 : 1;
} catch (const usher::error &error) { return std::cerr << error.what() << '\n', 1; }
