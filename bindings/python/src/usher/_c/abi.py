# Generated from include/usher/*.h by scripts/generate. Change the headers, then run `make generate`.
"""The C contract as ctypes declarations: handles, structures, callback types, prototypes. Loads no library."""

from __future__ import annotations

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_char,
    c_char_p,
    c_double,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

VERSION = (0, 1, 0)
"""USHER_VERSION_MAJOR, _MINOR, _PATCH of the headers."""

OFF = 0xFFFFFFFF
"""USHER_OFF: the value for "none" in options for which 0 means "the default"."""


# ---- handles: numbers that identify objects, never addresses ---------------------------------------------------------


class ContextHandle(c_void_p):
    """``usher_context *``"""


class DelegateHandle(c_void_p):
    """``usher_delegate *``"""


class PlayerHandle(c_void_p):
    """``usher_player *``"""


class PlaybackHandle(c_void_p):
    """``usher_playback *``"""


class LoaderHandle(c_void_p):
    """``usher_loader *``"""


class ResponseHandle(c_void_p):
    """``usher_response *``"""


# ---- structures and callback types -----------------------------------------------------------------------------------


# typedef void (*usher_destroy_fn)(void *user_data);
DestroyFn = CFUNCTYPE(None, c_void_p)


class Error(ctypes.Structure):
    """``usher_error``"""

    _fields_ = [
        ("status", c_int32),
        ("origin", c_int32),
        ("operation", c_int32),
        ("http_status", c_int32),
        ("service_code", c_int64),
        ("message", c_char_p),
        ("must_stop", c_int32),
        ("orphan_possible", c_int32),
        ("already_reported", c_int32),
        ("retry_after_ms", c_uint32),
        ("tls_fault", c_int32),
    ]


class LegacyCodes(ctypes.Structure):
    """``usher_legacy_codes``"""

    _fields_ = [
        ("react_native", c_int32),
        ("android_what", c_int32),
        ("android_extra", c_int64),
        ("apple_internal", c_int32),
        ("apple_code", c_int32),
    ]


class Explanation(ctypes.Structure):
    """``usher_explanation``"""

    _fields_ = [
        ("summary", c_char_p),
        ("advice", c_char_p),
        ("known", c_int32),
        ("source", c_char_p),
    ]


class Event(ctypes.Structure):
    """``usher_event``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int32),
        ("left", c_int32),
        ("sequence", c_uint64),
        ("time_ms", c_uint64),
        ("playback", PlaybackHandle),
        ("player", PlayerHandle),
        ("tag", c_uint64),
        ("period_ms", c_uint64),
        ("lateness_ms", c_uint64),
        ("error", Error),
    ]


# typedef void (*usher_event_fn)(const usher_event *event, void *user_data);
EventFn = CFUNCTYPE(None, POINTER(Event), c_void_p)


class Notice(ctypes.Structure):
    """``usher_notice``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("type", c_int32),
        ("playback", PlaybackHandle),
        ("player", PlayerHandle),
        ("tag", c_uint64),
        ("summary", c_char_p),
        ("advice", c_char_p),
        ("error", Error),
    ]


# typedef void (*usher_notice_fn)(const usher_notice *notice, void *user_data);
NoticeFn = CFUNCTYPE(None, POINTER(Notice), c_void_p)
# typedef void (*usher_log_fn)(int32_t level, const char *line, void *user_data);
LogFn = CFUNCTYPE(None, c_int32, c_char_p, c_void_p)
# typedef void (*usher_refusal_fn)(int32_t status, const char *text, void *user_data);
RefusalFn = CFUNCTYPE(None, c_int32, c_char_p, c_void_p)


