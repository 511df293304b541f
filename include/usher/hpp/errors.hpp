/*
 * hpp/errors.hpp - part of usher.hpp: the errors that functions throw or return.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_ERRORS_HPP
#define USHER_HPP_ERRORS_HPP

#include "words.hpp"

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#if !defined(__cpp_exceptions) && !defined(USHER_NO_EXCEPTIONS)
#define USHER_NO_EXCEPTIONS 1
#endif

namespace usher {

namespace words {
/** The status and the text of the last call that the library refused on this thread. message_of() clears them. */
struct refusal {
  int32_t status = USHER_OK;
  std::string text;
  static refusal &last() {
    static thread_local refusal it;
    return it;
  }
};
inline void on_refusal(int32_t status, const char *text, void *) { refusal::last() = {status, text}; }
/** Returns the message for a status: the text of the last refusal on this thread if it has the same status, otherwise
    the general text of the status. Clears that refusal. */
inline std::string message_of(usher::status s) {
  refusal taken;
  std::swap(taken, refusal::last());
  const auto number = static_cast<int32_t>(s);
  return taken.status == number && number != USHER_OK ? taken.text : usher_status_message(number);
}
} // namespace words

/** A usher_error that owns its message. If the C function returned only a status, this object has only `status` and
    `message`. */
struct error_detail {
  usher::status status = usher::status::ok;
  usher::origin origin = usher::origin::local;
  usher::operation operation = usher::operation::none;
  /** The status of the HTTP reply; -1 if the request got no HTTP reply. */
  int32_t http_status = -1;
  int64_t service_code = 0;
  std::string message;
  bool must_stop = false;
  bool orphan_possible = false;
  /** Whether an earlier event of the playback has reported this error. If so, do not show the error on the screen a
      second time. */
  bool already_reported = false;
  /** How long the server asks you to wait before you try again; 0: the server did not say. */
  std::chrono::milliseconds retry_after{0};
  usher::tls_fault tls_fault = usher::tls_fault::none;

  error_detail() = default;
  explicit error_detail(usher::status s) : status(s), message(words::message_of(s)) {}
  explicit error_detail(const usher_error &e)
      : status(static_cast<usher::status>(e.status)), origin(static_cast<usher::origin>(e.origin)),
        operation(static_cast<usher::operation>(e.operation)), http_status(e.http_status), service_code(e.service_code),
        message(e.message ? e.message : ""), must_stop(e.must_stop != 0), orphan_possible(e.orphan_possible != 0),
        already_reported(e.already_reported != 0), retry_after(e.retry_after_ms),
        tls_fault(static_cast<usher::tls_fault>(e.tls_fault)) {}

  /** true: there is an error. */
  explicit operator bool() const noexcept { return status != usher::status::ok; }
};

namespace words {
/** The C form of an error, without its message. */
inline usher_error raw_error(const error_detail &e) noexcept {
  return {static_cast<int32_t>(e.status), static_cast<int32_t>(e.origin), static_cast<int32_t>(e.operation),
      e.http_status, e.service_code, "", e.must_stop, e.orphan_possible, e.already_reported,
      static_cast<uint32_t>(e.retry_after.count()), static_cast<int32_t>(e.tls_fault)};
}
} // namespace words

/** Calls usher_error_explain(). @return words for viewers and support desks; the strings are static. */
inline usher_explanation explain(const error_detail &e) noexcept {
  usher_explanation words = {"", "", 0, ""};
  const usher_error raw = words::raw_error(e);
  usher_error_explain(&raw, &words);
  return words;
}

/** Calls usher_error_legacy_codes(). @return the numbers that the React Native player, the Android player and the Apple
    SDK use for this error. */
inline usher_legacy_codes legacy_codes(const error_detail &e) noexcept {
  usher_legacy_codes codes = {0, 0, 0, 0, 0};
  const usher_error raw = words::raw_error(e);
  usher_error_legacy_codes(&raw, &codes);
  return codes;
}

namespace words {
class status_category final : public std::error_category {
public:
  const char *name() const noexcept override { return "usher"; }
  std::string message(int value) const override { return usher_status_message(value); }
};
} // namespace words

/** The std::error_category of a std::error_code that holds a status. */
inline const std::error_category &category() noexcept {
  static const words::status_category it;
  return it;
}
inline std::error_code make_error_code(status s) noexcept { return {static_cast<int>(s), category()}; }

#if defined(__cpp_exceptions)
/** The exception that functions throw when they fail. code() is the status, what() its message. */
class error : public std::system_error {
public:
  explicit error(error_detail d)
      : std::system_error(make_error_code(d.status), d.message),
        detail_(std::make_shared<const error_detail>(std::move(d))) {}
  const error_detail &detail() const noexcept { return *detail_; }
  usher::status status() const noexcept { return detail_->status; }
  const char *what() const noexcept override { return detail_->message.c_str(); }

private:
  std::shared_ptr<const error_detail> detail_; // shared, so that copying cannot throw
};
#endif

/** A value, or the error that explains why there is no value. If there is an error, value() throws usher::error;
    without exceptions it ends the process. So call ok() first. */
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

/* The form with exceptions and the form without have different namespaces, so that files compiled with and without
   USHER_NO_EXCEPTIONS can be linked together. */
#if defined(USHER_NO_EXCEPTIONS)
#define USHER_HPP_FORM without_exceptions
#else
#define USHER_HPP_FORM with_exceptions
#endif
inline namespace USHER_HPP_FORM {

#if defined(USHER_NO_EXCEPTIONS)
template <class T>
using outcome = result<T>;
#else
template <class T>
using outcome = T;
#endif

/** Calls f and returns a result<T>, with or without exceptions:
    `auto r = usher::attempt([&] { return playback.get_license(request); });` */
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
  } catch (const usher::error &e) { return result<T>(e.detail()); }
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
inline outcome<void> done(int32_t s) {
  return give(s == USHER_OK ? result<void>() : result<void>(error_detail(static_cast<status>(s))));
}
template <class T>
outcome<T> done(int32_t s, T value) {
  return give(s == USHER_OK ? result<T>(std::move(value)) : result<T>(error_detail(static_cast<status>(s))));
}
} // namespace detail

} // inline namespace
} // namespace usher

namespace std {
template <>
struct is_error_code_enum<usher::status> : true_type {};
} // namespace std

#endif /* USHER_HPP_ERRORS_HPP */
