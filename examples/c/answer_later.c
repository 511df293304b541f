/*
 * answer_later.c - plays an encrypted clip under a session; another thread answers the library's questions later.
 *
 *   cc -pthread answer_later.c $(pkg-config --cflags --libs usher libavformat libavcodec libavutil json-c) \
 *      -o answer_later
 *   ./answer_later CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id: 32 hex digits)
 * SPDX-License-Identifier: Apache-2.0
 */
#include "challenge.h"
#include "clip.h" /* decodes the clip; in your app, the player does this */
#include <pthread.h>
#include <unistd.h>
#include <usher/usher.h>

struct question {
  usher_completion id;
  const char *token, *payload;
};
static int questions[2]; /* a pipe to the answering thread */

static void *answer(void *unused) {
  for (struct question q; read(questions[0], &q, sizeof q) == sizeof q;) {
    /* In your app, ask the operator's back end or the CDM here. An answer after the deadline or after close gets
     * USHER_E_INVALID_COMPLETION and does nothing. */
    av_usleep(50000);
    int32_t status = q.token ? usher_complete_token(q.id, q.token)
                             : usher_complete_payload(q.id, (const uint8_t *)q.payload, strlen(q.payload));
    printf("%s: answered later, %s\n", q.token ? "token" : "payload", usher_status_name(status));
  }
  return unused;
}
static void on_token(usher_completion id, usher_playback *playback, uint64_t tag, void *token) {
  (void)playback, (void)tag;
  if (write(questions[1], &(struct question){id, token, NULL}, sizeof(struct question)) < 0)
    usher_complete_token(id, NULL); /* no token */
}
static void on_payload(
    usher_completion id, usher_playback *playback, const char *key_system, uint64_t tag, void *challenge) {
  (void)playback, (void)key_system, (void)tag;
  if (write(questions[1], &(struct question){id, NULL, challenge}, sizeof(struct question)) < 0)
    usher_complete_payload(id, NULL, 0);
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: %s CLIP LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  usher_response *response = NULL;
  usher_response_info licence = USHER_RESPONSE_INFO_INIT;
  pthread_t other;
  char challenge[128];
  if (!challenge_for(argv[5], challenge)) return fprintf(stderr, "%s: a key id has 32 hex digits\n", argv[5]), 2;
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[2], .ssm_url = argv[3]};
  /* `item` has no token, so the library asks the delegate's token callback. */
  usher_playback_options item = {.struct_size = sizeof item, .payload = on_payload, .user_data = challenge};
  usher_license_request request = {.struct_size = sizeof request, .key_system = USHER_KEY_SYSTEM_CLEARKEY};
  request.payload = (const uint8_t *)challenge, request.payload_size = strlen(challenge);
  if (pipe(questions) != 0 || pthread_create(&other, NULL, answer, NULL) != 0) return perror(argv[0]), 1;
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_ssp_delegate_new(context, &ssp, &delegate);
  if (!status) status = usher_delegate_set_token_callback(delegate, on_token, argv[4], NULL);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  /* Waits for the token, the session and the licence. */
  if (!status) status = usher_playback_get_license(playback, &request, &response);
  if (!status) status = usher_response_get(response, &licence);
  int failed = status ? fprintf(stderr, "%s\n", usher_status_message(status))
                      : clip_play(argv[1], licence.data, licence.data_size, playback);
  usher_context_free(context); /* tears the session down, frees everything in the context */
  return close(questions[1]), pthread_join(other, NULL), failed != 0;
}