class ContextOptions(ctypes.Structure):
    """``usher_context_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("clock", c_int32),
        ("log_level", c_int32),
        ("log", LogFn),
        ("log_user_data", c_void_p),
        ("log_destroy", DestroyFn),
        ("callback_threads_max", c_uint32),
        ("connect_timeout_ms", c_uint32),
        ("http_timeout_ms", c_uint32),
        ("max_response_bytes", c_uint32),
        ("requests_per_origin_max", c_uint32),
        ("allow_insecure_http", c_int32),
        ("ca_file", c_char_p),
        ("pinned_public_key", c_char_p),
        ("client_certificate_file", c_char_p),
        ("client_key_file", c_char_p),
        ("proxy", c_char_p),
        ("user_agent", c_char_p),
        ("callbacks", c_int32),
        ("connections_max", c_uint32),
        ("client_key_passphrase", c_char_p),
        ("http2", c_int32),
        ("wipe_freed_memory", c_int32),
        ("keep_cookies", c_int32),
        ("refusal", RefusalFn),
        ("refusal_user_data", c_void_p),
        ("trace_context", c_int32),
        ("timer_slack_ms", c_uint32),
        ("journal_file", c_char_p),
        ("journal_key", POINTER(c_uint8)),
        ("journal_key_size", c_size_t),
        ("journal_in_clear", c_int32),
        ("recovery_wait_ms", c_uint32),
        ("guardian", c_int32),
        ("close_at_exit_ms", c_uint32),
        ("guardian_path", c_char_p),
    ]


# typedef void (*usher_token_fn)(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);
TokenFn = CFUNCTYPE(None, c_uint64, PlaybackHandle, c_uint64, c_void_p)


class SSPOptions(ctypes.Structure):
    """``usher_ssp_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("license_url", c_char_p),
        ("certificate_url", c_char_p),
        ("ssm_url", c_char_p),
        ("sync_setup_teardown", c_int32),
        ("ssm_append_version", c_int32),
        ("ssm_api_version", c_char_p),
        ("setup_url", c_char_p),
        ("heartbeat_url", c_char_p),
        ("teardown_url", c_char_p),
        ("renewal_url", c_char_p),
        ("token_header", c_char_p),
        ("extra_headers", c_char_p),
        ("setup_body", c_char_p),
        ("keep_alive_body", c_char_p),
        ("setup_timeout_ms", c_uint32),
        ("teardown_timeout_ms", c_uint32),
        ("token_timeout_ms", c_uint32),
        ("payload_timeout_ms", c_uint32),
        ("heartbeat_missing", c_int32),
        ("heartbeat_start", c_int32),
        ("lenient_numbers", c_int32),
        ("period_min_ms", c_uint32),
        ("period_max_ms", c_uint32),
        ("period_updates", c_int32),
        ("jitter_permille", c_uint32),
        ("retry_permille", c_uint32),
        ("keep_alive_failures_max", c_uint32),
        ("keep_alive", c_int32),
        ("resetup_on_extra_license", c_int32),
        ("wire_format", c_int32),
        ("teardown_retries", c_uint32),
        ("token_wait_ms", c_uint32),
        ("hook_timeout_ms", c_uint32),
        ("suspend", c_int32),
        ("keep_alive_timeout_ms", c_uint32),
        ("slot_wait_ms", c_uint32),
        ("zap_without_waiting", c_int32),
    ]


class SSPV2Options(ctypes.Structure):
    """``usher_ssp_v2_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("ssp", POINTER(SSPOptions)),
        ("teardown_on_close", c_int32),
        ("leave_on_zap", c_int32),
        ("token_field", c_char_p),
        ("period_field", c_char_p),
        ("enforced_field", c_char_p),
        ("token_reply_header", c_char_p),
        ("period_default_ms", c_uint32),
    ]


class DefaultOptions(ctypes.Structure):
    """``usher_default_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("license_url", c_char_p),
        ("certificate_url", c_char_p),
        ("extra_headers", c_char_p),
        ("token_header", c_char_p),
        ("wire_format", c_int32),
        ("hook_timeout_ms", c_uint32),
    ]


class HookCall(ctypes.Structure):
    """``usher_hook_call``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("completion", c_uint64),
        ("hook", c_int32),
        ("type", c_int32),
        ("playback", PlaybackHandle),
        ("tag", c_uint64),
        ("key_system", c_char_p),
        ("asset_id", POINTER(c_uint8)),
        ("asset_id_size", c_size_t),
        ("data", POINTER(c_uint8)),
        ("data_size", c_size_t),
        ("http_status", c_int32),
    ]


# typedef void (*usher_hook_fn)(const usher_hook_call *call, void *user_data);
HookFn = CFUNCTYPE(None, POINTER(HookCall), c_void_p)


class DelegateHooks(ctypes.Structure):
    """``usher_delegate_hooks``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("scheme", c_char_p),
        ("content_id", HookFn),
        ("certificate", HookFn),
        ("http_headers", HookFn),
        ("license_url", HookFn),
        ("license_body", HookFn),
        ("license", HookFn),
    ]


class TokenMapOptions(ctypes.Structure):
    """``usher_token_map_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("tokens_max", c_size_t),
        ("time_to_live_ms", c_uint64),
    ]


class LicenseRequest(ctypes.Structure):
    """``usher_license_request``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("key_system", c_char_p),
        ("type", c_int32),
        ("timeout_ms", c_uint32),
        ("payload", POINTER(c_uint8)),
        ("payload_size", c_size_t),
        ("asset_id", POINTER(c_uint8)),
        ("asset_id_size", c_size_t),
    ]


class ResponseInfo(ctypes.Structure):
    """``usher_response_info``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("data", POINTER(c_uint8)),
        ("data_size", c_size_t),
        ("period_ms", c_uint64),
        ("renew_type", c_int32),
        ("type", c_int32),
        ("error", Error),
    ]


# typedef void (*usher_license_fn)(
#   usher_playback *playback, const usher_response_info *response, uint64_t tag, void *user_data);
LicenseFn = CFUNCTYPE(None, PlaybackHandle, POINTER(ResponseInfo), c_uint64, c_void_p)


class CustomerRequest(ctypes.Structure):
    """``usher_customer_request``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("completion", c_uint64),
        ("playback", PlaybackHandle),
        ("tag", c_uint64),
        ("key_system", c_char_p),
        ("payload", POINTER(c_uint8)),
        ("payload_size", c_size_t),
        ("type", c_int32),
        ("asset_id_size", c_size_t),
        ("asset_id", POINTER(c_uint8)),
    ]


