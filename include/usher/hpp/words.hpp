/*
 * hpp/words.hpp - part of usher.hpp: values, their names, and bytes of others.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_WORDS_HPP
#define USHER_HPP_WORDS_HPP

#include "../usher.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace usher {

using std::chrono::milliseconds;

/** "none" for a time whose zero means the default. */
inline constexpr milliseconds off{USHER_OFF};

/** USHER_OK and USHER_E_... */
enum class status : int32_t {
  ok = USHER_OK,
  invalid_argument = USHER_E_INVALID_ARGUMENT,
  invalid_handle = USHER_E_INVALID_HANDLE,
  closed = USHER_E_CLOSED,
  replaced = USHER_E_REPLACED,
  no_delegate = USHER_E_NO_DELEGATE,
  timeout = USHER_E_TIMEOUT,
  would_deadlock = USHER_E_WOULD_DEADLOCK,
  forked = USHER_E_FORKED,
  system = USHER_E_SYSTEM,
  callback = USHER_E_CALLBACK,
  invalid_completion = USHER_E_INVALID_COMPLETION,
  state = USHER_E_STATE,
  transport = USHER_E_TRANSPORT,
  tls = USHER_E_TLS,
  http = USHER_E_HTTP,
  refused = USHER_E_REFUSED,
  limit = USHER_E_LIMIT,
  protocol = USHER_E_PROTOCOL,
  too_large = USHER_E_TOO_LARGE,
  no_token = USHER_E_NO_TOKEN,
  redirect = USHER_E_REDIRECT,
  session = USHER_E_SESSION,
  renewal_missed = USHER_E_RENEWAL_MISSED,
  declined = USHER_E_DECLINED,
  full = USHER_E_FULL,
  not_allowed = USHER_E_NOT_ALLOWED
};

enum class origin : int32_t {
  local = USHER_ORIGIN_LOCAL,
  ssm = USHER_ORIGIN_SSM,
  license = USHER_ORIGIN_LICENSE,
  certificate = USHER_ORIGIN_CERTIFICATE,
  entitlement = USHER_ORIGIN_ENTITLEMENT
};

enum class operation : int32_t {
  none = USHER_OPERATION_NONE,
  setup = USHER_OPERATION_SETUP,
  heartbeat = USHER_OPERATION_HEARTBEAT,
  teardown = USHER_OPERATION_TEARDOWN,
  license = USHER_OPERATION_LICENSE,
  renewal = USHER_OPERATION_RENEWAL,
  certificate = USHER_OPERATION_CERTIFICATE,
  entitlement = USHER_OPERATION_ENTITLEMENT
};

enum class event_type : int32_t {
  session_started = USHER_EVENT_SESSION_STARTED,
  setup_error = USHER_EVENT_SETUP_ERROR,
  heartbeat_error = USHER_EVENT_HEARTBEAT_ERROR,
  teardown_error = USHER_EVENT_TEARDOWN_ERROR,
  kept_alive = USHER_EVENT_KEPT_ALIVE,
  recovered = USHER_EVENT_RECOVERED,
  session_doubtful = USHER_EVENT_SESSION_DOUBTFUL,
  renewal_due = USHER_EVENT_RENEWAL_DUE,
  session_ended = USHER_EVENT_SESSION_ENDED,
  license = USHER_EVENT_LICENSE,
  license_error = USHER_EVENT_LICENSE_ERROR,
  playback_closed = USHER_EVENT_PLAYBACK_CLOSED,
  no_session = USHER_EVENT_NO_SESSION
};

enum class close_mode : int32_t {
  standard = USHER_CLOSE_DEFAULT,
  teardown = USHER_CLOSE_TEARDOWN,
  leave = USHER_CLOSE_LEAVE
};

enum class session_state : int32_t {
  none = USHER_SESSION_NONE,
  pending = USHER_SESSION_PENDING,
  active = USHER_SESSION_ACTIVE,
  doubtful = USHER_SESSION_DOUBTFUL,
  failed = USHER_SESSION_FAILED,
  ended = USHER_SESSION_ENDED
};

enum class clock_kind : int32_t { system = USHER_CLOCK_SYSTEM, manual = USHER_CLOCK_MANUAL };
enum class callback_mode : int32_t { threaded = USHER_CALLBACKS_THREADED, pumped = USHER_CALLBACKS_PUMPED };
enum class log_level : int32_t {
  standard = 0,
  error = USHER_LOG_ERROR,
  warning = USHER_LOG_WARNING,
  info = USHER_LOG_INFO,
  debug = USHER_LOG_DEBUG
};
enum class append_version : int32_t {
  automatic = USHER_APPEND_AUTO,
  always = USHER_APPEND_ALWAYS,
  never = USHER_APPEND_NEVER
};
enum class heartbeat_missing : int32_t {
  error = USHER_HEARTBEAT_MISSING_ERROR,
  no_timer = USHER_HEARTBEAT_MISSING_NO_TIMER
};
enum class heartbeat_start : int32_t { setup = USHER_HEARTBEAT_START_SETUP, license = USHER_HEARTBEAT_START_LICENSE };
enum class keep_alive : int32_t {
  automatic = USHER_KEEP_ALIVE_AUTO,
  heartbeat = USHER_KEEP_ALIVE_HEARTBEAT,
  renewal = USHER_KEEP_ALIVE_RENEWAL
};
enum class resetup : int32_t {
  callback_only = USHER_RESETUP_CALLBACK_ONLY,
  always = USHER_RESETUP_ALWAYS,
  never = USHER_RESETUP_NEVER
};
enum class suspend_rule : int32_t { keep = USHER_SUSPEND_KEEP, pause = USHER_SUSPEND_PAUSE };
enum class wire_format : int32_t { automatic = USHER_WIRE_AUTO, raw = USHER_WIRE_RAW };
enum class license_type : int32_t { request = USHER_LICENSE_REQUEST, renewal = USHER_LICENSE_RENEWAL };
enum class renew_type : int32_t {
  none = USHER_RENEW_NONE,
  heartbeat = USHER_RENEW_HEARTBEAT,
  enforced = USHER_RENEW_ENFORCED,
  cdm = USHER_RENEW_CDM
};

