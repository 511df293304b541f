// Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
// clang-format off
/*
 * functions.h - every function, structure and callback type of the headers, for tests that use all of them.
 * A test defines the macros that it needs and includes this file:
 *
 *   FUNCTION(name, result, takes, arguments)  result: STATUS or POINTER; takes: HANDLE, FREES (a handle) or NOTHING;
 *                                             arguments: in brackets, for each parameter a macro of plain.h
 *   STRUCTURE(type, init, destroys)           init: its ..._INIT, or {0}; destroys: 1 if a field is usher_destroy_fn
 *   CALLBACK_TYPE(type, result, parameters, ...)  ...: the body: a cast to void of each parameter, and what it returns
 */
#ifdef CALLBACK_TYPE
CALLBACK_TYPE(usher_destroy_fn, void, (void *user_data), (void)user_data)
CALLBACK_TYPE(usher_event_fn, void, (const usher_event *event, void *user_data), (void)event, (void)user_data)
CALLBACK_TYPE(usher_notice_fn, void, (const usher_notice *notice, void *user_data), (void)notice, (void)user_data)
CALLBACK_TYPE(usher_log_fn, void,
    (int32_t level, const char *line, void *user_data), (void)level, (void)line, (void)user_data)
CALLBACK_TYPE(usher_refusal_fn, void,
    (int32_t status, const char *text, void *user_data), (void)status, (void)text, (void)user_data)
CALLBACK_TYPE(usher_token_fn, void, 
    (usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data),
    (void)completion, (void)playback, (void)tag, (void)user_data)
CALLBACK_TYPE(usher_hook_fn, void, (const usher_hook_call *call, void *user_data), (void)call, (void)user_data)
CALLBACK_TYPE(usher_license_fn, void, 
    (usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data),
    (void)playback, (void)response, (void)tag, (void)user_data)
CALLBACK_TYPE(usher_customer_license_fn, void,
    (const usher_customer_request *request, void *user_data), (void)request, (void)user_data)
CALLBACK_TYPE(usher_customer_heartbeat_fn, void,
    (usher_playback *playback, uint64_t tag, void *user_data), (void)playback, (void)tag, (void)user_data)
CALLBACK_TYPE(usher_customer_call_fn, void, 
    (usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data),
    (void)completion, (void)playback, (void)tag, (void)user_data)
CALLBACK_TYPE(usher_payload_fn, void, 
    (usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data),
    (void)completion, (void)playback, (void)key_system, (void)tag, (void)user_data)
CALLBACK_TYPE(usher_protection_fn, void,
    (const usher_protection *protection, void *user_data), (void)protection, (void)user_data)
CALLBACK_TYPE(usher_read_fn, int64_t, (uint64_t offset, uint8_t *buffer, size_t size, void *user_data),
    (void)offset, (void)buffer, (void)size, (void)user_data; return 0)
CALLBACK_TYPE(usher_spc_fn, void, (const usher_spc_request *request, void *user_data), (void)request, (void)user_data)
CALLBACK_TYPE(usher_server_fn, void,
    (const usher_server_request *request, void *user_data), (void)request, (void)user_data)
