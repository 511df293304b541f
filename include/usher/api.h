/** @file
 * api.h - the whole API as a table of functions, for hosts that dlopen() the library (also with RTLD_LOCAL) and link nothing of it.
 *
 *   void *library = dlopen("libusher.so.0", RTLD_NOW | RTLD_LOCAL);
 *   usher_get_api_fn get_api = (usher_get_api_fn)dlsym(library, "usher_get_api");
 *   const usher_api *usher = get_api(USHER_VERSION_MAJOR);
 *   usher->context_new(NULL, &context);
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_API_H
#define USHER_API_H

#include "base.h"
#include "error.h"
#include "event.h"
#include "context.h"
#include "delegate.h"
#include "hooks.h"
#include "tokens.h"
#include "customer.h"
#include "player.h"
#include "playback.h"
#include "license.h"
#include "content.h"
#include "loader.h"
#include "testing.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Every function by its name without "usher_"; the contracts stand at the functions. Only grows: look at struct_size before using a newer one. */
typedef struct usher_api {
  /** Size of this struct in the library. */
  size_t struct_size;
  /** @name Functions
   * @{ */
  /** The function of this name with "usher_" before it. */
  const char *(*version)(void);
  const char *(*status_name)(int32_t status);
  const char *(*status_message)(int32_t status);
  const char *(*origin_name)(int32_t origin);
  const char *(*operation_name)(int32_t operation);
  int32_t (*error_legacy_codes)(const usher_error *error, usher_legacy_codes *out);
  int32_t (*error_explain)(int32_t origin, int32_t status, int64_t service_code, usher_explanation *out);
  const char *(*event_name)(int32_t type);
  int32_t (*context_new)(const usher_context_options *options, usher_context **out);
  int32_t (*context_close)(usher_context *context, uint32_t timeout_ms, uint32_t *out_open);
  int32_t (*context_free)(usher_context *context);
  int32_t (*context_pump)(usher_context *context, uint32_t *out_ran);
  int32_t (*context_pump_fd)(usher_context *context, int *out_fd);
  int32_t (*context_add_observer)(
      usher_context *context, usher_event_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);
  int32_t (*context_remove_observer)(usher_context *context, uint64_t id);
  int32_t (*context_set_delegate)(usher_context *context, usher_delegate *delegate);
  int32_t (*context_suspend)(usher_context *context);
  int32_t (*context_resume)(usher_context *context);
  int32_t (*context_network_changed)(usher_context *context);
  int32_t (*ssp_delegate_new)(usher_context *context, const usher_ssp_options *options, usher_delegate **out);
  int32_t (*ssp_v2_delegate_new)(usher_context *context, const usher_ssp_v2_options *options, usher_delegate **out);
  int32_t (*default_delegate_new)(usher_context *context, const usher_default_options *options, usher_delegate **out);
  int32_t (*delegate_set_http_header)(usher_delegate *delegate, const char *name, const char *value);
  int32_t (*delegate_set_token_callback)(
      usher_delegate *delegate, usher_token_fn fn, void *user_data, usher_destroy_fn destroy);
  int32_t (*delegate_free)(usher_delegate *delegate);
  int32_t (*complete_token)(usher_completion completion, const char *token);
  int32_t (*common_delegate_new)(usher_context *context, const usher_default_options *options,
      const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy, usher_delegate **out);
  int32_t (*delegate_set_hooks)(
      usher_delegate *delegate, const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy);
  int32_t (*complete_hook)(usher_completion completion, const uint8_t *bytes, size_t size);
  int32_t (*complete_headers)(usher_completion completion, const char *headers);
  int32_t (*complete_builtin)(usher_completion completion);
  int32_t (*hook_builtin)(usher_completion completion, usher_response **out);
  int32_t (*multi_instance_delegate_new)(usher_context *context, const usher_ssp_options *options,
      const usher_token_map_options *map, usher_delegate **out);
  int32_t (*delegate_set_stream_token)(
      usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, const char *token);
  int32_t (*delegate_get_stream_token)(
      usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, usher_response **out);
  int32_t (*delegate_remove_stream_token)(usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size);
  int32_t (*delegate_clear_stream_tokens)(usher_delegate *delegate);
  int32_t (*delegate_count_stream_tokens)(usher_delegate *delegate, size_t *out_count);
  int32_t (*customer_delegate_new)(usher_context *context, const usher_customer_options *options, usher_delegate **out);
  int32_t (*complete_license)(usher_completion completion, const usher_customer_license *license);
  int32_t (*complete_call)(usher_completion completion, int32_t status);
  int32_t (*player_new)(usher_context *context, usher_player **out);
  int32_t (*player_play)(usher_player *player, const usher_playback_options *options, usher_playback **out);
  int32_t (*player_stop)(usher_player *player, int32_t mode);
  int32_t (*player_free)(usher_player *player);
  int32_t (*complete_payload)(usher_completion completion, const uint8_t *payload, size_t size);
  int32_t (*playback_close)(usher_playback *playback, int32_t mode);
  int32_t (*playback_free)(usher_playback *playback);
  int32_t (*playback_wait_session)(usher_playback *playback, uint32_t timeout_ms);
  int32_t (*playback_wait_closed)(usher_playback *playback, uint32_t timeout_ms);
  int32_t (*playback_set_content_token)(usher_playback *playback, const char *token);
  int32_t (*playback_suspend)(usher_playback *playback);
  int32_t (*playback_resume)(usher_playback *playback);
  int32_t (*playback_session_state)(usher_playback *playback, int32_t *out_state);
  int32_t (*playback_request_license)(usher_playback *playback, const usher_license_request *request,
      usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
  int32_t (*playback_get_license)(usher_playback *playback, const usher_license_request *request, usher_response **out);
  int32_t (*playback_get_certificate)(usher_playback *playback, uint32_t timeout_ms, usher_response **out);
  int32_t (*playback_request_certificate)(
      usher_playback *playback, usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
  int32_t (*playback_get_content_id)(
      usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);
  int32_t (*playback_request_content_id)(usher_playback *playback, const uint8_t *url, size_t url_size,
      usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
  int32_t (*response_get)(usher_response *response, usher_response_info *out);
  int32_t (*response_free)(usher_response *response);
  int32_t (*context_add_loader)(usher_context *context, const usher_loader_options *options, usher_loader **out);
  int32_t (*loader_free)(usher_loader *loader);
  int32_t (*playback_load_resource)(usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms,
      usher_license_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);
  int32_t (*playback_get_resource)(
      usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);
  int32_t (*playback_cancel_load)(usher_playback *playback, uint64_t id);
  int32_t (*read_pssh)(const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
  int32_t (*read_tenc)(const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
  int32_t (*read_hls_keys)(
      const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
  int32_t (*read_dash_protection)(
      const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
  int32_t (*content_id)(const uint8_t *url, size_t url_size, int32_t rule, uint8_t *buffer, size_t *size);
  int32_t (*rewrite_hls_keys)(const uint8_t *playlist, size_t playlist_size, const char *scheme, const char *uri_prefix,
      uint8_t *buffer, size_t *size);
  int32_t (*context_advance)(usher_context *context, uint64_t ms, uint32_t settle_ms);
  int32_t (*context_jump)(usher_context *context, uint64_t ms);
  int32_t (*context_settle)(usher_context *context, uint32_t transfers, uint32_t callbacks, uint32_t timeout_ms);
  int32_t (*context_pending)(usher_context *context, usher_pending *out);
  /** @} */
} usher_api;

/** The type of usher_get_api(), for dlsym(). */
typedef const usher_api *(*usher_get_api_fn)(uint32_t major);

/**
 * The API as a table.
 * @param major  USHER_VERSION_MAJOR of the header the host was built with.
 * @return static storage; NULL when this library cannot serve that major version.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const usher_api *usher_get_api(uint32_t major);

#ifdef __cplusplus
}
#endif
#endif /* USHER_API_H */
