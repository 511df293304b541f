/*
 * usher.hpp - the C API for C++17: the same functions, with owners, std::function, std::chrono and exceptions. Header only; link with libusher as C does.
 *
 *   usher::context context;
 *   auto delegate = context.new_ssp_delegate(options);
 *   auto player = context.new_player();
 *   auto playback = player.play(item);
 *   auto licence = playback.get_license(request);          // waits; throws usher::error
 *
 * Read <usher/usher.h> for what the functions do; here stands what is different.
 *
 * OWNERSHIP
 * context, delegate, player, playback and response are move-only owners; their destructors free. Any order of destruction is safe. ~context waits as
 * usher_context_free() does. playback_ref and player_ref own nothing; what they name may be gone, and then answers INVALID_HANDLE. Strings and bytes
 * given are copied before a call returns, and the wrapper's own copies of tokens are wiped.
 *
 * CALLBACKS
 * Are std::function. The library destroys each (and so what it captured) exactly once, after its last call, also where the call it was given to failed.
 * Threads and order are those of the C callbacks. What a callback is given by reference or as a view lives until it returns. An exception that leaves a
 * callback never crosses C: the first one of a context is kept, context::pump() throws it again, context::take_exception() hands it out; a question
 * that was being asked is answered with "none".
 *
 * ANSWER LATER
 * token_request and payload_request are move-only and answer one question, from any thread. One that is destroyed unanswered answers "none".
 *
 * ERRORS
 * Functions that return outcome<T> return T and throw usher::error (a std::system_error with the usher_error in full). With USHER_NO_EXCEPTIONS
 * defined before inclusion (or -fno-exceptions) they return result<T> instead. usher::attempt(f) turns one form into the other for one call.
 *
 * TIMES
 * std::chrono::milliseconds; zero means the C header's default, usher::off "none" where that is possible. At most 49 days: longer is cut.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_USHER_HPP
#define USHER_USHER_HPP

#include "usher.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#if !defined(__cpp_exceptions) && !defined(USHER_NO_EXCEPTIONS)
#define USHER_NO_EXCEPTIONS 1
#endif

namespace usher {

/* ---- words -------------------------------------------------------------------------------------------------------------- */

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

enum class origin : int32_t { local = USHER_ORIGIN_LOCAL, ssm = USHER_ORIGIN_SSM, license = USHER_ORIGIN_LICENSE, certificate = USHER_ORIGIN_CERTIFICATE, entitlement = USHER_ORIGIN_ENTITLEMENT };

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

enum class close_mode : int32_t { standard = USHER_CLOSE_DEFAULT, teardown = USHER_CLOSE_TEARDOWN, leave = USHER_CLOSE_LEAVE };

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
enum class log_level : int32_t { standard = 0, error = USHER_LOG_ERROR, warning = USHER_LOG_WARNING, info = USHER_LOG_INFO, debug = USHER_LOG_DEBUG };
enum class append_version : int32_t { automatic = USHER_APPEND_AUTO, always = USHER_APPEND_ALWAYS, never = USHER_APPEND_NEVER };
enum class heartbeat_missing : int32_t { error = USHER_HEARTBEAT_MISSING_ERROR, no_timer = USHER_HEARTBEAT_MISSING_NO_TIMER };
enum class heartbeat_start : int32_t { setup = USHER_HEARTBEAT_START_SETUP, license = USHER_HEARTBEAT_START_LICENSE };
enum class keep_alive : int32_t { automatic = USHER_KEEP_ALIVE_AUTO, heartbeat = USHER_KEEP_ALIVE_HEARTBEAT, renewal = USHER_KEEP_ALIVE_RENEWAL };
enum class resetup : int32_t { callback_only = USHER_RESETUP_CALLBACK_ONLY, always = USHER_RESETUP_ALWAYS, never = USHER_RESETUP_NEVER };
enum class wire_format : int32_t { automatic = USHER_WIRE_AUTO, raw = USHER_WIRE_RAW };
enum class license_type : int32_t { request = USHER_LICENSE_REQUEST, renewal = USHER_LICENSE_RENEWAL };
enum class renew_type : int32_t { none = USHER_RENEW_NONE, heartbeat = USHER_RENEW_HEARTBEAT, enforced = USHER_RENEW_ENFORCED, cdm = USHER_RENEW_CDM };

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
  bytes_view(std::string_view text) noexcept : data_(reinterpret_cast<const uint8_t *>(text.data())), size_(text.size()) {}
  bytes_view(const std::string &text) noexcept : bytes_view(std::string_view(text)) {}
  bytes_view(const char *text) noexcept : bytes_view(std::string_view(text)) {}
  template <class Bytes, class = std::enable_if_t<std::is_same_v<std::remove_cv_t<std::remove_pointer_t<decltype(std::declval<const Bytes &>().data())>>, uint8_t>>>
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

/* ---- errors ------------------------------------------------------------------------------------------------------------- */

/** usher_error, with a message of its own. For errors that travel as a status alone, status and message are set. */
struct error_detail {
  usher::status status = usher::status::ok;
  usher::origin origin = usher::origin::local;
  usher::operation operation = usher::operation::none;
  /** -1 when there was no HTTP answer. */
  int32_t http_status = -1;
  int64_t service_code = 0;
  std::string message;
  bool must_stop = false;
  bool orphan_possible = false;

