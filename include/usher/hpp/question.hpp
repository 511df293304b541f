/*
 * hpp/question.hpp - part of usher.hpp: questions of the library, which a host answers at once or later.
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

/** One question of the library. Answer it once, from any thread, before its deadline. If you destroy the object without
    an answer, the object refuses the question. */
class question {
public:
  question(question &&other) noexcept
      : id_(std::exchange(other.id_, 0)), playback_(other.playback_), tag_(other.tag_), kept_(std::move(other.kept_)) {}
  question(const question &) = delete;
  question &operator=(const question &) = delete;

  /** Whether this object can still answer the question. */
  explicit operator bool() const noexcept { return id_ != 0; }
  uint64_t tag() const noexcept { return tag_; }
  playback_ref playback() const noexcept { return {playback_, kept_}; }
  /** Returns the C completion id; this object can no longer answer, so answer with usher_complete_...(). */
  usher_completion release() noexcept { return std::exchange(id_, 0); }

protected:
  question(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept
      : id_(id), playback_(playback), tag_(tag), kept_(std::move(kept)) {}
  ~question() = default;
  question &operator=(question &&other) noexcept {
    id_ = std::exchange(other.id_, 0), playback_ = other.playback_, tag_ = other.tag_, kept_ = std::move(other.kept_);
    return *this;
  }
  /** Converts the status of a usher_complete_...() function to the result of answer(): true if the library accepts the
      answer; false if the answer comes too late, or if the question already has an answer. After
      USHER_E_INVALID_ARGUMENT the question stays open. */
  outcome<bool> accepted(int32_t s) {
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
/** A question that the host can refuse. `None` is the C function for a refusal: it tells the library that the host
    has no answer. */
template <void (*None)(usher_completion)>
class refusable_question : public question {
public:
  refusable_question(refusable_question &&) noexcept = default;
  refusable_question &operator=(refusable_question &&other) noexcept {
    if (this != &other) refuse(), question::operator=(std::move(other));
    return *this;
  }
  ~refusable_question() {
    if (usher_completion id = release()) refuse_now_or_later(None, id);
  }
  /** Tells the library that the host has no answer: the operation that needs the answer fails. */
  void refuse() noexcept {
    if (usher_completion id = release()) None(id);
  }

protected:
  refusable_question(usher_completion id, usher_playback *playback, uint64_t tag, shared_faults kept) noexcept
      : question(id, playback, tag, std::move(kept)) {}
};
inline void no_token(usher_completion id) { usher_complete_token(id, nullptr); }
inline void no_payload(usher_completion id) { usher_complete_payload(id, nullptr, 0); }

/** Returns a pointer that is never NULL, also for zero bytes. In C, the answer NULL refuses the question. But an answer
    of zero bytes is a mistake of the host and no refusal, so the call must fail. */
inline const uint8_t *not_null(bytes_view bytes) noexcept {
  static const uint8_t nothing = 0;
  return bytes.data() ? bytes.data() : &nothing;
}
} // namespace detail

/** A question for a content token, as usher_token_fn gets it. If you refuse the question, the request that needs the
    token fails with USHER_E_NO_TOKEN. */
class token_request : public detail::refusable_question<detail::no_token> {
public:
  token_request(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept
      : refusable_question(id, playback, tag, std::move(kept)) {}

  /** Answers with the token. @return true if the library accepts the answer; false if the answer comes too late, or if
      the question already has an answer. After INVALID_ARGUMENT (not a header value) the question stays open. */
  outcome<bool> answer(std::string_view token) {
    detail::c_text text(token);
    return accepted(text.is_valid() ? usher_complete_token(id_, text.c_str()) : USHER_E_INVALID_ARGUMENT);
  }
};

/** A question for a fresh licence payload, as usher_payload_fn gets it. If you refuse the question, the renewal fails
    with USHER_E_CALLBACK. */
class payload_request : public detail::refusable_question<detail::no_payload> {
public:
  payload_request(
      usher_completion id, usher_playback *playback, const char *key_system, uint64_t tag, detail::shared_faults kept)
      : refusable_question(id, playback, tag, std::move(kept)), key_system_(key_system ? key_system : "") {}

  const std::string &key_system() const noexcept { return key_system_; }
  /** Answers with the CDM's challenge, 1 byte to 1 MiB. @return as token_request::answer(). */
  outcome<bool> answer(bytes_view payload) {
    return accepted(usher_complete_payload(id_, detail::not_null(payload), payload.size()));
  }

private:
  std::string key_system_;
};

/** Supplies a token; see token_request. */
using token_callback = std::function<void(token_request request)>;
/** Supplies a payload; see payload_request. */
using payload_callback = std::function<void(payload_request request)>;

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_QUESTION_HPP */