# typedef void (*usher_customer_license_fn)(const usher_customer_request *request, void *user_data);
CustomerLicenseFn = CFUNCTYPE(None, POINTER(CustomerRequest), c_void_p)
# typedef void (*usher_customer_heartbeat_fn)(usher_playback *playback, uint64_t tag, void *user_data);
CustomerHeartbeatFn = CFUNCTYPE(None, PlaybackHandle, c_uint64, c_void_p)
# typedef void (*usher_customer_call_fn)(
#   usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data);
CustomerCallFn = CFUNCTYPE(None, c_uint64, PlaybackHandle, c_uint64, c_void_p)


class CustomerOptions(ctypes.Structure):
    """``usher_customer_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("certificate", POINTER(c_uint8)),
        ("certificate_size", c_size_t),
        ("license", CustomerLicenseFn),
        ("heartbeat", CustomerCallFn),
        ("teardown", CustomerCallFn),
        ("user_data", c_void_p),
        ("destroy", DestroyFn),
        ("license_timeout_ms", c_uint32),
        ("heartbeat_timeout_ms", c_uint32),
        ("teardown_timeout_ms", c_uint32),
        ("payload_timeout_ms", c_uint32),
        ("jitter_permille", c_uint32),
        ("retry_permille", c_uint32),
        ("keep_alive_failures_max", c_uint32),
        ("suspend", c_int32),
        ("simple_heartbeat", CustomerHeartbeatFn),
        ("zap_without_waiting", c_int32),
    ]


class CustomerCallbacks(ctypes.Structure):
    """``usher_customer_callbacks``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("license", CustomerLicenseFn),
        ("heartbeat", CustomerCallFn),
        ("teardown", CustomerCallFn),
        ("simple_heartbeat", CustomerHeartbeatFn),
    ]


class CustomerLicense(ctypes.Structure):
    """``usher_customer_license``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("license", POINTER(c_uint8)),
        ("license_size", c_size_t),
        ("heartbeat_s", c_double),
        ("renew_type", c_int32),
        ("http_status", c_int32),
        ("service_code", c_int64),
        ("message", c_char_p),
        ("origin", c_int32),
    ]


# typedef void (*usher_payload_fn)(
#   usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data);
PayloadFn = CFUNCTYPE(None, c_uint64, PlaybackHandle, c_char_p, c_uint64, c_void_p)


class PlaybackOptions(ctypes.Structure):
    """``usher_playback_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("delegate", DelegateHandle),
        ("content_token", c_char_p),
        ("content_id", POINTER(c_uint8)),
        ("content_id_size", c_size_t),
        ("tag", c_uint64),
        ("payload", PayloadFn),
        ("renewed", LicenseFn),
        ("user_data", c_void_p),
        ("destroy", DestroyFn),
        ("clear", c_int32),
    ]


class Protection(ctypes.Structure):
    """``usher_protection``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("key_system", c_char_p),
        ("system_id", POINTER(c_uint8)),
        ("key_ids", POINTER(c_uint8)),
        ("key_id_count", c_size_t),
        ("content_id", POINTER(c_uint8)),
        ("content_id_size", c_size_t),
        ("init_data", POINTER(c_uint8)),
        ("init_data_size", c_size_t),
        ("uri", POINTER(c_uint8)),
        ("uri_size", c_size_t),
        ("iv", POINTER(c_uint8)),
        ("iv_size", c_size_t),
        ("scheme", c_char_p),
        ("crypt_blocks", c_uint32),
        ("skip_blocks", c_uint32),
        ("is_session", c_int32),
        ("part", c_int32),
        ("track_id", c_uint32),
    ]


# typedef void (*usher_protection_fn)(const usher_protection *protection, void *user_data);
ProtectionFn = CFUNCTYPE(None, POINTER(Protection), c_void_p)
# typedef int64_t (*usher_read_fn)(uint64_t offset, uint8_t *buffer, size_t size, void *user_data);
ReadFn = CFUNCTYPE(c_int64, c_uint64, POINTER(c_uint8), c_size_t, c_void_p)


class ClearkeyKey(ctypes.Structure):
    """``usher_clearkey_key``"""

    _fields_ = [
        ("key_id", c_uint8 * 16),
        ("key", c_uint8 * 16),
    ]


class SpcRequest(ctypes.Structure):
    """``usher_spc_request``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("completion", c_uint64),
        ("playback", PlaybackHandle),
        ("tag", c_uint64),
        ("certificate", POINTER(c_uint8)),
        ("certificate_size", c_size_t),
        ("content_id", POINTER(c_uint8)),
        ("content_id_size", c_size_t),
        ("url", POINTER(c_uint8)),
        ("url_size", c_size_t),
    ]


# typedef void (*usher_spc_fn)(const usher_spc_request *request, void *user_data);
SpcFn = CFUNCTYPE(None, POINTER(SpcRequest), c_void_p)