  error_detail() = default;
  explicit error_detail(usher::status s) : status(s), message(usher_status_message(static_cast<int32_t>(s))) {}
  explicit error_detail(const usher_error &e)
      : status(static_cast<usher::status>(e.status)),
        origin(static_cast<usher::origin>(e.origin)),
        operation(static_cast<usher::operation>(e.operation)),
        http_status(e.http_status),
        service_code(e.service_code),
        message(e.message ? e.message : ""),
        must_stop(e.must_stop != 0),
        orphan_possible(e.orphan_possible != 0) {}

  /** true: something is wrong. */
  explicit operator bool() const noexcept { return status != usher::status::ok; }
};

/** Words for viewers and support desks; static strings. */
inline usher_explanation explain(const error_detail &e) noexcept {
  usher_explanation words = {"", "", 0};
  usher_error_explain(static_cast<int32_t>(e.origin), static_cast<int32_t>(e.status), e.service_code, &words);
  return words;
}

namespace words {
class status_category final : public std::error_category {
 public:
  const char *name() const noexcept override { return "usher"; }
  std::string message(int value) const override { return usher_status_message(value); }
};
} // namespace words

/** The category of statuses as std::error_code. */
inline const std::error_category &category() noexcept {
  static const words::status_category it;
  return it;
}
inline std::error_code make_error_code(status s) noexcept { return {static_cast<int>(s), category()}; }

#if defined(__cpp_exceptions)
/** What failing functions throw. code() is the status; what() its message. */
class error : public std::system_error {
 public:
  explicit error(error_detail d) : std::system_error(make_error_code(d.status), d.message), detail_(std::make_shared<const error_detail>(std::move(d))) {}
  const error_detail &detail() const noexcept { return *detail_; }
  usher::status status() const noexcept { return detail_->status; }
  const char *what() const noexcept override { return detail_->message.c_str(); }

 private:
  std::shared_ptr<const error_detail> detail_; // so that copying does not throw
};
#endif

/** A value, or why there is none. value() of a failed one throws usher::error; without exceptions it ends the process, so look first. */
template <class T>
class [[nodiscard]] result {
 public:
  result(T value) : value_(std::move(value)) {}
  result(error_detail e) : error_(std::move(e)) {}

  bool ok() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  usher::status status() const noexcept { return error_.status; }
  std::error_code code() const noexcept { return make_error_code(status()); }
  const error_detail &error() const noexcept { return error_; }
  T &value() & { return check(), *value_; }
  const T &value() const & { return check(), *value_; }
  T value() && { return check(), std::move(*value_); }

 private:
  void check() const {
    if (value_) return;
#if defined(__cpp_exceptions)
    throw usher::error(error_);
#else
    std::terminate();
#endif
  }
  std::optional<T> value_;
  error_detail error_;
};

template <>
class [[nodiscard]] result<void> {
 public:
  result() = default;
  result(error_detail e) : error_(std::move(e)) {}

  bool ok() const noexcept { return status() == usher::status::ok; }
  explicit operator bool() const noexcept { return ok(); }
  usher::status status() const noexcept { return error_.status; }
  std::error_code code() const noexcept { return make_error_code(status()); }
  const error_detail &error() const noexcept { return error_; }
  void value() const {
    if (ok()) return;
#if defined(__cpp_exceptions)
    throw usher::error(error_);
#else
    std::terminate();
#endif
  }

 private:
  error_detail error_;
};

