/*
 * hpp/support.hpp - part of usher.hpp: owners of handles, texts and callbacks, which the other parts use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_SUPPORT_HPP
#define USHER_HPP_SUPPORT_HPP

#include "errors.hpp"

#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace usher {
inline namespace USHER_HPP_FORM {

namespace detail {

inline uint32_t ms32(milliseconds t) noexcept {
  return t.count() < 0 ? 1 : t.count() > USHER_OFF ? USHER_OFF - 1 : static_cast<uint32_t>(t.count());
}
inline uint64_t ms64(milliseconds t) noexcept { return t.count() < 0 ? 0 : static_cast<uint64_t>(t.count()); }
inline milliseconds from_ms(uint64_t ms) noexcept {
  return milliseconds(ms > INT64_MAX ? INT64_MAX : static_cast<int64_t>(ms));
}

template <class Bytes>
void wipe(Bytes &bytes) noexcept {
  for (volatile auto *at = std::data(bytes), *end = at + std::size(bytes); at != end; ++at) *at = 0;
}

/** A copy of bytes. The destructor wipes it. */
class secret {
public:
  secret(const uint8_t *data, size_t size) : bytes_(data, data + size) {}
  secret(secret &&other) noexcept = default; // a moved-from vector is empty
  secret &operator=(secret &&other) noexcept {
    wipe(bytes_), bytes_ = std::move(other.bytes_);
    return *this;
  }
  ~secret() { wipe(bytes_); }
  bytes_view view() const noexcept { return bytes_; }

private:
  std::vector<uint8_t> bytes_;
};

/** Text for C, with a NUL at its end. The destructor wipes it. If the text has another NUL, C would read only a part of
    the text, so the caller must refuse such a text: see is_valid(). */
class c_text {
public:
  explicit c_text(std::string_view text) : text_(text) {}
  explicit c_text(const std::string &text) : text_(text) {}
  explicit c_text(const std::optional<std::string> &text)
      : text_(text ? std::string_view(*text) : std::string_view()), none_(!text) {}
  c_text(const c_text &) = delete;
  c_text &operator=(const c_text &) = delete;
  ~c_text() { wipe(text_); }
  const char *c_str() const noexcept { return none_ ? nullptr : text_.c_str(); }
  bool is_valid() const noexcept { return text_.find('\0') == text_.npos; }

private:
  std::string text_;
  bool none_ = false;
};
template <class... Texts>
bool are_valid(const Texts &...texts) noexcept {
  return (texts.is_valid() && ...);
}

#if defined(__cpp_exceptions)
/** A callback that runs on this thread. If an exception leaves the callback and thereby destroys a question, this
    object refuses the question later, after it has stored the exception. So a host that sees the refusal can find the
    exception with context::take_exception(). */
struct running {
  running() noexcept : outer(std::exchange(now(), this)) {}
  running(const running &) = delete;
  running &operator=(const running &) = delete;
  ~running() {
    now() = outer;
    if (none) none(id);
  }
  static running *&now() noexcept {
    static thread_local running *innermost = nullptr;
    return innermost;
  }
  running *outer;
  int thrown = std::uncaught_exceptions();
  void (*none)(usher_completion) = nullptr;
  usher_completion id = 0;
};
#endif
/** Refuses a question. If an exception is leaving a callback at this moment, the callback's `running` object refuses
    the question later. */
inline void refuse_now_or_later(void (*none)(usher_completion), usher_completion id) noexcept {
#if defined(__cpp_exceptions)
  running *callback = running::now();
  if (callback && !callback->none && std::uncaught_exceptions() > callback->thrown) {
    callback->none = none, callback->id = id;
    return;
  }
#endif
  none(id);
}

/** Keeps the first exception that left a callback of a context. Threads: any. */
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
    running callback;
    try {
      f();
    } catch (...) { keep(std::current_exception()); }
#else
    f();
#endif
  }

private:
  std::mutex lock_;
  std::exception_ptr first_;
};
using shared_faults = std::shared_ptr<faults>;

/** The `user_data` of a C++ callback: the wrapper passes it to C, and `destroy` deletes it. */
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

  /** The C handle; this object still owns it. */
  Handle *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  /** Returns the C handle; this object no longer owns it, so free it yourself. */
  Handle *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees the handle now instead of in the destructor. */
  void free() noexcept {
    if (Handle *handle = std::exchange(handle_, nullptr)) Free(handle);
  }

protected:
  Handle *handle_ = nullptr;
  shared_faults kept_;
};

} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_SUPPORT_HPP */