class ServerRequest(ctypes.Structure):
    """``usher_server_request``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("completion", c_uint64),
        ("playback", PlaybackHandle),
        ("tag", c_uint64),
        ("url", POINTER(c_uint8)),
        ("url_size", c_size_t),
        ("content_id", POINTER(c_uint8)),
        ("content_id_size", c_size_t),
        ("entitlement_id", POINTER(c_uint8)),
        ("entitlement_id_size", c_size_t),
        ("entitlement_url", c_char_p),
        ("token_kind", c_int32),
    ]


# typedef void (*usher_server_fn)(const usher_server_request *request, void *user_data);
ServerFn = CFUNCTYPE(None, POINTER(ServerRequest), c_void_p)


class Entitlement(ctypes.Structure):
    """``usher_entitlement``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("url", c_char_p),
        ("content_id", POINTER(c_uint8)),
        ("content_id_size", c_size_t),
        ("token_kind", c_int32),
    ]


class LoaderOptions(ctypes.Structure):
    """``usher_loader_options``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("scheme", c_char_p),
        ("route", c_int32),
        ("content_id_rule", c_int32),
        ("license_url", c_char_p),
        ("entitlement_url", c_char_p),
        ("allowed_hosts", c_char_p),
        ("derived_scheme", c_char_p),
        ("certificate", POINTER(c_uint8)),
        ("certificate_size", c_size_t),
        ("certificate_file", c_char_p),
        ("certificate_url", c_char_p),
        ("extra_headers", c_char_p),
        ("request_format", c_int32),
        ("spc_urlencode", c_int32),
        ("spc_field", c_char_p),
        ("content_id_field", c_char_p),
        ("response_format", c_int32),
        ("device_binding", c_int32),
        ("customer_cookie", c_char_p),
        ("spc", SpcFn),
        ("user_data", c_void_p),
        ("destroy", DestroyFn),
        ("spc_timeout_ms", c_uint32),
        ("response_path", c_char_p),
        ("server", ServerFn),
        ("token_url", ServerFn),
        ("server_timeout_ms", c_uint32),
        ("device_registered", c_int32),
    ]


class Metrics(ctypes.Structure):
    """``usher_metrics``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("sessions_held", c_uint64),
        ("sessions_opened", c_uint64),
        ("sessions_lost", c_uint64),
        ("setups_sent", c_uint64),
        ("heartbeats_sent", c_uint64),
        ("teardowns_sent", c_uint64),
        ("licenses_sent", c_uint64),
        ("others_sent", c_uint64),
        ("retries", c_uint64),
        ("keep_alives", c_uint64),
        ("lateness_ms", c_uint64),
        ("late_at_most_10_ms", c_uint64),
        ("late_at_most_50_ms", c_uint64),
        ("late_at_most_100_ms", c_uint64),
        ("late_at_most_500_ms", c_uint64),
        ("late_at_most_1000_ms", c_uint64),
        ("late_at_most_5000_ms", c_uint64),
        ("denials_ssm", c_uint64),
        ("denials_license", c_uint64),
        ("denials_certificate", c_uint64),
        ("denials_entitlement", c_uint64),
        ("teardowns_failed", c_uint64),
        ("connections_opened", c_uint64),
        ("connections_reused", c_uint64),
        ("requests_queued", c_uint64),
        ("requests_in_flight", c_uint64),
        ("callbacks", c_uint64),
    ]