/* The two forms live in namespaces of their own: files compiled with and without USHER_NO_EXCEPTIONS may be linked together. */
#if defined(USHER_NO_EXCEPTIONS)
inline namespace without_exceptions {
template <class T>
using outcome = result<T>;
#else
inline namespace with_exceptions {
template <class T>
using outcome = T;
#endif

/** f() as a result<T>, whichever form the functions have: `auto r = usher::attempt([&] { return playback.get_license(request); });` */
template <class F>
auto attempt(F &&f) {
#if defined(USHER_NO_EXCEPTIONS)
  return std::forward<F>(f)();
#else
  using T = decltype(std::forward<F>(f)());
  try {
    if constexpr (std::is_void_v<T>) {
      std::forward<F>(f)();
      return result<void>();
    } else {
      return result<T>(std::forward<F>(f)());
    }
  } catch (const usher::error &e) {
    return result<T>(e.detail());
  }
#endif
}

namespace detail {

template <class T>
outcome<T> give(result<T> r) {
#if defined(USHER_NO_EXCEPTIONS)
  return r;
#else
  return std::move(r).value();
#endif
}
inline outcome<void> done(int32_t s) { return give(s == USHER_OK ? result<void>() : result<void>(error_detail(static_cast<status>(s)))); }
template <class T>
outcome<T> done(int32_t s, T value) {
  return give(s == USHER_OK ? result<T>(std::move(value)) : result<T>(error_detail(static_cast<status>(s))));
}

inline uint32_t ms32(milliseconds t) noexcept { return t.count() < 0 ? 1 : t.count() > USHER_OFF ? USHER_OFF - 1 : static_cast<uint32_t>(t.count()); }
inline uint64_t ms64(milliseconds t) noexcept { return t.count() < 0 ? 0 : static_cast<uint64_t>(t.count()); }
inline milliseconds from_ms(uint64_t ms) noexcept { return milliseconds(ms > INT64_MAX ? INT64_MAX : static_cast<int64_t>(ms)); }

inline void wipe(std::string &text) noexcept {
  for (volatile char *at = text.data(), *end = at + text.size(); at != end; ++at) *at = 0;
}

/** Text on its way to C: ended by a NUL, wiped afterwards. One with a NUL inside would end early there, and is refused. */
class c_text {
 public:
  explicit c_text(std::string_view text) : text_(text) {}
  explicit c_text(const std::string &text) : text_(text) {}
  explicit c_text(const std::optional<std::string> &text) : text_(text ? std::string_view(*text) : std::string_view()), none_(!text) {}
  c_text(const c_text &) = delete;
  c_text &operator=(const c_text &) = delete;
  ~c_text() { wipe(text_); }
  const char *c_str() const noexcept { return none_ ? nullptr : text_.c_str(); }
  bool whole() const noexcept { return text_.find('\0') == text_.npos; }

 private:
  std::string text_;
  bool none_ = false;
};
template <class... Texts>
bool whole(const Texts &...texts) noexcept {
  return (texts.whole() && ...);
}

/** The first exception that left a callback of a context. Threads: any. */
class faults {
 public:
  void keep(std::exception_ptr e) noexcept {
    std::lock_guard<std::mutex> hold(lock_);
    if (!first_) first_ = std::move(e);
  }
  std::exception_ptr take() noexcept {
    std::lock_guard<std::mutex> hold(lock_);
    return std::exchange(first_, nullptr);
  }
  template <class F>
  void guard(F &&f) noexcept {
#if defined(__cpp_exceptions)
    try {
      f();
    } catch (...) {
      keep(std::current_exception());
    }
#else
    f();
#endif
  }

 private:
  std::mutex lock_;
  std::exception_ptr first_;
};
using shared_faults = std::shared_ptr<faults>;

/** What C carries as `user_data`: given away on the call, deleted by `destroy`. */
template <class F>
struct box {
  F call;
  shared_faults kept;
  static void destroy(void *it) { delete static_cast<box *>(it); }
};
template <class F>
box<F> *boxed(F f, const shared_faults &kept) {
  return new box<F>{std::move(f), kept ? kept : std::make_shared<faults>()};
}

/** The owner of one handle. */
template <class Handle, int32_t (*Free)(Handle *)>
class owner {
 public:
  owner() noexcept = default;
  owner(Handle *handle, shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}
  owner(owner &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)), kept_(std::move(other.kept_)) {}
  owner &operator=(owner &&other) noexcept {
    if (this != &other) {
      free();
      handle_ = std::exchange(other.handle_, nullptr);
      kept_ = std::move(other.kept_);
    }
    return *this;
  }
  ~owner() { free(); }

  /** The C handle; still owned here. */
  Handle *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /** Gives the C handle away: free it yourself. */
  Handle *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees now what the destructor would. */
  void free() noexcept {
    if (Handle *handle = std::exchange(handle_, nullptr)) Free(handle);
  }

 protected:
  Handle *handle_ = nullptr;
  shared_faults kept_;
};

} // namespace detail

/* ---- answer later -------------------------------------------------------------------------------------------------------- */

class playback_ref;

/** One question of the library, to be answered once, from any thread, before its deadline. Destroyed unanswered it answers "none". */
class question {
 public:
  question(question &&other) noexcept : id_(std::exchange(other.id_, 0)), playback_(other.playback_), tag_(other.tag_), kept_(std::move(other.kept_)) {}
  question(const question &) = delete;
  question &operator=(const question &) = delete;

  /** Still to be answered by this object. */
  explicit operator bool() const noexcept { return id_ != 0; }
  uint64_t tag() const noexcept { return tag_; }
  playback_ref playback() const noexcept;
  /** Gives the C completion id away: answer it with usher_complete_...(). */
  usher_completion release() noexcept { return std::exchange(id_, 0); }

 protected:
  question(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept
      : id_(id), playback_(playback), tag_(tag), kept_(std::move(kept)) {}
  ~question() = default;
  question &operator=(question &&other) noexcept {
    id_ = std::exchange(other.id_, 0), playback_ = other.playback_, tag_ = other.tag_, kept_ = std::move(other.kept_);
    return *this;
  }
  /** true: taken. false: too late. An answer that is none fails with INVALID_ARGUMENT, and the question stays open. */
  outcome<bool> told(int32_t s) {
    if (s != USHER_E_INVALID_ARGUMENT) id_ = 0;
    return s == USHER_E_INVALID_COMPLETION ? detail::done(USHER_OK, false) : detail::done(s, true);
  }
  usher_completion id_;

 private:
  usher_playback *playback_;
  uint64_t tag_;
  detail::shared_faults kept_;
};

/** A content token is wanted: usher_token_fn. */
class token_request : public question {
 public:
  token_request(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept : question(id, playback, tag, std::move(kept)) {}
  token_request(token_request &&) noexcept = default;
  token_request &operator=(token_request &&other) noexcept {
    if (this != &other) refuse(), question::operator=(std::move(other));
    return *this;
  }
  ~token_request() { refuse(); }

  /** The token. @return true: taken; false: too late, or answered before. INVALID_ARGUMENT: no header value; the question stays open. */
  outcome<bool> answer(std::string_view token) {
    detail::c_text text(token);
    return told(text.whole() ? usher_complete_token(id_, text.c_str()) : USHER_E_INVALID_ARGUMENT);
  }
  /** There is none: the request that needs it fails with no_token. */
  void refuse() noexcept {
    if (usher_completion id = release()) usher_complete_token(id, nullptr);
  }
};

/** A fresh licence payload is wanted: usher_payload_fn. */
class payload_request : public question {
 public:
  payload_request(usher_completion id, usher_playback *playback, const char *key_system, uint64_t tag, detail::shared_faults kept)
      : question(id, playback, tag, std::move(kept)), key_system_(key_system ? key_system : "") {}
  payload_request(payload_request &&) noexcept = default;
  payload_request &operator=(payload_request &&other) noexcept {
    if (this != &other) refuse(), key_system_ = std::move(other.key_system_), question::operator=(std::move(other));
    return *this;
  }
  ~payload_request() { refuse(); }

  const std::string &key_system() const noexcept { return key_system_; }
  /** The CDM's challenge, 1 byte to 1 MiB. @return as token_request::answer(). */
  outcome<bool> answer(bytes_view payload) {
    static const uint8_t nothing = 0; // NULL would mean "none"; no bytes are a mistake
    return told(usher_complete_payload(id_, payload.data() ? payload.data() : &nothing, payload.size()));
  }
  /** There is none: the renewal fails with callback. */
  void refuse() noexcept {
    if (usher_completion id = release()) usher_complete_payload(id, nullptr, 0);
  }

 private:
  std::string key_system_;
};

/* ---- licences ------------------------------------------------------------------------------------------------------------ */

/** usher_license_request. */
struct license_request {
  /** key_system::... Required. */
  std::string key_system;
  /** Required; looked at until the call returns. */
  bytes_view payload;
  license_type type = license_type::request;
  milliseconds timeout{0};
};

/** usher_response_info; `data` lives as long as what it came from. */
struct response_info {
  bytes_view data;
  milliseconds period{0};
  renew_type renewal = renew_type::none;
  license_type type = license_type::request;
  error_detail error;

  response_info() = default;
  explicit response_info(const usher_response_info &r)
      : data(r.data, r.data_size),
        period(detail::from_ms(r.period_ms)),
        renewal(static_cast<renew_type>(r.renew_type)),
        type(static_cast<license_type>(r.type)),
        error(r.error) {}
};

/** A licence or certificate. Wiped when destroyed. */
class response : public detail::owner<usher_response, usher_response_free> {
 public:
  using owner::owner;
  /** @return what it holds; views into it live as long as this object. */
  outcome<response_info> info() const {
    usher_response_info raw = USHER_RESPONSE_INFO_INIT;
    int32_t s = usher_response_get(handle_, &raw);
    return detail::done(s, s == USHER_OK ? response_info(raw) : response_info());
  }
  /** The bytes for the CDM; none when this object is empty. */
  bytes_view data() const noexcept {
    usher_response_info raw = USHER_RESPONSE_INFO_INIT;
    return usher_response_get(handle_, &raw) == USHER_OK ? bytes_view(raw.data, raw.data_size) : bytes_view();
  }
};

/** Told the answer of a request exactly once; `info.error` says whether there is data. The playback may be freed already. */
using license_callback = std::function<void(playback_ref playback, const response_info &info, uint64_t tag)>;
/** Asked for a token; see token_request. */
using token_callback = std::function<void(token_request request)>;
/** Asked for a payload; see payload_request. */
using payload_callback = std::function<void(payload_request request)>;

namespace detail {
inline void tell_license(usher_playback *playback, const usher_response_info *info, uint64_t tag, const license_callback &call, const shared_faults &kept) noexcept;
inline void on_license(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<license_callback> *>(user_data);
  tell_license(playback, info, tag, it->call, it->kept);
}
} // namespace detail

/* ---- playback ------------------------------------------------------------------------------------------------------------ */

/** Names a playback without owning it, e.g. in callbacks. Copies are cheap. Threads: any. */
class playback_ref {
 public:
  playback_ref() noexcept = default;
  playback_ref(usher_playback *handle, detail::shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}

  usher_playback *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const playback_ref &a, const playback_ref &b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const playback_ref &a, const playback_ref &b) noexcept { return a.handle_ != b.handle_; }

  /** usher_playback_close(). In callbacks: yes. */
  outcome<void> close(close_mode mode = close_mode::standard) const { return detail::done(usher_playback_close(handle_, static_cast<int32_t>(mode))); }
  /** usher_playback_wait_session(): fails with why there is no session. In callbacks: no. */
  outcome<void> wait_session(milliseconds timeout = milliseconds(0)) const { return detail::done(usher_playback_wait_session(handle_, detail::ms32(timeout))); }
  /** usher_playback_wait_closed(). In callbacks: no. */
  outcome<void> wait_closed(milliseconds timeout = off) const { return detail::done(usher_playback_wait_closed(handle_, detail::ms32(timeout))); }
  /** usher_playback_session_state(). In callbacks: yes. */
  outcome<session_state> state() const {
    int32_t state = USHER_SESSION_NONE;
    int32_t s = usher_playback_session_state(handle_, &state);
    return detail::done(s, static_cast<session_state>(state));
  }

  /** usher_playback_request_license(). `fn` is told exactly once, unless this call fails. In callbacks: yes. */
  outcome<void> request_license(const license_request &request, license_callback fn) const {
    detail::c_text key_system(request.key_system);
    if (!key_system.whole()) return detail::done(USHER_E_INVALID_ARGUMENT);
    usher_license_request raw = raw_request(request, key_system);
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(usher_playback_request_license(handle_, &raw, it->call ? detail::on_license : nullptr, it, it->destroy));
  }
  /** usher_playback_get_license(). Fails with the error in full. In callbacks: no. */
  outcome<response> get_license(const license_request &request) const {
    detail::c_text key_system(request.key_system);
    if (!key_system.whole()) return detail::done(USHER_E_INVALID_ARGUMENT, response());
    usher_license_request raw = raw_request(request, key_system);
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_license(handle_, &raw, &out);
    return answered(s, out);
  }
  /** usher_playback_request_certificate(). In callbacks: yes. */
  outcome<void> request_certificate(license_callback fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(usher_playback_request_certificate(handle_, it->call ? detail::on_license : nullptr, it, it->destroy));
  }
  /** usher_playback_get_certificate(). In callbacks: no. */
  outcome<response> get_certificate(milliseconds timeout = milliseconds(0)) const {
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_certificate(handle_, detail::ms32(timeout), &out);
    return answered(s, out);
  }

 protected:
  usher_playback *handle_ = nullptr;
  detail::shared_faults kept_;

 private:
  static usher_license_request raw_request(const license_request &request, const detail::c_text &key_system) noexcept {
    usher_license_request raw = USHER_LICENSE_REQUEST_INIT;
    raw.key_system = key_system.c_str();
    raw.type = static_cast<int32_t>(request.type);
    raw.timeout_ms = detail::ms32(request.timeout);
    raw.payload = request.payload.data();
    raw.payload_size = request.payload.size();
    return raw;
  }
  outcome<response> answered(int32_t s, usher_response *out) const {
    response it(out, kept_);
    if (s == USHER_OK) return detail::give(result<response>(std::move(it)));
    usher_response_info raw = USHER_RESPONSE_INFO_INIT;
    bool told = out && usher_response_get(out, &raw) == USHER_OK && raw.error.status == s;
    return detail::give(result<response>(told ? error_detail(raw.error) : error_detail(static_cast<status>(s))));
  }
};

/** One play of one item. The destructor closes it if that was not done, without waiting. */
class playback : public playback_ref {
 public:
  playback() noexcept = default;
  playback(usher_playback *handle, detail::shared_faults kept) noexcept : playback_ref(handle, std::move(kept)) {}
  playback(playback &&other) noexcept : playback_ref(other.release(), std::move(other.kept_)) {}
  playback &operator=(playback &&other) noexcept {
    if (this != &other) {
      free();
      handle_ = other.release();
      kept_ = std::move(other.kept_);
    }
    return *this;
  }
  ~playback() { free(); }
  /** Gives the C handle away: free it yourself. */
  usher_playback *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees now what the destructor would. */
  void free() noexcept {
    if (usher_playback *handle = release()) usher_playback_free(handle);
  }
};

inline playback_ref question::playback() const noexcept { return {playback_, kept_}; }

namespace detail {
inline void tell_license(usher_playback *playback, const usher_response_info *info, uint64_t tag, const license_callback &call, const shared_faults &kept) noexcept {
  kept->guard([&] { call(playback_ref(playback, kept), response_info(*info), tag); });
}

struct item_calls {
  payload_callback payload;
  license_callback renewed;
};
inline void on_payload(usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<item_calls> *>(user_data);
  it->kept->guard([&] { it->call.payload(payload_request(completion, playback, key_system, tag, it->kept)); });
}
inline void on_renewed(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<item_calls> *>(user_data);
  tell_license(playback, info, tag, it->call.renewed, it->kept);
}
inline void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<token_callback> *>(user_data);
  it->kept->guard([&] { it->call(token_request(completion, playback, tag, it->kept)); });
}
} // namespace detail

/* ---- delegate ------------------------------------------------------------------------------------------------------------ */

/** usher_ssp_options, field by field. No value or zero: the default. */
struct ssp_options {
  /** Required. */
  std::string license_url;
  std::optional<std::string> certificate_url, ssm_url;
  bool sync_setup_teardown = false;
  usher::append_version ssm_append_version = usher::append_version::automatic;
  std::optional<std::string> ssm_api_version;
  std::optional<std::string> setup_url, heartbeat_url, teardown_url, renewal_url;
  std::optional<std::string> token_header, extra_headers, setup_body, keep_alive_body;
  milliseconds setup_timeout{0}, teardown_timeout{0}, token_timeout{0}, payload_timeout{0};
  usher::heartbeat_missing heartbeat_missing = usher::heartbeat_missing::error;
  usher::heartbeat_start heartbeat_start = usher::heartbeat_start::setup;
  bool lenient_numbers = false;
  milliseconds period_min{0}, period_max{0};
  bool period_updates = false;
  /** USHER_OFF: none. */
  uint32_t jitter_permille = 0, retry_permille = 0, keep_alive_failures_max = 0;
  usher::keep_alive keep_alive = usher::keep_alive::automatic;
  resetup resetup_on_extra_license = resetup::callback_only;
  usher::wire_format wire_format = usher::wire_format::automatic;
  /** USHER_OFF: none. */
  uint32_t teardown_retries = 0;
  milliseconds keep_alive_timeout{0};
};

/** How licences are asked for. Lives on while playbacks or the context use it. */
class delegate : public detail::owner<usher_delegate, usher_delegate_free> {
 public:
  using owner::owner;
  /** usher_delegate_set_token_callback(); an empty function clears it. In callbacks: yes. */
  outcome<void> set_token_callback(token_callback fn) const {
    if (!fn) return detail::done(usher_delegate_set_token_callback(handle_, nullptr, nullptr, nullptr));
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(usher_delegate_set_token_callback(handle_, detail::on_token, it, it->destroy));
  }
};

/* ---- player -------------------------------------------------------------------------------------------------------------- */

/** usher_playback_options. */
struct playback_options {
  /** nullptr: the context's. */
  const usher::delegate *delegate = nullptr;
  /** No value: the delegate's token callback is asked. */
  std::optional<std::string> content_token;
  /** Looked at until play() returns. */
  bytes_view content_id;
  uint64_t tag = 0;
  payload_callback payload;
  license_callback renewed;
};

/** Names a player without owning it. Threads: any. */
class player_ref {
 public:
  player_ref() noexcept = default;
  player_ref(usher_player *handle, detail::shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}

  usher_player *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const player_ref &a, const player_ref &b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const player_ref &a, const player_ref &b) noexcept { return a.handle_ != b.handle_; }

  /** usher_player_play(). The functions in `options` are destroyed after the playback's last event, or when this fails. */
  outcome<usher::playback> play(playback_options options) const {
    detail::c_text token(options.content_token);
    if (options.content_token) detail::wipe(*options.content_token);
    if (!token.whole()) return detail::done(USHER_E_INVALID_ARGUMENT, usher::playback());
    usher_playback_options raw = USHER_PLAYBACK_OPTIONS_INIT;
    raw.delegate = options.delegate ? options.delegate->handle() : nullptr;
    raw.content_token = token.c_str();
    raw.content_id = options.content_id.data();
    raw.content_id_size = options.content_id.size();
    raw.tag = options.tag;
    if (options.payload) raw.payload = detail::on_payload;
    if (options.renewed) raw.renewed = detail::on_renewed;
    if (options.payload || options.renewed) {
      auto *it = detail::boxed(detail::item_calls{std::move(options.payload), std::move(options.renewed)}, kept_);
      raw.user_data = it;
      raw.destroy = it->destroy;
    }
    usher_playback *out = nullptr;
    int32_t s = usher_player_play(handle_, &raw, &out);
    return detail::done(s, usher::playback(out, kept_));
  }
  /** usher_player_stop(). In callbacks: yes. */
  outcome<void> stop(close_mode mode = close_mode::standard) const { return detail::done(usher_player_stop(handle_, static_cast<int32_t>(mode))); }

 protected:
  usher_player *handle_ = nullptr;
  detail::shared_faults kept_;
};