#endif
#ifdef STRUCTURE
STRUCTURE(usher_error, {0}, 0)
STRUCTURE(usher_legacy_codes, {0}, 0)
STRUCTURE(usher_explanation, {0}, 0)
STRUCTURE(usher_event, {0}, 0)
STRUCTURE(usher_notice, {0}, 0)
STRUCTURE(usher_context_options, USHER_CONTEXT_OPTIONS_INIT, 1)
STRUCTURE(usher_ssp_options, USHER_SSP_OPTIONS_INIT, 0)
STRUCTURE(usher_ssp_v2_options, USHER_SSP_V2_OPTIONS_INIT, 0)
STRUCTURE(usher_default_options, USHER_DEFAULT_OPTIONS_INIT, 0)
STRUCTURE(usher_hook_call, {0}, 0)
STRUCTURE(usher_delegate_hooks, USHER_DELEGATE_HOOKS_INIT, 0)
STRUCTURE(usher_token_map_options, USHER_TOKEN_MAP_OPTIONS_INIT, 0)
STRUCTURE(usher_license_request, USHER_LICENSE_REQUEST_INIT, 0)
STRUCTURE(usher_response_info, USHER_RESPONSE_INFO_INIT, 0)
STRUCTURE(usher_customer_request, {0}, 0)
STRUCTURE(usher_customer_options, USHER_CUSTOMER_OPTIONS_INIT, 1)
STRUCTURE(usher_customer_callbacks, USHER_CUSTOMER_CALLBACKS_INIT, 0)
STRUCTURE(usher_customer_license, USHER_CUSTOMER_LICENSE_INIT, 0)
STRUCTURE(usher_playback_options, USHER_PLAYBACK_OPTIONS_INIT, 1)
STRUCTURE(usher_protection, {0}, 0)
STRUCTURE(usher_clearkey_key, {.key_id = {0}}, 0)
STRUCTURE(usher_spc_request, {0}, 0)
STRUCTURE(usher_server_request, {0}, 0)
STRUCTURE(usher_entitlement, USHER_ENTITLEMENT_INIT, 0)
STRUCTURE(usher_loader_options, USHER_LOADER_OPTIONS_INIT, 1)
STRUCTURE(usher_metrics, USHER_METRICS_INIT, 0)
STRUCTURE(usher_pending, USHER_PENDING_INIT, 0)
#endif
#ifdef FUNCTION
FUNCTION(usher_version, POINTER, NOTHING, ())
FUNCTION(usher_status_name, POINTER, NOTHING, (ARG_NUMBER(int32_t)))
FUNCTION(usher_status_message, POINTER, NOTHING, (ARG_NUMBER(int32_t)))
FUNCTION(usher_origin_name, POINTER, NOTHING, (ARG_NUMBER(int32_t)))
FUNCTION(usher_operation_name, POINTER, NOTHING, (ARG_NUMBER(int32_t)))
FUNCTION(usher_error_legacy_codes, STATUS, NOTHING, (ARG_OPTIONS(usher_error), ARG_FILLED(usher_legacy_codes)))
FUNCTION(usher_error_explain, STATUS, NOTHING, (ARG_OPTIONS(usher_error), ARG_FILLED(usher_explanation)))
FUNCTION(usher_event_name, POINTER, NOTHING, (ARG_NUMBER(int32_t)))
FUNCTION(usher_context_new, STATUS, NOTHING, (ARG_OPTIONS(usher_context_options), ARG_OUT_HANDLE(usher_context)))
FUNCTION(usher_context_close, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_NUMBER(uint32_t), ARG_OUT(uint32_t)))
FUNCTION(usher_context_begin_close, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_NUMBER(uint32_t)))
FUNCTION(usher_context_free, STATUS, FREES, (ARG_HANDLE(usher_context)))
FUNCTION(usher_context_pump, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_OUT(uint32_t)))
FUNCTION(usher_context_pump_fd, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_OUT(int)))
FUNCTION(usher_context_add_observer, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_CALLBACK(usher_event_fn), ARG_USER_DATA, ARG_DESTROY, ARG_OUT(uint64_t)))
FUNCTION(usher_context_remove_observer, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_NUMBER(uint64_t)))
FUNCTION(usher_context_set_delegate, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_HANDLE(usher_delegate)))
FUNCTION(usher_context_suspend, STATUS, HANDLE, (ARG_HANDLE(usher_context)))
FUNCTION(usher_context_resume, STATUS, HANDLE, (ARG_HANDLE(usher_context)))
FUNCTION(usher_context_network_changed, STATUS, HANDLE, (ARG_HANDLE(usher_context)))
FUNCTION(usher_ssp_delegate_new, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_OPTIONS(usher_ssp_options), ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_ssp_v2_delegate_new, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_OPTIONS(usher_ssp_v2_options), ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_default_delegate_new, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_OPTIONS(usher_default_options), ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_delegate_set_http_header, STATUS, HANDLE, (ARG_HANDLE(usher_delegate), ARG_TEXT, ARG_TEXT))
FUNCTION(usher_delegate_set_token_callback, STATUS, HANDLE, (
    ARG_HANDLE(usher_delegate), ARG_CALLBACK(usher_token_fn), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_delegate_connect_ahead, STATUS, HANDLE, (ARG_HANDLE(usher_delegate), ARG_NUMBER(uint32_t)))
FUNCTION(usher_delegate_free, STATUS, FREES, (ARG_HANDLE(usher_delegate)))
FUNCTION(usher_complete_token, STATUS, NOTHING, (ARG_COMPLETION, ARG_TEXT))
FUNCTION(usher_common_delegate_new, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_OPTIONS(usher_default_options),
    ARG_OPTIONS(usher_delegate_hooks), ARG_USER_DATA, ARG_DESTROY, ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_delegate_set_hooks, STATUS, HANDLE, (
    ARG_HANDLE(usher_delegate), ARG_OPTIONS(usher_delegate_hooks), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_complete_hook, STATUS, NOTHING, (ARG_COMPLETION, ARG_BYTES, ARG_SIZE))
FUNCTION(usher_complete_headers, STATUS, NOTHING, (ARG_COMPLETION, ARG_TEXT))
FUNCTION(usher_complete_builtin, STATUS, NOTHING, (ARG_COMPLETION))
FUNCTION(usher_hook_builtin, STATUS, NOTHING, (ARG_COMPLETION, ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_multi_instance_delegate_new, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_OPTIONS(usher_ssp_options),
    ARG_OPTIONS(usher_token_map_options), ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_delegate_set_stream_token, STATUS, HANDLE, (ARG_HANDLE(usher_delegate), ARG_BYTES, ARG_SIZE, ARG_TEXT))
FUNCTION(usher_delegate_get_stream_token, STATUS, HANDLE, (
    ARG_HANDLE(usher_delegate), ARG_BYTES, ARG_SIZE, ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_delegate_remove_stream_token, STATUS, HANDLE, (ARG_HANDLE(usher_delegate), ARG_BYTES, ARG_SIZE))
FUNCTION(usher_delegate_clear_stream_tokens, STATUS, HANDLE, (ARG_HANDLE(usher_delegate)))
FUNCTION(usher_delegate_count_stream_tokens, STATUS, HANDLE, (ARG_HANDLE(usher_delegate), ARG_OUT(size_t)))
FUNCTION(usher_playback_request_license, STATUS, HANDLE, (ARG_HANDLE(usher_playback),
    ARG_OPTIONS(usher_license_request), ARG_CALLBACK(usher_license_fn), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_playback_get_license, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_OPTIONS(usher_license_request), ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_playback_get_certificate, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_NUMBER(uint32_t), ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_playback_request_certificate, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_CALLBACK(usher_license_fn), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_playback_get_content_id, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_BYTES, ARG_SIZE, ARG_NUMBER(uint32_t), ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_playback_request_content_id, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_BYTES, ARG_SIZE, ARG_CALLBACK(usher_license_fn), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_response_get, STATUS, HANDLE, (ARG_HANDLE(usher_response), ARG_FILLED(usher_response_info)))
FUNCTION(usher_response_free, STATUS, FREES, (ARG_HANDLE(usher_response)))
FUNCTION(usher_customer_delegate_new, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_OPTIONS(usher_customer_options), ARG_OUT_HANDLE(usher_delegate)))
FUNCTION(usher_delegate_set_customer_callbacks, STATUS, HANDLE, (
    ARG_HANDLE(usher_delegate), ARG_OPTIONS(usher_customer_callbacks), ARG_USER_DATA, ARG_DESTROY))
FUNCTION(usher_complete_license, STATUS, NOTHING, (ARG_COMPLETION, ARG_OPTIONS(usher_customer_license)))
FUNCTION(usher_complete_call, STATUS, NOTHING, (ARG_COMPLETION, ARG_NUMBER(int32_t)))
FUNCTION(usher_player_new, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_OUT_HANDLE(usher_player)))
FUNCTION(usher_player_play, STATUS, HANDLE, (
    ARG_HANDLE(usher_player), ARG_OPTIONS(usher_playback_options), ARG_OUT_HANDLE(usher_playback)))
FUNCTION(usher_player_prepare, STATUS, HANDLE, (
    ARG_HANDLE(usher_player), ARG_OPTIONS(usher_playback_options), ARG_NUMBER(uint32_t)))
FUNCTION(usher_player_add_observer, STATUS, HANDLE, (
    ARG_HANDLE(usher_player), ARG_CALLBACK(usher_notice_fn), ARG_USER_DATA, ARG_DESTROY, ARG_OUT(uint64_t)))
FUNCTION(usher_player_stop, STATUS, HANDLE, (ARG_HANDLE(usher_player), ARG_NUMBER(int32_t)))
FUNCTION(usher_player_free, STATUS, FREES, (ARG_HANDLE(usher_player)))
FUNCTION(usher_complete_payload, STATUS, NOTHING, (ARG_COMPLETION, ARG_BYTES, ARG_SIZE))
FUNCTION(usher_playback_close, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_NUMBER(int32_t)))
FUNCTION(usher_playback_free, STATUS, FREES, (ARG_HANDLE(usher_playback)))
FUNCTION(usher_playback_wait_session, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_NUMBER(uint32_t), ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_playback_wait_closed, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_NUMBER(uint32_t)))
FUNCTION(usher_playback_set_content_token, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_TEXT))
FUNCTION(usher_playback_suspend, STATUS, HANDLE, (ARG_HANDLE(usher_playback)))
FUNCTION(usher_playback_resume, STATUS, HANDLE, (ARG_HANDLE(usher_playback)))
FUNCTION(usher_playback_session_state, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_OUT(int32_t)))
FUNCTION(usher_read_pssh, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_CALLBACK(usher_protection_fn), ARG_USER_DATA, ARG_OUT(size_t)))
FUNCTION(usher_read_tenc, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_CALLBACK(usher_protection_fn), ARG_USER_DATA, ARG_OUT(size_t)))
FUNCTION(usher_read_mp4, STATUS, NOTHING, (
    ARG_CALLBACK(usher_read_fn), ARG_CALLBACK(usher_protection_fn), ARG_USER_DATA, ARG_MESSAGE, ARG_MESSAGE_SIZE))