/** What a hook is asked to make. */
enum class hook : int32_t {
  content_id = USHER_HOOK_CONTENT_ID,
  certificate = USHER_HOOK_CERTIFICATE,
  http_headers = USHER_HOOK_HEADERS,
  license_url = USHER_HOOK_LICENSE_URL,
  license_body = USHER_HOOK_LICENSE_BODY,
  license = USHER_HOOK_LICENSE
};

/** Which part of a URL is the content identifier. */
enum class content_id_rule : int32_t {
  decoded_json = USHER_CONTENT_ID_DECODED_JSON,
  decoded_base64 = USHER_CONTENT_ID_DECODED_BASE64,
  host = USHER_CONTENT_ID_HOST,
  after_scheme = USHER_CONTENT_ID_AFTER_SCHEME,
  after_semicolon = USHER_CONTENT_ID_AFTER_SEMICOLON,
  whole_url = USHER_CONTENT_ID_WHOLE_URL,
  ssp = USHER_CONTENT_ID_SSP
};

enum class route : int32_t {
  key_server = USHER_ROUTE_KEY_SERVER,
  entitlement = USHER_ROUTE_ENTITLEMENT,
  token_url = USHER_ROUTE_TOKEN_URL
};
enum class fps_request_format : int32_t {
  raw = USHER_FPS_REQUEST_RAW,
  form = USHER_FPS_REQUEST_FORM,
  base64 = USHER_FPS_REQUEST_BASE64,
  json = USHER_FPS_REQUEST_JSON
};
enum class spc_urlencode : int32_t {
  value = USHER_URLENCODE_VALUE,
  none = USHER_URLENCODE_NONE,
  whole = USHER_URLENCODE_WHOLE
};
enum class fps_response_format : int32_t {
  automatic = USHER_FPS_RESPONSE_AUTO,
  raw = USHER_FPS_RESPONSE_RAW,
  base64 = USHER_FPS_RESPONSE_BASE64,
  element = USHER_FPS_RESPONSE_ELEMENT,
  json = USHER_FPS_RESPONSE_JSON
};

namespace key_system {
inline constexpr const char *fairplay = USHER_KEY_SYSTEM_FAIRPLAY;
inline constexpr const char *widevine = USHER_KEY_SYSTEM_WIDEVINE;
inline constexpr const char *playready = USHER_KEY_SYSTEM_PLAYREADY;
inline constexpr const char *clearkey = USHER_KEY_SYSTEM_CLEARKEY;
} // namespace key_system

/** The C API's names and lines, by value of the enumerations. Static storage, never NULL. Threads: any. */
inline const char *version() noexcept { return usher_version(); }
inline const char *status_name(status s) noexcept { return usher_status_name(static_cast<int32_t>(s)); }
inline const char *status_message(status s) noexcept { return usher_status_message(static_cast<int32_t>(s)); }
inline const char *origin_name(origin o) noexcept { return usher_origin_name(static_cast<int32_t>(o)); }
inline const char *operation_name(operation o) noexcept { return usher_operation_name(static_cast<int32_t>(o)); }
inline const char *event_name(event_type t) noexcept { return usher_event_name(static_cast<int32_t>(t)); }
/** The table of C functions; nullptr when the library cannot serve that major version. */
inline const usher_api *api(uint32_t major = USHER_VERSION_MAJOR) noexcept { return usher_get_api(major); }

/** Bytes that belong to somebody else: from a pointer and a size, text, or any container with data() and size() of bytes. */
class bytes_view {
public:
  constexpr bytes_view() noexcept = default;
  constexpr bytes_view(const uint8_t *data, size_t size) noexcept : data_(data), size_(size) {}
  bytes_view(std::string_view text) noexcept
      : data_(reinterpret_cast<const uint8_t *>(text.data())), size_(text.size()) {}
  bytes_view(const std::string &text) noexcept : bytes_view(std::string_view(text)) {}
  bytes_view(const char *text) noexcept : bytes_view(std::string_view(text)) {}
  template <class Bytes,
      class = std::enable_if_t<std::is_same_v<
          std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const Bytes &>().data())>>, uint8_t>>>
  constexpr bytes_view(const Bytes &bytes) noexcept : data_(bytes.data()), size_(bytes.size()) {}

  constexpr const uint8_t *data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr const uint8_t *begin() const noexcept { return data_; }
  constexpr const uint8_t *end() const noexcept { return data_ + size_; }
  /** The bytes as text; not ended by a NUL. */
  std::string_view text() const noexcept { return {reinterpret_cast<const char *>(data_), size_}; }

private:
  const uint8_t *data_ = nullptr;
  size_t size_ = 0;
};

} // namespace usher

#endif /* USHER_HPP_WORDS_HPP */