/** One screen. The destructor stops it, without waiting. */
class player : public player_ref {
 public:
  player() noexcept = default;
  player(usher_player *handle, detail::shared_faults kept) noexcept : player_ref(handle, std::move(kept)) {}
  player(player &&other) noexcept : player_ref(other.release(), std::move(other.kept_)) {}
  player &operator=(player &&other) noexcept {
    if (this != &other) {
      free();
      handle_ = other.release();
      kept_ = std::move(other.kept_);
    }
    return *this;
  }
  ~player() { free(); }
  /** Gives the C handle away: free it yourself. */
  usher_player *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees now what the destructor would. */
  void free() noexcept {
    if (usher_player *handle = release()) usher_player_free(handle);
  }
};

/* ---- context ------------------------------------------------------------------------------------------------------------- */

/** usher_event; a copy, yours to keep. */
struct event {
  event_type type;
  bool left;
  uint64_t sequence;
  milliseconds time;
  playback_ref playback;
  player_ref player;
  uint64_t tag;
  milliseconds period, lateness;
  error_detail error;

  event(const usher_event &e, const detail::shared_faults &kept)
      : type(static_cast<event_type>(e.type)),
        left(e.left != 0),
        sequence(e.sequence),
        time(detail::from_ms(e.time_ms)),
        playback(e.playback, kept),
        player(e.player, kept),
        tag(e.tag),
        period(detail::from_ms(e.period_ms)),
        lateness(detail::from_ms(e.lateness_ms)),
        error(e.error) {}
  const char *name() const noexcept { return event_name(type); }
};