FUNCTION(usher_read_hls_keys, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_CALLBACK(usher_protection_fn), ARG_USER_DATA, ARG_OUT(size_t)))
FUNCTION(usher_read_dash_protection, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_CALLBACK(usher_protection_fn), ARG_USER_DATA, ARG_OUT(size_t)))
FUNCTION(usher_content_id, STATUS, NOTHING, (ARG_BYTES, ARG_SIZE, ARG_NUMBER(int32_t), ARG_BUFFER, ARG_BUFFER_SIZE))
FUNCTION(usher_rewrite_hls_keys, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_TEXT, ARG_TEXT, ARG_BUFFER, ARG_BUFFER_SIZE))
FUNCTION(usher_clearkey_request, STATUS, NOTHING, (ARG_BYTES, ARG_NUMBER(size_t), ARG_BUFFER, ARG_BUFFER_SIZE))
FUNCTION(usher_clearkey_keys, STATUS, NOTHING, (
    ARG_BYTES, ARG_SIZE, ARG_FILLED(usher_clearkey_key), ARG_OUT(size_t), ARG_MESSAGE, ARG_MESSAGE_SIZE))
FUNCTION(usher_context_add_loader, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_OPTIONS(usher_loader_options), ARG_OUT_HANDLE(usher_loader)))
FUNCTION(usher_complete_server, STATUS, NOTHING, (ARG_COMPLETION, ARG_TEXT, ARG_TEXT))
FUNCTION(usher_complete_entitlement, STATUS, NOTHING, (ARG_COMPLETION, ARG_OPTIONS(usher_entitlement)))
FUNCTION(usher_loader_free, STATUS, FREES, (ARG_HANDLE(usher_loader)))
FUNCTION(usher_playback_load_resource, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_BYTES, ARG_SIZE,
    ARG_NUMBER(uint32_t), ARG_CALLBACK(usher_license_fn), ARG_USER_DATA, ARG_DESTROY, ARG_OUT(uint64_t)))
