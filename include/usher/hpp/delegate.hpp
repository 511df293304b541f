/*
 * hpp/delegate.hpp - part of usher.hpp: a delegate, its headers, hooks and tokens.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_DELEGATE_HPP
#define USHER_HPP_DELEGATE_HPP

#include "customer.hpp"
#include "hooks.hpp"

#include <memory>
#include <string_view>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

namespace detail {
inline void on_token(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<token_callback> *>(user_data);
  it->kept->guard([&] { it->call(token_request(completion, playback, tag, it->kept)); });
}
} // namespace detail

/** The content tokens of a multi-instance delegate, by content identifier. This object refers to the delegate object
    and does not own it: use it only while the delegate object exists. Threads: any. In callbacks: yes. */
class token_map {
public:
  token_map(usher_delegate *handle, detail::shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}

  /** Calls usher_delegate_set_stream_token(). */
  outcome<void> set(bytes_view content_id, std::string_view token) const {
    detail::c_text text(token);
    return detail::done(
        text.is_valid() ? usher_delegate_set_stream_token(handle_, content_id.data(), content_id.size(), text.c_str())
                        : USHER_E_INVALID_ARGUMENT);
  }
  /** Calls usher_delegate_get_stream_token(). Fails with USHER_E_NO_TOKEN if the map has no token for this content. */
  outcome<response> get(bytes_view content_id) const {
    usher_response *out = nullptr;
    int32_t s = usher_delegate_get_stream_token(handle_, content_id.data(), content_id.size(), &out);
    return detail::answered(s, out, kept_);
  }
  /** Whether the map has a token for this content. */
  outcome<bool> contains(bytes_view content_id) const {
    return found(usher_delegate_get_stream_token(handle_, content_id.data(), content_id.size(), nullptr));
  }
  /** Calls usher_delegate_remove_stream_token(). @return whether the map had a token for this content. */
  outcome<bool> remove(bytes_view content_id) const {
    return found(usher_delegate_remove_stream_token(handle_, content_id.data(), content_id.size()));
  }
  /** Calls usher_delegate_clear_stream_tokens(). */
  outcome<void> clear() const { return detail::done(usher_delegate_clear_stream_tokens(handle_)); }
  /** Calls usher_delegate_count_stream_tokens(). */
  outcome<size_t> size() const {
    size_t count = 0;
    int32_t s = usher_delegate_count_stream_tokens(handle_, &count);
    return detail::done(s, count);
  }

private:
  static outcome<bool> found(int32_t s) {
    return s == USHER_E_NO_TOKEN ? detail::done(USHER_OK, false) : detail::done(s, true);
  }
  usher_delegate *handle_;
  detail::shared_faults kept_;
};

/** Decides how the library asks for licences. The C object exists as long as playbacks or the context use it. */
class delegate : public detail::owner<usher_delegate, usher_delegate_free> {
public:
  using owner::owner;
  /** Calls usher_delegate_set_token_callback(). An empty function clears the callback. In callbacks: yes. */
  outcome<void> set_token_callback(token_callback fn) const {
    if (!fn) return detail::done(usher_delegate_set_token_callback(handle_, nullptr, nullptr, nullptr));
    auto *it = detail::boxed(std::move(fn), kept_);
    return detail::done(usher_delegate_set_token_callback(handle_, detail::on_token, it, it->destroy));
  }
  /** Calls usher_delegate_set_http_header(). In callbacks: yes. */
  outcome<void> set_http_header(std::string_view name, std::string_view value) const {
    detail::c_text header(name), text(value);
    return detail::done(detail::are_valid(header, text)
                            ? usher_delegate_set_http_header(handle_, header.c_str(), text.c_str())
                            : USHER_E_INVALID_ARGUMENT);
  }
  /** Removes a header: calls usher_delegate_set_http_header() with the value NULL. In callbacks: yes. */
  outcome<void> clear_http_header(std::string_view name) const {
    detail::c_text header(name);
    return detail::done(header.is_valid() ? usher_delegate_set_http_header(handle_, header.c_str(), nullptr)
                                          : USHER_E_INVALID_ARGUMENT);
  }
  /** Calls usher_delegate_connect_ahead(). In callbacks: yes. */
  outcome<void> connect_ahead(milliseconds keep = milliseconds{0}) const {
    return detail::done(usher_delegate_connect_ahead(handle_, detail::ms32(keep)));
  }
  /** Calls usher_delegate_set_hooks(). In callbacks: yes. */
  outcome<void> set_hooks(delegate_hooks hooks) const {
    detail::raw_hooks raw(hooks);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT);
    auto *it = detail::boxed(std::move(hooks), kept_);
    return detail::done(usher_delegate_set_hooks(handle_, raw.get(), it, it->destroy));
  }
  /** Sets the hooks of a common_delegate object. The library releases the object after the last call of its hooks. */
  outcome<void> set_hooks(const std::shared_ptr<common_delegate> &host) const {
    return host ? set_hooks(detail::hooks_of(host)) : detail::done(USHER_E_INVALID_ARGUMENT);
  }
  /** Removes the hooks. In callbacks: yes. */
  outcome<void> clear_hooks() const {
    return detail::done(usher_delegate_set_hooks(handle_, nullptr, nullptr, nullptr));
  }
  /** Calls usher_delegate_set_customer_callbacks(). In callbacks: yes. */
  outcome<void> set_callbacks(customer_callbacks callbacks) const {
    usher_customer_callbacks raw = USHER_CUSTOMER_CALLBACKS_INIT;
    detail::set_functions(raw, callbacks);
    auto *it = detail::boxed(std::move(callbacks), kept_);
    return detail::done(usher_delegate_set_customer_callbacks(handle_, &raw, it, it->destroy));
  }
  /** Removes the callbacks of a customer SSM delegate. In callbacks: yes. */
  outcome<void> clear_callbacks() const {
    return detail::done(usher_delegate_set_customer_callbacks(handle_, nullptr, nullptr, nullptr));
  }
  /** The token map of a multi-instance delegate. For any other delegate its functions fail with USHER_E_STATE. */
  token_map tokens() const noexcept { return {handle_, kept_}; }
};

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_DELEGATE_HPP */