/** Told every event; see usher_event_fn. */
using observer = std::function<void(const event &)>;
/** Told log lines; the view lives until return. See usher_log_fn. */
using log_sink = std::function<void(log_level level, std::string_view line)>;

/** usher_context_options, field by field. No value or zero: the default. */
struct context_options {
  clock_kind clock = clock_kind::system;
  usher::log_level log_level = usher::log_level::standard;
  log_sink log;
  uint32_t callback_threads_max = 0;
  milliseconds connect_timeout{0}, http_timeout{0};
  uint32_t max_response_bytes = 0, requests_per_origin_max = 0;
  bool allow_insecure_http = false;
  std::optional<std::string> ca_file, pinned_public_key, client_certificate_file, client_key_file, proxy, user_agent;
  callback_mode callbacks = callback_mode::threaded;
};

/** usher_pending. */
struct pending {
  uint32_t transfers = 0, callbacks = 0, queued = 0;
  /** No value: no timer. */
  std::optional<milliseconds> next_timer;
  milliseconds now{0};
};

namespace detail {
inline void on_event(const usher_event *e, void *user_data) {
  auto *it = static_cast<box<observer> *>(user_data);
  shared_faults kept = it->kept;
  kept->guard([&] { it->call(event(*e, kept)); });
}
inline void on_log(int32_t level, const char *line, void *user_data) {
  auto *it = static_cast<box<log_sink> *>(user_data);
  it->kept->guard([&] { it->call(static_cast<log_level>(level), line); });
}
} // namespace detail

