/*
 * hpp/player.hpp - part of usher.hpp: one screen.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_PLAYER_HPP
#define USHER_HPP_PLAYER_HPP

#include "delegate.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

/** The fields of usher_playback_options. No value or zero means the default. */
struct playback_options {
  /** nullptr: the context's delegate. */
  const usher::delegate *delegate = nullptr;
  /** The content token of the item. No value: the token comes from the delegate's token callback or token map, or
      from playback_ref::set_content_token(). */
  std::optional<std::string> content_token;
  /** The identifier of the item's content; empty: none. The library reads these bytes only during the call that
      takes the options. */
  bytes_view content_id;
  uint64_t tag = 0;
  payload_callback payload;
  license_callback renewed;
  /** Whether the item is not encrypted. Such an item has no session and needs no token. */
  bool clear = false;
};

namespace detail {
struct item_calls {
  payload_callback payload;
  license_callback renewed;
};
inline void on_payload(
    usher_completion completion, usher_playback *playback, const char *key_system, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<item_calls> *>(user_data);
  it->kept->guard([&] { it->call.payload(payload_request(completion, playback, key_system, tag, it->kept)); });
}
inline void on_renewed(usher_playback *playback, const usher_response_info *info, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<item_calls> *>(user_data);
  tell_license(playback, info, tag, it->call.renewed, it->kept);
}
} // namespace detail

/** A copy of a usher_notice; you may keep it. */
struct notice {
  notice_type type;
  playback_ref playback;
  usher_player *player;
  uint64_t tag;
  error_detail error;
  /** For the viewer: what has happened, and what to do. */
  std::string summary, advice;

  notice(const usher_notice &n, const detail::shared_faults &kept)
      : type(static_cast<notice_type>(n.type)), playback(n.playback, kept), player(n.player), tag(n.tag),
        error(n.error), summary(n.summary), advice(n.advice) {}
};

/** Receives the notices of a player's current item; see usher_notice_fn. */
using notice_observer = std::function<void(const notice &)>;

namespace detail {
inline void on_notice(const usher_notice *n, void *user_data) {
  auto *it = static_cast<box<notice_observer> *>(user_data);
  shared_faults kept = it->kept;
  kept->guard([&] { it->call(notice(*n, kept)); });
}
} // namespace detail

/** Refers to a player but does not own it. Threads: any. */
class player_ref {
public:
  player_ref() noexcept = default;
  player_ref(usher_player *handle, detail::shared_faults kept) noexcept : handle_(handle), kept_(std::move(kept)) {}

  usher_player *handle() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend bool operator==(const player_ref &a, const player_ref &b) noexcept { return a.handle_ == b.handle_; }
  friend bool operator!=(const player_ref &a, const player_ref &b) noexcept { return a.handle_ != b.handle_; }

  /** Calls usher_player_play(). The library destroys the functions in `options` after the playback's last event, or if
      this call fails. */
  outcome<usher::playback> play(playback_options options) const {
    usher_playback *out = nullptr;
    int32_t s = with_raw(options, [&](usher_playback_options &raw) {
      if (options.payload) raw.payload = detail::on_payload;
      if (options.renewed) raw.renewed = detail::on_renewed;
      if (options.payload || options.renewed) {
        auto *it = detail::boxed(detail::item_calls{std::move(options.payload), std::move(options.renewed)}, kept_);
        raw.user_data = it;
        raw.destroy = it->destroy;
      }
      return usher_player_play(handle_, &raw, &out);
    });
    return detail::done(s, usher::playback(out, kept_));
  }
  /** Calls usher_player_prepare(), which ignores the functions in `options`. In callbacks: yes. */
  outcome<void> prepare(playback_options options, milliseconds keep = milliseconds{0}) const {
    return detail::done(with_raw(
        options, [&](usher_playback_options &raw) { return usher_player_prepare(handle_, &raw, detail::ms32(keep)); }));
  }
  /** Calls usher_player_add_observer(). @return the id for context::remove_observer(). In callbacks: yes. */
  outcome<uint64_t> add_observer(notice_observer fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    uint64_t id = 0;
    int32_t s = usher_player_add_observer(handle_, it->call ? detail::on_notice : nullptr, it, it->destroy, &id);
    return detail::done(s, id);
  }
  /** Calls usher_player_stop(). In callbacks: yes. */
  outcome<void> stop(close_mode mode = close_mode::standard) const {
    return detail::done(usher_player_stop(handle_, static_cast<int32_t>(mode)));
  }

protected:
  usher_player *handle_ = nullptr;
  detail::shared_faults kept_;

private:
  /** Calls `call` with the C structure of an item. The structure has no functions. Wipes the token in `options` and its
      copy for C. */
  template <class Call>
  static int32_t with_raw(playback_options &options, Call call) {
    detail::c_text token(options.content_token);
    if (options.content_token) detail::wipe(*options.content_token);
    if (!token.is_valid()) return USHER_E_INVALID_ARGUMENT;
    usher_playback_options raw = USHER_PLAYBACK_OPTIONS_INIT;
    raw.delegate = options.delegate ? options.delegate->handle() : nullptr;
    raw.content_token = token.c_str();
    raw.content_id = options.content_id.data();
    raw.content_id_size = options.content_id.size();
    raw.tag = options.tag;
    raw.clear = options.clear;
    return call(raw);
  }
};

/** One screen. The destructor frees the handle as usher_player_free() does: it stops the player, and waits only if the
    delegate of the newest item has `sync_setup_teardown`. */
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
  /** Returns the C handle; this object no longer owns it, so free it yourself. */
  usher_player *release() noexcept { return std::exchange(handle_, nullptr); }
  /** Frees the handle now instead of in the destructor. */
  void free() noexcept {
    if (usher_player *handle = release()) usher_player_free(handle);
  }
};

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_PLAYER_HPP */
