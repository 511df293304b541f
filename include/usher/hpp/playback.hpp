/*
 * hpp/playback.hpp - part of usher.hpp: one item that plays on a player.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_PLAYBACK_HPP
#define USHER_HPP_PLAYBACK_HPP

#include "license.hpp"

#include <string_view>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

namespace detail {
inline void on_license(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data);
} // namespace detail

/** Refers to a playback but does not own it, e.g. in callbacks. Copies are cheap. Threads: any. */
class playback_ref {
public:
  playback_ref() noexcept = default;
  playback_ref(usher_playback *handle, detail::shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}

  usher_playback *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const playback_ref &a, const playback_ref &b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const playback_ref &a, const playback_ref &b) noexcept { return a.handle_ != b.handle_; }

  /** Calls usher_playback_close(). In callbacks: yes. */
  outcome<void> close(close_mode mode = close_mode::standard) const {
    return detail::done(usher_playback_close(handle_, static_cast<int32_t>(mode)));
  }
  /** Calls usher_playback_wait_session(). Fails with the full error if the playback gets no session. In callbacks:
      no. */
  outcome<void> wait_session(milliseconds timeout = milliseconds(0)) const {
    usher_response *out = nullptr;
    int32_t s = usher_playback_wait_session(handle_, detail::ms32(timeout), &out);
    return detail::done(s, out, kept_);
  }
  /** Calls usher_playback_wait_closed(). In callbacks: no. */
  outcome<void> wait_closed(milliseconds timeout = off) const {
    return detail::done(usher_playback_wait_closed(handle_, detail::ms32(timeout)));
  }
  /** Calls usher_playback_session_state(). In callbacks: yes. */
  outcome<session_state> state() const {
    int32_t state = USHER_SESSION_NONE;
    int32_t s = usher_playback_session_state(handle_, &state);
    return detail::done(s, static_cast<session_state>(state));
  }
  /** Calls usher_playback_set_content_token(). In callbacks: yes. */
  outcome<void> set_content_token(std::string_view token) const {
    detail::c_text text(token);
    return detail::done(
        text.is_valid() ? usher_playback_set_content_token(handle_, text.c_str()) : USHER_E_INVALID_ARGUMENT);
  }
  /** Calls usher_playback_suspend(). In callbacks: yes. */
  outcome<void> suspend() const { return detail::done(usher_playback_suspend(handle_)); }
  /** Calls usher_playback_resume(). In callbacks: yes. */
  outcome<void> resume() const { return detail::done(usher_playback_resume(handle_)); }

  /** Calls usher_playback_request_license(). `fn` runs exactly once, unless this call fails. In callbacks: yes. */
  outcome<void> request_license(const license_request &request, license_callback fn) const {
    detail::c_text key_system(request.key_system);
    if (!key_system.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT);
    usher_license_request raw = raw_request(request, key_system);
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(
        usher_playback_request_license(handle_, &raw, it->call ? detail::on_license : nullptr, it, it->destroy));
  }
  /** Calls usher_playback_get_license(). Fails with the full error of the answer. In callbacks: no. */
  outcome<response> get_license(const license_request &request) const {
    detail::c_text key_system(request.key_system);
    if (!key_system.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, response());
    usher_license_request raw = raw_request(request, key_system);
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_license(handle_, &raw, &out);
    return detail::answered(s, out, kept_);
  }
  /** Calls usher_playback_request_certificate(). In callbacks: yes. */
  outcome<void> request_certificate(license_callback fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(
        usher_playback_request_certificate(handle_, it->call ? detail::on_license : nullptr, it, it->destroy));
  }
  /** Calls usher_playback_get_certificate(). In callbacks: no. */
  outcome<response> get_certificate(milliseconds timeout = milliseconds(0)) const {
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_certificate(handle_, detail::ms32(timeout), &out);
    return detail::answered(s, out, kept_);
  }
  /** Calls usher_playback_request_content_id(). In callbacks: yes. */
  outcome<void> request_content_id(bytes_view url, license_callback fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(usher_playback_request_content_id(
        handle_, url.data(), url.size(), it->call ? detail::on_license : nullptr, it, it->destroy));
  }
  /** Calls usher_playback_get_content_id(). In callbacks: no. */
  outcome<response> get_content_id(bytes_view url, milliseconds timeout = milliseconds(0)) const {
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_content_id(handle_, url.data(), url.size(), detail::ms32(timeout), &out);
    return detail::answered(s, out, kept_);
  }
  /** Calls usher_playback_load_resource(). Fails with USHER_E_DECLINED if no loader is registered for the URL's scheme.
      @return the id for cancel_load(). In callbacks: yes. */
  outcome<uint64_t> load_resource(bytes_view url, license_callback fn, milliseconds timeout = milliseconds(0)) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    uint64_t id = 0;
    int32_t s = usher_playback_load_resource(handle_, url.data(), url.size(), detail::ms32(timeout),
        it->call ? detail::on_license : nullptr, it, it->destroy, &id);
    return detail::done(s, id);
  }
  /** Calls usher_playback_get_resource(). In callbacks: no. */
  outcome<response> get_resource(bytes_view url, milliseconds timeout = milliseconds(0)) const {
    usher_response *out = nullptr;
    int32_t s = usher_playback_get_resource(handle_, url.data(), url.size(), detail::ms32(timeout), &out);
    return detail::answered(s, out, kept_);
  }
  /** Calls usher_playback_cancel_load(). Fails with USHER_E_STATE if the id is unknown, or the request has ended
      already. In callbacks: yes. */
  outcome<void> cancel_load(uint64_t id) const { return detail::done(usher_playback_cancel_load(handle_, id)); }

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
    raw.asset_id = request.asset_id.data();
    raw.asset_id_size = request.asset_id.size();
    return raw;
  }
};

/** One item that plays on a player. The destructor frees the handle as usher_playback_free() does: it closes the
    playback if it is still open, and waits only if the delegate has the option `sync_setup_teardown`. */
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
  /** Returns the C handle; this object no longer owns it, so free it yourself. */
  usher_playback *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees the handle now instead of in the destructor. */
  void free() noexcept {
    if (usher_playback *handle = release()) usher_playback_free(handle);
  }
};

namespace detail {
inline void tell_license(usher_playback *playback, const usher_response_info *info, uint64_t tag,
    const license_callback &call, const shared_faults &kept) noexcept {
  kept->guard([&] { call(playback_ref(playback, kept), response_info(*info), tag); });
}
inline void on_license(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<license_callback> *>(user_data);
  tell_license(playback, info, tag, it->call, it->kept);
}
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_PLAYBACK_HPP */