class Pending(ctypes.Structure):
    """``usher_pending``"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("transfers", c_uint32),
        ("callbacks", c_uint32),
        ("queued", c_uint32),
        ("reserved", c_uint32),
        ("next_timer_ms", c_uint64),
        ("now_ms", c_uint64),
    ]


STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "usher_clearkey_key": ClearkeyKey,
    "usher_context_options": ContextOptions,
    "usher_customer_callbacks": CustomerCallbacks,
    "usher_customer_license": CustomerLicense,
    "usher_customer_options": CustomerOptions,
    "usher_customer_request": CustomerRequest,
    "usher_default_options": DefaultOptions,
    "usher_delegate_hooks": DelegateHooks,
    "usher_entitlement": Entitlement,
    "usher_error": Error,
    "usher_event": Event,
    "usher_explanation": Explanation,
    "usher_hook_call": HookCall,
    "usher_legacy_codes": LegacyCodes,
    "usher_license_request": LicenseRequest,
    "usher_loader_options": LoaderOptions,
    "usher_metrics": Metrics,
    "usher_notice": Notice,
    "usher_pending": Pending,
    "usher_playback_options": PlaybackOptions,
    "usher_protection": Protection,
    "usher_response_info": ResponseInfo,
    "usher_server_request": ServerRequest,
    "usher_spc_request": SpcRequest,
    "usher_ssp_options": SSPOptions,
    "usher_ssp_v2_options": SSPV2Options,
    "usher_token_map_options": TokenMapOptions,
}
"""C name -> ctypes structure, every structure of the headers."""

CALLBACKS: dict[str, Any] = {
    "usher_customer_call_fn": CustomerCallFn,
    "usher_customer_heartbeat_fn": CustomerHeartbeatFn,
    "usher_customer_license_fn": CustomerLicenseFn,
    "usher_destroy_fn": DestroyFn,
    "usher_event_fn": EventFn,
    "usher_hook_fn": HookFn,
    "usher_license_fn": LicenseFn,
    "usher_log_fn": LogFn,
    "usher_notice_fn": NoticeFn,
    "usher_payload_fn": PayloadFn,
    "usher_protection_fn": ProtectionFn,
    "usher_read_fn": ReadFn,
    "usher_refusal_fn": RefusalFn,
    "usher_server_fn": ServerFn,
    "usher_spc_fn": SpcFn,
    "usher_token_fn": TokenFn,
}
"""C name -> ctypes function type, every callback type of the headers."""


# ---- prototypes ------------------------------------------------------------------------------------------------------


PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    # const char *usher_version(void);
    "usher_version": (c_char_p, ()),
    # const char *usher_status_name(int32_t status);
    "usher_status_name": (c_char_p, (c_int32,)),
    # const char *usher_status_message(int32_t status);
    "usher_status_message": (c_char_p, (c_int32,)),
    # const char *usher_origin_name(int32_t origin);
    "usher_origin_name": (c_char_p, (c_int32,)),
    # const char *usher_operation_name(int32_t operation);
    "usher_operation_name": (c_char_p, (c_int32,)),
    # int32_t usher_error_legacy_codes(const usher_error *error, usher_legacy_codes *out);
    "usher_error_legacy_codes": (c_int32, (POINTER(Error), POINTER(LegacyCodes))),
    # int32_t usher_error_explain(const usher_error *error, usher_explanation *out);
    "usher_error_explain": (c_int32, (POINTER(Error), POINTER(Explanation))),
    # const char *usher_event_name(int32_t type);
    "usher_event_name": (c_char_p, (c_int32,)),
    # int32_t usher_context_new(const usher_context_options *options, usher_context **out);
    "usher_context_new": (c_int32, (POINTER(ContextOptions), POINTER(ContextHandle))),
    # int32_t usher_context_close(usher_context *context, uint32_t timeout_ms, uint32_t *out_open);
    "usher_context_close": (c_int32, (ContextHandle, c_uint32, POINTER(c_uint32))),
    # int32_t usher_context_begin_close(usher_context *context, uint32_t timeout_ms);
    "usher_context_begin_close": (c_int32, (ContextHandle, c_uint32)),
    # int32_t usher_context_free(usher_context *context);
    "usher_context_free": (c_int32, (ContextHandle,)),
    # int32_t usher_context_pump(usher_context *context, uint32_t *out_ran);
    "usher_context_pump": (c_int32, (ContextHandle, POINTER(c_uint32))),
    # int32_t usher_context_pump_fd(usher_context *context, int *out_fd);
    "usher_context_pump_fd": (c_int32, (ContextHandle, POINTER(c_int))),
    # int32_t usher_context_add_observer(
    #   usher_context *context, usher_event_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);
    "usher_context_add_observer": (c_int32, (ContextHandle, EventFn, c_void_p, DestroyFn, POINTER(c_uint64))),
    # int32_t usher_context_remove_observer(usher_context *context, uint64_t id);
    "usher_context_remove_observer": (c_int32, (ContextHandle, c_uint64)),
    # int32_t usher_context_set_delegate(usher_context *context, usher_delegate *delegate);
    "usher_context_set_delegate": (c_int32, (ContextHandle, DelegateHandle)),
    # int32_t usher_context_suspend(usher_context *context);
    "usher_context_suspend": (c_int32, (ContextHandle,)),
    # int32_t usher_context_resume(usher_context *context);
    "usher_context_resume": (c_int32, (ContextHandle,)),
    # int32_t usher_context_network_changed(usher_context *context);
    "usher_context_network_changed": (c_int32, (ContextHandle,)),
    # int32_t usher_ssp_delegate_new(usher_context *context, const usher_ssp_options *options, usher_delegate **out);
    "usher_ssp_delegate_new": (c_int32, (ContextHandle, POINTER(SSPOptions), POINTER(DelegateHandle))),
    # int32_t usher_ssp_v2_delegate_new(
    #   usher_context *context, const usher_ssp_v2_options *options, usher_delegate **out);
    "usher_ssp_v2_delegate_new": (c_int32, (ContextHandle, POINTER(SSPV2Options), POINTER(DelegateHandle))),
    # int32_t usher_default_delegate_new(
    #   usher_context *context, const usher_default_options *options, usher_delegate **out);
    "usher_default_delegate_new": (c_int32, (ContextHandle, POINTER(DefaultOptions), POINTER(DelegateHandle))),
    # int32_t usher_delegate_set_http_header(usher_delegate *delegate, const char *name, const char *value);
    "usher_delegate_set_http_header": (c_int32, (DelegateHandle, c_char_p, c_char_p)),
    # int32_t usher_delegate_set_token_callback(
    #   usher_delegate *delegate, usher_token_fn fn, void *user_data, usher_destroy_fn destroy);
    "usher_delegate_set_token_callback": (c_int32, (DelegateHandle, TokenFn, c_void_p, DestroyFn)),
    # int32_t usher_delegate_connect_ahead(usher_delegate *delegate, uint32_t keep_ms);
    "usher_delegate_connect_ahead": (c_int32, (DelegateHandle, c_uint32)),
    # int32_t usher_delegate_free(usher_delegate *delegate);
    "usher_delegate_free": (c_int32, (DelegateHandle,)),
    # int32_t usher_complete_token(usher_completion completion, const char *token);
    "usher_complete_token": (c_int32, (c_uint64, c_char_p)),
    # int32_t usher_common_delegate_new(usher_context *context, const usher_default_options *options,
    #   const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy, usher_delegate **out);
    "usher_common_delegate_new": (
        c_int32,
        (ContextHandle, POINTER(DefaultOptions), POINTER(DelegateHooks), c_void_p, DestroyFn, POINTER(DelegateHandle)),
    ),
    # int32_t usher_delegate_set_hooks(
    #   usher_delegate *delegate, const usher_delegate_hooks *hooks, void *user_data, usher_destroy_fn destroy);
    "usher_delegate_set_hooks": (c_int32, (DelegateHandle, POINTER(DelegateHooks), c_void_p, DestroyFn)),
    # int32_t usher_complete_hook(usher_completion completion, const uint8_t *bytes, size_t size);
    "usher_complete_hook": (c_int32, (c_uint64, POINTER(c_uint8), c_size_t)),
    # int32_t usher_complete_headers(usher_completion completion, const char *headers);
    "usher_complete_headers": (c_int32, (c_uint64, c_char_p)),
    # int32_t usher_complete_builtin(usher_completion completion);
    "usher_complete_builtin": (c_int32, (c_uint64,)),
    # int32_t usher_hook_builtin(usher_completion completion, usher_response **out);
    "usher_hook_builtin": (c_int32, (c_uint64, POINTER(ResponseHandle))),
    # int32_t usher_multi_instance_delegate_new(usher_context *context, const usher_ssp_options *options,
    #   const usher_token_map_options *map, usher_delegate **out);
    "usher_multi_instance_delegate_new": (
        c_int32,
        (ContextHandle, POINTER(SSPOptions), POINTER(TokenMapOptions), POINTER(DelegateHandle)),
    ),
    # int32_t usher_delegate_set_stream_token(
    #   usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, const char *token);
    "usher_delegate_set_stream_token": (c_int32, (DelegateHandle, POINTER(c_uint8), c_size_t, c_char_p)),
    # int32_t usher_delegate_get_stream_token(
    #   usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size, usher_response **out);
    "usher_delegate_get_stream_token": (c_int32, (DelegateHandle, POINTER(c_uint8), c_size_t, POINTER(ResponseHandle))),
    # int32_t usher_delegate_remove_stream_token(
    #   usher_delegate *delegate, const uint8_t *content_id, size_t content_id_size);
    "usher_delegate_remove_stream_token": (c_int32, (DelegateHandle, POINTER(c_uint8), c_size_t)),
    # int32_t usher_delegate_clear_stream_tokens(usher_delegate *delegate);
    "usher_delegate_clear_stream_tokens": (c_int32, (DelegateHandle,)),
    # int32_t usher_delegate_count_stream_tokens(usher_delegate *delegate, size_t *out_count);
    "usher_delegate_count_stream_tokens": (c_int32, (DelegateHandle, POINTER(c_size_t))),
    # int32_t usher_playback_request_license(usher_playback *playback, const usher_license_request *request,
    #   usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
    "usher_playback_request_license": (
        c_int32,
        (PlaybackHandle, POINTER(LicenseRequest), LicenseFn, c_void_p, DestroyFn),
    ),
    # int32_t usher_playback_get_license(
    #   usher_playback *playback, const usher_license_request *request, usher_response **out);
    "usher_playback_get_license": (c_int32, (PlaybackHandle, POINTER(LicenseRequest), POINTER(ResponseHandle))),
    # int32_t usher_playback_get_certificate(usher_playback *playback, uint32_t timeout_ms, usher_response **out);
    "usher_playback_get_certificate": (c_int32, (PlaybackHandle, c_uint32, POINTER(ResponseHandle))),
    # int32_t usher_playback_request_certificate(
    #   usher_playback *playback, usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
    "usher_playback_request_certificate": (c_int32, (PlaybackHandle, LicenseFn, c_void_p, DestroyFn)),
    # int32_t usher_playback_get_content_id(
    #   usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);
    "usher_playback_get_content_id": (
        c_int32,
        (PlaybackHandle, POINTER(c_uint8), c_size_t, c_uint32, POINTER(ResponseHandle)),
    ),
    # int32_t usher_playback_request_content_id(usher_playback *playback, const uint8_t *url, size_t url_size,
    #   usher_license_fn fn, void *user_data, usher_destroy_fn destroy);
    "usher_playback_request_content_id": (
        c_int32,
        (PlaybackHandle, POINTER(c_uint8), c_size_t, LicenseFn, c_void_p, DestroyFn),
    ),
    # int32_t usher_response_get(usher_response *response, usher_response_info *out);
    "usher_response_get": (c_int32, (ResponseHandle, POINTER(ResponseInfo))),
    # int32_t usher_response_free(usher_response *response);
    "usher_response_free": (c_int32, (ResponseHandle,)),
    # int32_t usher_customer_delegate_new(
    #   usher_context *context, const usher_customer_options *options, usher_delegate **out);
    "usher_customer_delegate_new": (c_int32, (ContextHandle, POINTER(CustomerOptions), POINTER(DelegateHandle))),
    # int32_t usher_delegate_set_customer_callbacks(
    #   usher_delegate *delegate, const usher_customer_callbacks *callbacks, void *user_data, usher_destroy_fn destroy);
    "usher_delegate_set_customer_callbacks": (
        c_int32,
        (DelegateHandle, POINTER(CustomerCallbacks), c_void_p, DestroyFn),
    ),
    # int32_t usher_complete_license(usher_completion completion, const usher_customer_license *license);
    "usher_complete_license": (c_int32, (c_uint64, POINTER(CustomerLicense))),
    # int32_t usher_complete_call(usher_completion completion, int32_t status);
    "usher_complete_call": (c_int32, (c_uint64, c_int32)),
    # int32_t usher_player_new(usher_context *context, usher_player **out);
    "usher_player_new": (c_int32, (ContextHandle, POINTER(PlayerHandle))),
    # int32_t usher_player_play(usher_player *player, const usher_playback_options *options, usher_playback **out);
    "usher_player_play": (c_int32, (PlayerHandle, POINTER(PlaybackOptions), POINTER(PlaybackHandle))),
    # int32_t usher_player_prepare(usher_player *player, const usher_playback_options *options, uint32_t keep_ms);
    "usher_player_prepare": (c_int32, (PlayerHandle, POINTER(PlaybackOptions), c_uint32)),
    # int32_t usher_player_add_observer(
    #   usher_player *player, usher_notice_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);
    "usher_player_add_observer": (c_int32, (PlayerHandle, NoticeFn, c_void_p, DestroyFn, POINTER(c_uint64))),
    # int32_t usher_player_stop(usher_player *player, int32_t mode);
    "usher_player_stop": (c_int32, (PlayerHandle, c_int32)),
    # int32_t usher_player_free(usher_player *player);
    "usher_player_free": (c_int32, (PlayerHandle,)),
    # int32_t usher_complete_payload(usher_completion completion, const uint8_t *payload, size_t size);
    "usher_complete_payload": (c_int32, (c_uint64, POINTER(c_uint8), c_size_t)),
    # int32_t usher_playback_close(usher_playback *playback, int32_t mode);
    "usher_playback_close": (c_int32, (PlaybackHandle, c_int32)),
    # int32_t usher_playback_free(usher_playback *playback);
    "usher_playback_free": (c_int32, (PlaybackHandle,)),
    # int32_t usher_playback_wait_session(usher_playback *playback, uint32_t timeout_ms, usher_response **out);
    "usher_playback_wait_session": (c_int32, (PlaybackHandle, c_uint32, POINTER(ResponseHandle))),
    # int32_t usher_playback_wait_closed(usher_playback *playback, uint32_t timeout_ms);
    "usher_playback_wait_closed": (c_int32, (PlaybackHandle, c_uint32)),
    # int32_t usher_playback_set_content_token(usher_playback *playback, const char *token);
    "usher_playback_set_content_token": (c_int32, (PlaybackHandle, c_char_p)),
    # int32_t usher_playback_suspend(usher_playback *playback);
    "usher_playback_suspend": (c_int32, (PlaybackHandle,)),
    # int32_t usher_playback_resume(usher_playback *playback);
    "usher_playback_resume": (c_int32, (PlaybackHandle,)),
    # int32_t usher_playback_session_state(usher_playback *playback, int32_t *out_state);
    "usher_playback_session_state": (c_int32, (PlaybackHandle, POINTER(c_int32))),
    # int32_t usher_read_pssh(
    #   const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
    "usher_read_pssh": (c_int32, (POINTER(c_uint8), c_size_t, ProtectionFn, c_void_p, POINTER(c_size_t))),
    # int32_t usher_read_tenc(
    #   const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
    "usher_read_tenc": (c_int32, (POINTER(c_uint8), c_size_t, ProtectionFn, c_void_p, POINTER(c_size_t))),
    # int32_t usher_read_mp4(
    #   usher_read_fn read, usher_protection_fn fn, void *user_data, char *message, size_t message_size);
    "usher_read_mp4": (c_int32, (ReadFn, ProtectionFn, c_void_p, POINTER(c_char), c_size_t)),
    # int32_t usher_read_hls_keys(
    #   const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
    "usher_read_hls_keys": (c_int32, (POINTER(c_uint8), c_size_t, ProtectionFn, c_void_p, POINTER(c_size_t))),
    # int32_t usher_read_dash_protection(
    #   const uint8_t *bytes, size_t size, usher_protection_fn fn, void *user_data, size_t *out_count);
    "usher_read_dash_protection": (c_int32, (POINTER(c_uint8), c_size_t, ProtectionFn, c_void_p, POINTER(c_size_t))),
    # int32_t usher_content_id(const uint8_t *url, size_t url_size, int32_t rule, uint8_t *buffer, size_t *size);
    "usher_content_id": (c_int32, (POINTER(c_uint8), c_size_t, c_int32, POINTER(c_uint8), POINTER(c_size_t))),
    # int32_t usher_rewrite_hls_keys(const uint8_t *playlist, size_t playlist_size, const char *scheme,
    #   const char *uri_prefix, uint8_t *buffer, size_t *size);
    "usher_rewrite_hls_keys": (
        c_int32,
        (POINTER(c_uint8), c_size_t, c_char_p, c_char_p, POINTER(c_uint8), POINTER(c_size_t)),
    ),
    # int32_t usher_clearkey_request(const uint8_t *key_ids, size_t key_id_count, uint8_t *buffer, size_t *size);
    "usher_clearkey_request": (c_int32, (POINTER(c_uint8), c_size_t, POINTER(c_uint8), POINTER(c_size_t))),
    # int32_t usher_clearkey_keys(const uint8_t *license, size_t license_size, usher_clearkey_key *keys, size_t *count,
    #   char *message, size_t message_size);
    "usher_clearkey_keys": (
        c_int32,
        (POINTER(c_uint8), c_size_t, POINTER(ClearkeyKey), POINTER(c_size_t), POINTER(c_char), c_size_t),
    ),
    # int32_t usher_context_add_loader(usher_context *context, const usher_loader_options *options, usher_loader **out);
    "usher_context_add_loader": (c_int32, (ContextHandle, POINTER(LoaderOptions), POINTER(LoaderHandle))),
    # int32_t usher_complete_server(usher_completion completion, const char *url, const char *headers);
    "usher_complete_server": (c_int32, (c_uint64, c_char_p, c_char_p)),
    # int32_t usher_complete_entitlement(usher_completion completion, const usher_entitlement *entitlement);
    "usher_complete_entitlement": (c_int32, (c_uint64, POINTER(Entitlement))),
    # int32_t usher_loader_free(usher_loader *loader);
    "usher_loader_free": (c_int32, (LoaderHandle,)),
    # int32_t usher_playback_load_resource(usher_playback *playback, const uint8_t *url, size_t url_size,
    #   uint32_t timeout_ms, usher_license_fn fn, void *user_data, usher_destroy_fn destroy, uint64_t *out_id);
    "usher_playback_load_resource": (
        c_int32,
        (PlaybackHandle, POINTER(c_uint8), c_size_t, c_uint32, LicenseFn, c_void_p, DestroyFn, POINTER(c_uint64)),
    ),
    # int32_t usher_playback_get_resource(
    #   usher_playback *playback, const uint8_t *url, size_t url_size, uint32_t timeout_ms, usher_response **out);
    "usher_playback_get_resource": (
        c_int32,
        (PlaybackHandle, POINTER(c_uint8), c_size_t, c_uint32, POINTER(ResponseHandle)),
    ),
    # int32_t usher_playback_cancel_load(usher_playback *playback, uint64_t id);
    "usher_playback_cancel_load": (c_int32, (PlaybackHandle, c_uint64)),
    # int32_t usher_context_metrics(usher_context *context, usher_metrics *out);
    "usher_context_metrics": (c_int32, (ContextHandle, POINTER(Metrics))),
    # int32_t usher_metrics_text(const usher_metrics *metrics, const char *labels, uint8_t *buffer, size_t *size);
    "usher_metrics_text": (c_int32, (POINTER(Metrics), c_char_p, POINTER(c_uint8), POINTER(c_size_t))),
    # int32_t usher_context_advance(usher_context *context, uint64_t ms, uint32_t settle_ms);
    "usher_context_advance": (c_int32, (ContextHandle, c_uint64, c_uint32)),
    # int32_t usher_context_jump(usher_context *context, uint64_t ms);
    "usher_context_jump": (c_int32, (ContextHandle, c_uint64)),
    # int32_t usher_context_settle(usher_context *context, uint32_t transfers, uint32_t callbacks, uint32_t timeout_ms);
    "usher_context_settle": (c_int32, (ContextHandle, c_uint32, c_uint32, c_uint32)),
    # int32_t usher_context_pending(usher_context *context, usher_pending *out);
    "usher_context_pending": (c_int32, (ContextHandle, POINTER(Pending))),
    # const usher_api *usher_get_api(uint32_t major);
    "usher_get_api": (c_void_p, (c_uint32,)),
}
"""C name -> (result, arguments), every function of the headers."""