FUNCTION(usher_playback_get_resource, STATUS, HANDLE, (
    ARG_HANDLE(usher_playback), ARG_BYTES, ARG_SIZE, ARG_NUMBER(uint32_t), ARG_OUT_HANDLE(usher_response)))
FUNCTION(usher_playback_cancel_load, STATUS, HANDLE, (ARG_HANDLE(usher_playback), ARG_NUMBER(uint64_t)))
FUNCTION(usher_context_metrics, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_FILLED(usher_metrics)))
FUNCTION(usher_metrics_text, STATUS, NOTHING, (ARG_OPTIONS(usher_metrics), ARG_TEXT, ARG_BUFFER, ARG_BUFFER_SIZE))
FUNCTION(usher_context_advance, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_NUMBER(uint64_t), ARG_NUMBER(uint32_t)))
FUNCTION(usher_context_jump, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_NUMBER(uint64_t)))
FUNCTION(usher_context_settle, STATUS, HANDLE, (
    ARG_HANDLE(usher_context), ARG_NUMBER(uint32_t), ARG_NUMBER(uint32_t), ARG_NUMBER(uint32_t)))
FUNCTION(usher_context_pending, STATUS, HANDLE, (ARG_HANDLE(usher_context), ARG_FILLED(usher_pending)))
FUNCTION(usher_get_api, POINTER, NOTHING, (ARG_NUMBER(uint32_t)))
#endif
