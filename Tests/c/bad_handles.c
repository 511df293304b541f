/*
 * bad_handles.c - what every function that takes a handle says to NULL, garbage, freed and wrong-kind ones: refused, nothing handed out, each user_data
 * destroyed once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "support.h"

static void on_event(const usher_event *event, void *user_data) { (void)event, (void)user_data; }
static void on_license(usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data) {
  (void)playback, (void)response, (void)tag, (void)user_data;
}
static void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  (void)completion, (void)playback, (void)tag, (void)user_data;
}
static void on_hook(const usher_hook_call *call, void *user_data) { (void)call, (void)user_data; }
static void on_customer(const usher_customer_request *request, void *user_data) { (void)request, (void)user_data; }
static void on_spc(const usher_spc_request *request, void *user_data) { (void)request, (void)user_data; }

/* Every function that takes a handle, given one that is none. */
static void refused(const char *what, void *bad, int null) {
  usher_context *context = (usher_context *)bad;
  usher_delegate *delegate = (usher_delegate *)bad;
  usher_player *player = (usher_player *)bad;
  usher_playback *playback = (usher_playback *)bad;
  usher_response *response = (usher_response *)bad;
  usher_loader *loader = (usher_loader *)bad;
  const uint8_t *bytes = (const uint8_t *)"skd://one";
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_ssp_v2_options v2 = USHER_SSP_V2_OPTIONS_INIT;
  usher_default_options plain = USHER_DEFAULT_OPTIONS_INIT;
  usher_delegate_hooks hooks = USHER_DELEGATE_HOOKS_INIT;
  usher_customer_options customer = USHER_CUSTOMER_OPTIONS_INIT;
  usher_loader_options loading = USHER_LOADER_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_license_request request = a_request(USHER_KEY_SYSTEM_WIDEVINE);
  usher_response_info info = USHER_RESPONSE_INFO_INIT;
  usher_pending pending = USHER_PENDING_INIT;
  usher_delegate *out_delegate, *out_other;
  usher_loader *out_loader;
  usher_player *out_player;
  usher_playback *out_playback;
  usher_response *out_response;
  uint32_t number;
  size_t count;
  int32_t state;
  int fd, destroyed = 0, bad_count = 0, index;
  const int32_t free_answer = null ? USHER_OK : USHER_E_INVALID_HANDLE;
  ssp.license_url = license_url();
  v2.ssp = &ssp;
  plain.license_url = license_url();
  hooks.license = on_hook;
  customer.license = on_customer;
  loading.spc = on_spc;
  loading.license_url = license_url();
  item.content_token = "token";
  item.user_data = customer.user_data = loading.user_data = &destroyed;
  item.destroy = customer.destroy = loading.destroy = count_destroy;
  {
    struct {
      const char *name;
      int32_t found, wanted;
    } calls[] = {
        {"context_close", usher_context_close(context, 10, &number), USHER_E_INVALID_HANDLE},
        {"context_pump", usher_context_pump(context, &number), USHER_E_INVALID_HANDLE},
        {"context_pump_fd", usher_context_pump_fd(context, &fd), USHER_E_INVALID_HANDLE},
        {"context_add_observer", usher_context_add_observer(context, on_event, &destroyed, count_destroy, NULL),
            USHER_E_INVALID_HANDLE},
        {"context_remove_observer", usher_context_remove_observer(context, 1), USHER_E_INVALID_HANDLE},
        {"context_set_delegate", usher_context_set_delegate(context, NULL), USHER_E_INVALID_HANDLE},
        {"ssp_delegate_new", usher_ssp_delegate_new(context, &ssp, &out_delegate), USHER_E_INVALID_HANDLE},
        {"delegate_set_token_callback",
            usher_delegate_set_token_callback(delegate, on_token, &destroyed, count_destroy), USHER_E_INVALID_HANDLE},
        {"player_new", usher_player_new(context, &out_player), USHER_E_INVALID_HANDLE},
        {"player_play", usher_player_play(player, &item, &out_playback), USHER_E_INVALID_HANDLE},
        {"player_stop", usher_player_stop(player, 0), USHER_E_INVALID_HANDLE},
        {"playback_close", usher_playback_close(playback, 0), USHER_E_INVALID_HANDLE},
        {"playback_wait_session", usher_playback_wait_session(playback, 10), USHER_E_INVALID_HANDLE},
        {"playback_wait_closed", usher_playback_wait_closed(playback, 10), USHER_E_INVALID_HANDLE},
        {"playback_session_state", usher_playback_session_state(playback, &state), USHER_E_INVALID_HANDLE},
        {"playback_request_license",
            usher_playback_request_license(playback, &request, on_license, &destroyed, count_destroy),
            USHER_E_INVALID_HANDLE},
        {"playback_get_license", usher_playback_get_license(playback, &request, &out_response), USHER_E_INVALID_HANDLE},
        {"playback_get_certificate", usher_playback_get_certificate(playback, 10, &out_response),
            USHER_E_INVALID_HANDLE},
        {"playback_request_certificate",
            usher_playback_request_certificate(playback, on_license, &destroyed, count_destroy),
            USHER_E_INVALID_HANDLE},
        {"default_delegate_new", usher_default_delegate_new(context, &plain, &out_other), USHER_E_INVALID_HANDLE},
        {"common_delegate_new",
            usher_common_delegate_new(context, &plain, &hooks, &destroyed, count_destroy, &out_other),
            USHER_E_INVALID_HANDLE},
        {"ssp_v2_delegate_new", usher_ssp_v2_delegate_new(context, &v2, &out_other), USHER_E_INVALID_HANDLE},
        {"multi_instance_delegate_new", usher_multi_instance_delegate_new(context, &ssp, NULL, &out_other),
            USHER_E_INVALID_HANDLE},
        {"customer_delegate_new", usher_customer_delegate_new(context, &customer, &out_other), USHER_E_INVALID_HANDLE},
        {"context_add_loader", usher_context_add_loader(context, &loading, &out_loader), USHER_E_INVALID_HANDLE},
        {"context_suspend", usher_context_suspend(context), USHER_E_INVALID_HANDLE},
        {"context_resume", usher_context_resume(context), USHER_E_INVALID_HANDLE},
        {"context_network_changed", usher_context_network_changed(context), USHER_E_INVALID_HANDLE},
        {"delegate_set_http_header", usher_delegate_set_http_header(delegate, "A", "b"), USHER_E_INVALID_HANDLE},
        {"delegate_set_hooks", usher_delegate_set_hooks(delegate, &hooks, &destroyed, count_destroy),
            USHER_E_INVALID_HANDLE},
        {"delegate_set_stream_token", usher_delegate_set_stream_token(delegate, bytes, 9, "x"), USHER_E_INVALID_HANDLE},
        {"delegate_get_stream_token", usher_delegate_get_stream_token(delegate, bytes, 9, &out_response),
            USHER_E_INVALID_HANDLE},
        {"delegate_remove_stream_token", usher_delegate_remove_stream_token(delegate, bytes, 9),
            USHER_E_INVALID_HANDLE},
        {"delegate_clear_stream_tokens", usher_delegate_clear_stream_tokens(delegate), USHER_E_INVALID_HANDLE},
        {"delegate_count_stream_tokens", usher_delegate_count_stream_tokens(delegate, &count), USHER_E_INVALID_HANDLE},
        {"playback_set_content_token", usher_playback_set_content_token(playback, "x"), USHER_E_INVALID_HANDLE},
        {"playback_suspend", usher_playback_suspend(playback), USHER_E_INVALID_HANDLE},
        {"playback_resume", usher_playback_resume(playback), USHER_E_INVALID_HANDLE},
        {"playback_get_content_id", usher_playback_get_content_id(playback, bytes, 9, 10, &out_response),
            USHER_E_INVALID_HANDLE},
        {"playback_request_content_id",
            usher_playback_request_content_id(playback, bytes, 9, on_license, &destroyed, count_destroy),
            USHER_E_INVALID_HANDLE},
        {"playback_load_resource",
            usher_playback_load_resource(playback, bytes, 9, 0, on_license, &destroyed, count_destroy, NULL),
            USHER_E_INVALID_HANDLE},
        {"playback_get_resource", usher_playback_get_resource(playback, bytes, 9, 10, &out_response),
            USHER_E_INVALID_HANDLE},
        {"playback_cancel_load", usher_playback_cancel_load(playback, 1), USHER_E_INVALID_HANDLE},
        {"response_get", usher_response_get(response, &info), USHER_E_INVALID_HANDLE},
        {"context_advance", usher_context_advance(context, 1, 0), USHER_E_INVALID_HANDLE},
        {"context_jump", usher_context_jump(context, 1), USHER_E_INVALID_HANDLE},
        {"context_settle", usher_context_settle(context, 0, 0, 10), USHER_E_INVALID_HANDLE},
        {"context_pending", usher_context_pending(context, &pending), USHER_E_INVALID_HANDLE},
        {"loader_free", usher_loader_free(loader), free_answer},
        {"response_free", usher_response_free(response), free_answer},
        {"playback_free", usher_playback_free(playback), free_answer},
        {"player_free", usher_player_free(player), free_answer},
        {"delegate_free", usher_delegate_free(delegate), free_answer},
        {"context_free", usher_context_free(context), free_answer},
    };
    for (index = 0; index < (int)(sizeof calls / sizeof *calls); index++) {
      if (calls[index].found == calls[index].wanted) continue;
      bad_count++;
      tell(0, "%s: usher_%s answers %s", what, calls[index].name, usher_status_name(calls[index].found));
    }
    tell(bad_count == 0, "%s: refused by all %d functions", what, index);
  }
  tell(out_delegate == NULL && out_other == NULL && out_loader == NULL && out_player == NULL && out_playback == NULL &&
           out_response == NULL,
      "%s: every out is NULL", what);
  tell(destroyed == 11, "%s: each user_data of a refused call was destroyed once (%d of 11)", what, destroyed);
}

int main(void) {
  usher_context *context;
  usher_player *player;
  static char memory[256];
  refused("NULL", NULL, 1);
  refused("a stack address", &context, 0);
  refused("a heap address", memory, 0);
  refused("all ones", (void *)UINTPTR_MAX, 0);
  refused("5", (void *)5, 0);
  context = new_context(USHER_CALLBACKS_THREADED);
  player = new_player(context);
  {
    usher_playback *wrong = (usher_playback *)(void *)context;
    int32_t state;
    answers(
        USHER_E_INVALID_HANDLE, usher_playback_session_state(wrong, &state), "a context where a playback is wanted");
    answers(USHER_E_INVALID_HANDLE, usher_context_free((usher_context *)(void *)player),
        "a player where a context is freed");
    answers(USHER_OK, usher_player_stop(player, 0), "the player lives on");
  }
  usher_player_free(player);
  refused("a freed player", player, 0);
  usher_context_free(context);
  refused("a freed context", context, 0);
  return failed != 0;
}