/** One independent instance of the library. The destructor frees: it closes what is open and waits for that, but not inside its own callbacks. */
class context : public detail::owner<usher_context, usher_context_free> {
 public:
  /** usher_context_new(). In callbacks: yes. */
  static outcome<context> make(context_options options = {}) {
    auto kept = std::make_shared<detail::faults>();
    detail::c_text ca(options.ca_file), pin(options.pinned_public_key), certificate(options.client_certificate_file), key(options.client_key_file),
        proxy(options.proxy), agent(options.user_agent);
    if (!detail::whole(ca, pin, certificate, key, proxy, agent)) return detail::done(USHER_E_INVALID_ARGUMENT, context(nullptr, kept));
    usher_context_options raw = USHER_CONTEXT_OPTIONS_INIT;
    raw.clock = static_cast<int32_t>(options.clock);
    raw.log_level = static_cast<int32_t>(options.log_level);
    raw.callback_threads_max = options.callback_threads_max;
    raw.connect_timeout_ms = detail::ms32(options.connect_timeout);
    raw.http_timeout_ms = detail::ms32(options.http_timeout);
    raw.max_response_bytes = options.max_response_bytes;
    raw.requests_per_origin_max = options.requests_per_origin_max;
    raw.allow_insecure_http = options.allow_insecure_http;
    raw.ca_file = ca.c_str();
    raw.pinned_public_key = pin.c_str();
    raw.client_certificate_file = certificate.c_str();
    raw.client_key_file = key.c_str();
    raw.proxy = proxy.c_str();
    raw.user_agent = agent.c_str();
    raw.callbacks = static_cast<int32_t>(options.callbacks);
    if (options.log) {
      auto *it = detail::boxed(std::move(options.log), kept);
      raw.log = detail::on_log;
      raw.log_user_data = it;
      raw.log_destroy = it->destroy;
    }
    usher_context *out = nullptr;
    int32_t s = usher_context_new(&raw, &out);
    return detail::done(s, context(out, kept));
  }
#if !defined(USHER_NO_EXCEPTIONS)
  context() : context(make()) {}
  explicit context(context_options options) : context(make(std::move(options))) {}
#endif
  /** Takes a C handle over. */
  static context adopt(usher_context *handle) { return {handle, std::make_shared<detail::faults>()}; }

