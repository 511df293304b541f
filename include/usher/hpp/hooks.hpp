/*
 * hpp/hooks.hpp - part of usher.hpp: the host's steps of a licence request, as functions or as a class to derive from.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_HOOKS_HPP
#define USHER_HPP_HOOKS_HPP

#include "question.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

namespace detail {
/** The question to any hook, as usher_hook_fn gets it. The object has a copy of the bytes, and the destructor wipes
    this copy.
    */
template <void (*None)(usher_completion)>
class hook_question : public refusable_question<None> {
public:
  hook_question(const usher_hook_call &call, shared_faults kept)
      : refusable_question<None>(call.completion, call.playback, call.tag, std::move(kept)),
        which_(static_cast<hook>(call.hook)), type_(static_cast<license_type>(call.type)),
        http_status_(call.http_status), key_system_(call.key_system ? call.key_system : ""),
        asset_id_(call.asset_id, call.asset_id_size), data_(call.data, call.data_size) {}

  hook which() const noexcept { return which_; }
  license_type type() const noexcept { return type_; }
  /** The key system of the licence request; empty in a question for the content identifier or the certificate. */
  const std::string &key_system() const noexcept { return key_system_; }
  /** Asset ID of the licence request; for the content identifier hook the URL. */
  bytes_view asset_id() const noexcept { return asset_id_.view(); }
  /** The CDM's payload; for the licence hook the body of the server's reply. */
  bytes_view data() const noexcept { return data_.view(); }
  /** HTTP status of the reply for the licence hook, else 0. */
  int32_t http_status() const noexcept { return http_status_; }

  /** Calls usher_hook_builtin(). @return the result of the built-in behaviour; the question stays open. For a
      certificate the function may wait. In callbacks: yes. */
  outcome<response> builtin() const {
    usher_response *out = nullptr;
    int32_t s = usher_hook_builtin(this->id_, &out);
    return answered(s, out, this->kept());
  }
  /** Calls usher_complete_builtin(). @return true if the library accepts the answer; false if the answer comes too
      late, or if the question already has an answer. */
  outcome<bool> use_builtin() { return this->accepted(usher_complete_builtin(this->id_)); }

private:
  hook which_;
  license_type type_;
  int32_t http_status_;
  std::string key_system_;
  secret asset_id_, data_;
};
inline void no_bytes(usher_completion id) { usher_complete_hook(id, nullptr, 0); }
inline void no_headers(usher_completion id) { usher_complete_headers(id, nullptr); }
} // namespace detail

/** A question whose answer is bytes or the licence URL. If you refuse the question, the request fails with
    USHER_E_CALLBACK. */
class hook_request : public detail::hook_question<detail::no_bytes> {
public:
  using hook_question::hook_question;
  /** Answers with bytes (1 byte to 1 MiB), or with the text of a URL. @return as token_request::answer(). Fails with
      USHER_E_INVALID_ARGUMENT also for a licence URL that is not a URL. */
  outcome<bool> answer(bytes_view bytes) {
    return accepted(usher_complete_hook(id_, detail::not_null(bytes), bytes.size()));
  }
};

/** A question for the headers of a licence request. If you refuse the question, the library does not send the request,
    which fails with USHER_E_DECLINED. */
class headers_request : public detail::hook_question<detail::no_headers> {
public:
  using hook_question::hook_question;
  /** Answers with "Name: value" lines separated by '\n', or with no lines. @return as token_request::answer(). */
  outcome<bool> answer(std::string_view lines) {
    detail::c_text text(lines);
    return accepted(text.is_valid() ? usher_complete_headers(id_, text.c_str()) : USHER_E_INVALID_ARGUMENT);
  }
};

/** A hook that answers with bytes or a URL; see hook_request. */
using hook_callback = std::function<void(hook_request request)>;
/** A hook that answers with headers; see headers_request. */
using headers_callback = std::function<void(headers_request request)>;

/** The hooks of usher_delegate_hooks. An empty function means the built-in behaviour. */
struct delegate_hooks {
  /** No value: "skd". */
  std::optional<std::string> scheme;
  hook_callback content_id, certificate;
  headers_callback http_headers;
  hook_callback license_url, license_body, license;
};

/** The hooks as a class to derive from: override those that you need. Each runs on a callback thread and answers at
    once or later. The functions of this base class answer with the built-in behaviour, so an override may pass its
    question to them. The library releases the object after the last call of its hooks. */
class common_delegate {
public:
  common_delegate() = default;
  common_delegate(const common_delegate &) = delete;
  common_delegate &operator=(const common_delegate &) = delete;
  virtual ~common_delegate() = default;

  /** Returns the scheme of the delegate's URLs. The library calls this function once, when you set the hooks. */
  virtual std::string scheme() const { return "skd"; }
  virtual void content_id(hook_request request) { static_cast<void>(request.use_builtin()); }
  virtual void certificate(hook_request request) { static_cast<void>(request.use_builtin()); }
  virtual void http_headers(headers_request request) { static_cast<void>(request.use_builtin()); }
  virtual void license_url(hook_request request) { static_cast<void>(request.use_builtin()); }
  virtual void license_body(hook_request request) { static_cast<void>(request.use_builtin()); }
  virtual void license(hook_request request) { static_cast<void>(request.use_builtin()); }
};

namespace detail {
inline void on_hook(const usher_hook_call *call, void *user_data) {
  auto *it = static_cast<box<delegate_hooks> *>(user_data);
  it->kept->guard([&] {
    switch (static_cast<hook>(call->hook)) {
    case hook::content_id: return it->call.content_id(hook_request(*call, it->kept));
    case hook::certificate: return it->call.certificate(hook_request(*call, it->kept));
    case hook::http_headers: return it->call.http_headers(headers_request(*call, it->kept));
    case hook::license_url: return it->call.license_url(hook_request(*call, it->kept));
    case hook::license_body: return it->call.license_body(hook_request(*call, it->kept));
    case hook::license: return it->call.license(hook_request(*call, it->kept));
    }
  });
}

/** A usher_delegate_hooks struct, and the text to which it points. */
class raw_hooks {
public:
  explicit raw_hooks(const delegate_hooks &hooks) : scheme_(hooks.scheme) {
    raw_.scheme = scheme_.c_str();
    if (hooks.content_id) raw_.content_id = on_hook;
    if (hooks.certificate) raw_.certificate = on_hook;
    if (hooks.http_headers) raw_.http_headers = on_hook;
    if (hooks.license_url) raw_.license_url = on_hook;
    if (hooks.license_body) raw_.license_body = on_hook;
    if (hooks.license) raw_.license = on_hook;
  }
  bool is_valid() const noexcept { return scheme_.is_valid(); }
  const usher_delegate_hooks *get() const noexcept { return &raw_; }

private:
  c_text scheme_;
  usher_delegate_hooks raw_ = USHER_DELEGATE_HOOKS_INIT;
};

inline delegate_hooks hooks_of(const std::shared_ptr<common_delegate> &host) {
  delegate_hooks hooks;
  hooks.scheme = host->scheme();
  hooks.content_id = [host](hook_request request) { host->content_id(std::move(request)); };
  hooks.certificate = [host](hook_request request) { host->certificate(std::move(request)); };
  hooks.http_headers = [host](headers_request request) { host->http_headers(std::move(request)); };
  hooks.license_url = [host](hook_request request) { host->license_url(std::move(request)); };
  hooks.license_body = [host](hook_request request) { host->license_body(std::move(request)); };
  hooks.license = [host](hook_request request) { host->license(std::move(request)); };
  return hooks;
}
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_HOOKS_HPP */
