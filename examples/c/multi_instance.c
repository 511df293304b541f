/*
 * multi_instance.c - plays two encrypted streams at once, each with its own content token, key and SSM session.
 *
 *   cc -pthread multi_instance.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) \
 *      -o multi_instance
 *   ./multi_instance LICENSE_URL SSM_URL CLIP CONTENT_ID CONTENT_TOKEN KEY_ID \
 *      PREVIEW CONTENT_ID CONTENT_TOKEN KEY_ID      (key ids: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <pthread.h>
#include <usher/usher.h>

struct stream {
  usher_player *player;
  char **argv;
  pthread_t thread;
  int failed;
};

static void *play(void *user_data) {
  struct stream *stream = user_data;
  const char *clip = stream->argv[0], *content_id = stream->argv[1], *key_id = stream->argv[3];
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  char challenge[128];
  if (!challenge_for(key_id, challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", key_id), NULL;
  usher_playback_options item = {
      .struct_size = sizeof item, .content_id = (const uint8_t *)content_id, .content_id_size = strlen(content_id)};
  usher_license_request request = {.struct_size = sizeof request,
      .key_system = USHER_KEY_SYSTEM_CLEARKEY,
      .payload = (const uint8_t *)challenge,
      .payload_size = strlen(challenge)};
  int32_t status =
      usher_player_play(stream->player, &item, &playback); /* the delegate has the token for this content id */
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  stream->failed = status ? fprintf(stderr, "%s: %s\n", content_id, usher_status_message(status))
                          : clip_play(clip, licence.data, licence.data_size, playback);
  usher_playback_close(playback, USHER_CLOSE_DEFAULT);
  usher_response_free(response);
  usher_playback_free(playback);
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 11)
    return fprintf(
               stderr, "usage: %s LICENSE_URL SSM_URL  CLIP CONTENT_ID CONTENT_TOKEN KEY_ID  PREVIEW ...\n", argv[0]),
           2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  struct stream streams[2] = {{.argv = argv + 3, .failed = 1}, {.argv = argv + 7, .failed = 1}};
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[1], .ssm_url = argv[2]};
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_multi_instance_delegate_new(context, &ssp, NULL, &delegate);
  if (!status) status = usher_context_set_delegate(context, delegate);
  for (int i = 0; i < 2 && !status; i++) {
    const char *content_id = streams[i].argv[1];
    status =
        usher_delegate_set_stream_token(delegate, (const uint8_t *)content_id, strlen(content_id), streams[i].argv[2]);
    if (!status) status = usher_player_new(context, &streams[i].player);
  }
  if (status) return fprintf(stderr, "%s\n", usher_status_message(status)), 1;
  for (int i = 0; i < 2; i++) pthread_create(&streams[i].thread, NULL, play, &streams[i]);
  for (int i = 0; i < 2; i++) pthread_join(streams[i].thread, NULL);
  usher_context_close(context, 0, NULL); /* waits until both sessions are torn down */
  usher_context_free(context);
  return streams[0].failed || streams[1].failed;
}
