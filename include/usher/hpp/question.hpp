/*
 * hpp/question.hpp - part of usher.hpp: what the library asks of a host, answered now or later: tokens and payloads.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_QUESTION_HPP
#define USHER_HPP_QUESTION_HPP

#include "playback.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

/** One question of the library, to be answered once, from any thread, before its deadline. Destroyed unanswered it answers "none". */
class question {
public:
  question(question &&other) noexcept
      : id_(std::exchange(other.id_, 0)), playback_(other.playback_), tag_(other.tag_), kept_(std::move(other.kept_)) {}
  question(const question &) = delete;
  question &operator=(const question &) = delete;

  /** Still to be answered by this object. */
  explicit operator bool() const noexcept { return id_ != 0; }
  uint64_t tag() const noexcept { return tag_; }
  playback_ref playback() const noexcept { return {playback_, kept_}; }
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
  const detail::shared_faults &kept() const noexcept { return kept_; }
  usher_completion id_;

private:
  usher_playback *playback_;
  uint64_t tag_;
  detail::shared_faults kept_;
};

namespace detail {
/** A question to which `None` says "none". */
template <void (*None)(usher_completion)>
class asked : public question {
public:
  asked(asked &&) noexcept = default;
  asked &operator=(asked &&other) noexcept {
    if (this != &other) refuse(), question::operator=(std::move(other));
    return *this;
  }
  ~asked() {
    if (usher_completion id = release()) let_go(None, id);
  }
  /** There is none: what needs the answer fails. */
  void refuse() noexcept {
    if (usher_completion id = release()) None(id);
  }

protected:
  asked(usher_completion id, usher_playback *playback, uint64_t tag, shared_faults kept) noexcept
      : question(id, playback, tag, std::move(kept)) {}
};
inline void no_token(usher_completion id) { usher_complete_token(id, nullptr); }
inline void no_payload(usher_completion id) { usher_complete_payload(id, nullptr, 0); }

/** NULL would mean "none"; no bytes are a mistake. */
inline const uint8_t *some(bytes_view bytes) noexcept {
  static const uint8_t nothing = 0;
  return bytes.data() ? bytes.data() : &nothing;
}
} // namespace detail

/** A content token is wanted: usher_token_fn. Refused: what needs it fails with no_token. */
class token_request : public detail::asked<detail::no_token> {
public:
  token_request(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept
      : asked(id, playback, tag, std::move(kept)) {}

  /** The token. @return true: taken; false: too late, or answered before. INVALID_ARGUMENT: no header value; the question stays open. */
  outcome<bool> answer(std::string_view token) {
    detail::c_text text(token);
    return told(text.whole() ? usher_complete_token(id_, text.c_str()) : USHER_E_INVALID_ARGUMENT);
  }
};

/** A fresh licence payload is wanted: usher_payload_fn. Refused: the renewal fails with callback. */
class payload_request : public detail::asked<detail::no_payload> {
public:
  payload_request(
      usher_completion id, usher_playback *playback, const char *key_system, uint64_t tag, detail::shared_faults kept)
      : asked(id, playback, tag, std::move(kept)), key_system_(key_system ? key_system : "") {}

  const std::string &key_system() const noexcept { return key_system_; }
  /** The CDM's challenge, 1 byte to 1 MiB. @return as token_request::answer(). */
  outcome<bool> answer(bytes_view payload) {
    return told(usher_complete_payload(id_, detail::some(payload), payload.size()));
  }

private:
  std::string key_system_;
};

/** Asked for a token; see token_request. */
using token_callback = std::function<void(token_request request)>;
/** Asked for a payload; see payload_request. */
using payload_callback = std::function<void(payload_request request)>;

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_QUESTION_HPP */
