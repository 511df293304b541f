/*
 * answer_later.c - the content token comes from the operator's back end, which takes its time: the callback hands the question to another thread and
 * returns; that thread answers when it has the token.
 *
 *   cc -pthread answer_later.c $(pkg-config --cflags --libs usher) -o answer_later
 *   ./answer_later LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID      (key id in base64url)
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <usher/usher.h>

static const char *token; /* what the back end will say */

static void *ask_back_end(void *question) {
  struct timespec a_while = {0, 300000000};
  nanosleep(&a_while, NULL);
  int32_t status = usher_complete_token(*(usher_completion *)question, token); /* too late, or stopped meanwhile: USHER_E_INVALID_COMPLETION, no harm */
  printf("answered from another thread: %s\n", usher_status_name(status));
  free(question);
  return NULL;
}
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)playback, (void)tag;
  usher_completion *question = malloc(sizeof *question);
  if (question) *question = completion;
  printf("a token is asked for\n");
  if (!question || pthread_create(user_data, NULL, ask_back_end, question) != 0) usher_complete_token(completion, NULL); /* there is none */
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: %s LICENSE_URL SSM_URL CONTENT_TOKEN KEY_ID\n", argv[0]), 2;
  usher_context *context = NULL;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  pthread_t back_end;
  char challenge[128];
  snprintf(challenge, sizeof challenge, "{\"kids\":[\"%.64s\"],\"type\":\"temporary\"}", argv[4]);
  token = argv[3];
  usher_ssp_options ssp = {.struct_size = sizeof ssp, .license_url = argv[1], .ssm_url = argv[2]};
  usher_playback_options item = {.struct_size = sizeof item}; /* no token: the delegate's callback is asked */
  usher_license_request request = {
      .struct_size = sizeof request, .key_system = USHER_KEY_SYSTEM_CLEARKEY, .payload = (const uint8_t *)challenge, .payload_size = strlen(challenge)};
  int32_t status = usher_context_new(NULL, &context);
  if (!status) status = usher_ssp_delegate_new(context, &ssp, &delegate);
  if (!status) status = usher_delegate_set_token_callback(delegate, on_token, &back_end, NULL);
  if (!status) status = usher_context_set_delegate(context, delegate);
  if (!status) status = usher_player_new(context, &player);
  if (!status) status = usher_player_play(player, &item, &playback);
  if (!status) status = usher_playback_get_license(playback, &request, NULL); /* waits for the token, the session and the licence */
  if (!status) pthread_join(back_end, NULL);
  printf("licence: %s\n", usher_status_message(status));
  usher_context_free(context);
  return status != USHER_OK;
}