  /** usher_context_close(). @return how many playbacks were not closed in time; 0: all are. In callbacks: no. */
  outcome<uint32_t> close(milliseconds timeout = milliseconds(0)) const {
    uint32_t open = 0;
    int32_t s = usher_context_close(handle_, detail::ms32(timeout), &open);
    return detail::done(s == USHER_E_TIMEOUT ? USHER_OK : s, open);
  }
  /** usher_context_pump(). @return how many callbacks ran. Throws what one of them threw. In callbacks: no. */
  outcome<uint32_t> pump() const {
    detail::shared_faults kept = kept_; // this object may be destroyed by a callback
    uint32_t ran = 0;
    int32_t s = usher_context_pump(handle_, &ran);
#if !defined(USHER_NO_EXCEPTIONS)
    if (std::exception_ptr thrown = kept ? kept->take() : nullptr) std::rethrow_exception(thrown);
#endif
    return detail::done(s, ran);
  }
  /** usher_context_pump_fd(): watch it for reading, nothing else. In callbacks: yes. */
  outcome<int> pump_fd() const {
    int fd = -1;
    int32_t s = usher_context_pump_fd(handle_, &fd);
    return detail::done(s, fd);
  }
  /** The first exception that left a callback and was not handed out yet; null without one. Threads: any. */
  std::exception_ptr take_exception() const noexcept { return kept_ ? kept_->take() : nullptr; }

