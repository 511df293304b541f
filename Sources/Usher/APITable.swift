public import CUsher

/// The table `usher_get_api` hands out: every export by its name without `usher_`.
private nonisolated(unsafe) let table: UnsafePointer<usher_api> = {
  let storage = UnsafeMutablePointer<usher_api>.allocate(capacity: 1)
  storage.initialize(
    to: usher_api(
      struct_size: MemoryLayout<usher_api>.size,
      version: usher_version,
      status_name: usher_status_name,
      status_message: usher_status_message,
      origin_name: usher_origin_name,
      operation_name: usher_operation_name,
      error_legacy_codes: usher_error_legacy_codes,
      error_explain: usher_error_explain,
      event_name: usher_event_name,
      context_new: usher_context_new,
      context_close: usher_context_close,
      context_free: usher_context_free,
      context_pump: usher_context_pump,
      context_pump_fd: usher_context_pump_fd,
      context_add_observer: usher_context_add_observer,
      context_remove_observer: usher_context_remove_observer,
      context_set_delegate: usher_context_set_delegate,
      context_suspend: usher_context_suspend,
      context_resume: usher_context_resume,
      context_network_changed: usher_context_network_changed,
      ssp_delegate_new: usher_ssp_delegate_new,
      ssp_v2_delegate_new: usher_ssp_v2_delegate_new,
      default_delegate_new: usher_default_delegate_new,
      delegate_set_http_header: usher_delegate_set_http_header,
      delegate_set_token_callback: usher_delegate_set_token_callback,
      delegate_free: usher_delegate_free,
      complete_token: usher_complete_token,
      common_delegate_new: usher_common_delegate_new,
      delegate_set_hooks: usher_delegate_set_hooks,
      complete_hook: usher_complete_hook,
      complete_headers: usher_complete_headers,
      complete_builtin: usher_complete_builtin,
      hook_builtin: usher_hook_builtin,
      multi_instance_delegate_new: usher_multi_instance_delegate_new,
      delegate_set_stream_token: usher_delegate_set_stream_token,
      delegate_get_stream_token: usher_delegate_get_stream_token,
      delegate_remove_stream_token: usher_delegate_remove_stream_token,
      delegate_clear_stream_tokens: usher_delegate_clear_stream_tokens,
      delegate_count_stream_tokens: usher_delegate_count_stream_tokens,
      customer_delegate_new: usher_customer_delegate_new,
      complete_license: usher_complete_license,
      complete_call: usher_complete_call,
      player_new: usher_player_new,
      player_play: usher_player_play,
      player_stop: usher_player_stop,
      player_free: usher_player_free,
      complete_payload: usher_complete_payload,
      playback_close: usher_playback_close,
      playback_free: usher_playback_free,
      playback_wait_session: usher_playback_wait_session,
      playback_wait_closed: usher_playback_wait_closed,
      playback_set_content_token: usher_playback_set_content_token,
      playback_suspend: usher_playback_suspend,
      playback_resume: usher_playback_resume,
      playback_session_state: usher_playback_session_state,
      playback_request_license: usher_playback_request_license,
      playback_get_license: usher_playback_get_license,
      playback_get_certificate: usher_playback_get_certificate,
      playback_request_certificate: usher_playback_request_certificate,
      playback_get_content_id: usher_playback_get_content_id,
      playback_request_content_id: usher_playback_request_content_id,
      response_get: usher_response_get,
      response_free: usher_response_free,
      context_advance: usher_context_advance,
      context_jump: usher_context_jump,
      context_settle: usher_context_settle,
      context_pending: usher_context_pending))
  return UnsafePointer(storage)
}()

/// Implements `usher_get_api`; contract in `include/usher/api.h`.
@_cdecl("usher_get_api") @implementation
public func usher_get_api(_ major: UInt32) -> UnsafePointer<usher_api>! {
  major == UInt32(USHER_VERSION_MAJOR) ? table : nil
}