  /** usher_context_add_observer(). @return the id for remove_observer(). In callbacks: yes. */
  outcome<uint64_t> add_observer(observer fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    uint64_t id = 0;
    int32_t s = usher_context_add_observer(handle_, it->call ? detail::on_event : nullptr, it, it->destroy, &id);
    return detail::done(s, id);
  }
  /** usher_context_remove_observer(). In callbacks: yes. */
  outcome<void> remove_observer(uint64_t id) const { return detail::done(usher_context_remove_observer(handle_, id)); }
  /** usher_context_set_delegate(). In callbacks: yes. */
  outcome<void> set_delegate(const delegate &d) const { return detail::done(usher_context_set_delegate(handle_, d.handle())); }
  outcome<void> clear_delegate() const { return detail::done(usher_context_set_delegate(handle_, nullptr)); }

  /** usher_ssp_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_ssp_delegate(const ssp_options &options) const {
    using detail::c_text, detail::ms32;
    c_text license(options.license_url), certificate(options.certificate_url), ssm(options.ssm_url), version(options.ssm_api_version), setup(options.setup_url),
        heartbeat(options.heartbeat_url), teardown(options.teardown_url), renewal(options.renewal_url), header(options.token_header), extra(options.extra_headers),
        setup_body(options.setup_body), keep_alive_body(options.keep_alive_body);
    if (!detail::whole(license, certificate, ssm, version, setup, heartbeat, teardown, renewal, header, extra, setup_body, keep_alive_body))
      return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    usher_ssp_options raw = USHER_SSP_OPTIONS_INIT;
    raw.license_url = license.c_str();
    raw.certificate_url = certificate.c_str();
    raw.ssm_url = ssm.c_str();
    raw.sync_setup_teardown = options.sync_setup_teardown;
    raw.ssm_append_version = static_cast<int32_t>(options.ssm_append_version);
    raw.ssm_api_version = version.c_str();
    raw.setup_url = setup.c_str();
    raw.heartbeat_url = heartbeat.c_str();
    raw.teardown_url = teardown.c_str();
    raw.renewal_url = renewal.c_str();
    raw.token_header = header.c_str();
    raw.extra_headers = extra.c_str();
    raw.setup_body = setup_body.c_str();
    raw.keep_alive_body = keep_alive_body.c_str();
    raw.setup_timeout_ms = ms32(options.setup_timeout);
    raw.teardown_timeout_ms = ms32(options.teardown_timeout);
    raw.token_timeout_ms = ms32(options.token_timeout);
    raw.payload_timeout_ms = ms32(options.payload_timeout);
    raw.heartbeat_missing = static_cast<int32_t>(options.heartbeat_missing);
    raw.heartbeat_start = static_cast<int32_t>(options.heartbeat_start);
    raw.lenient_numbers = options.lenient_numbers;
    raw.period_min_ms = ms32(options.period_min);
    raw.period_max_ms = ms32(options.period_max);
    raw.period_updates = options.period_updates;
    raw.jitter_permille = options.jitter_permille;
    raw.retry_permille = options.retry_permille;
    raw.keep_alive_failures_max = options.keep_alive_failures_max;
    raw.keep_alive = static_cast<int32_t>(options.keep_alive);
    raw.resetup_on_extra_license = static_cast<int32_t>(options.resetup_on_extra_license);
    raw.wire_format = static_cast<int32_t>(options.wire_format);
    raw.teardown_retries = options.teardown_retries;
    raw.keep_alive_timeout_ms = ms32(options.keep_alive_timeout);
    usher_delegate *out = nullptr;
    int32_t s = usher_ssp_delegate_new(handle_, &raw, &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** usher_player_new(). In callbacks: yes. */
  outcome<player> new_player() const {
    usher_player *out = nullptr;
    int32_t s = usher_player_new(handle_, &out);
    return detail::done(s, player(out, kept_));
  }

  /* -- testing.h: virtual time. In callbacks: no. -- */

  /** usher_context_advance(). Fails with timeout if something was still under way at a stop. */
  outcome<void> advance(milliseconds by, milliseconds settle = milliseconds(0)) const {
    return detail::done(usher_context_advance(handle_, detail::ms64(by), detail::ms32(settle)));
  }
  /** usher_context_jump(). */
  outcome<void> jump(milliseconds by) const { return detail::done(usher_context_jump(handle_, detail::ms64(by))); }
  /** usher_context_settle(), at most `timeout` of real time. */
  outcome<void> settle(milliseconds timeout, uint32_t transfers = 0, uint32_t callbacks = 0) const {
    return detail::done(usher_context_settle(handle_, transfers, callbacks, detail::ms32(timeout)));
  }
  /** usher_context_pending(). */
  outcome<usher::pending> pending() const {
    usher_pending raw = USHER_PENDING_INIT;
    int32_t s = usher_context_pending(handle_, &raw);
    usher::pending it;
    it.transfers = raw.transfers, it.callbacks = raw.callbacks, it.queued = raw.queued;
    if (raw.next_timer_ms != UINT64_MAX) it.next_timer = detail::from_ms(raw.next_timer_ms);
    it.now = detail::from_ms(raw.now_ms);
    return detail::done(s, it);
  }

 private:
  context(usher_context *handle, detail::shared_faults kept) noexcept : owner(handle, std::move(kept)) {}
};

} // inline namespace
} // namespace usher

namespace std {
template <>
struct is_error_code_enum<usher::status> : true_type {};
} // namespace std

#endif /* USHER_USHER_HPP */
