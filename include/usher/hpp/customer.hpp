/*
 * hpp/customer.hpp - part of usher.hpp: customer SSM, the operator's own session management.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_CUSTOMER_HPP
#define USHER_HPP_CUSTOMER_HPP

#include "question.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

/** The fields of usher_customer_license: a licence, or the reason why the host has no licence.
    customer_request::answer() copies it, so the bytes of `license` need to live only until answer() returns. */
struct customer_license {
  /** The licence. No bytes: the host has no licence; the fields below say why. */
  bytes_view license;
  /** Period of heartbeats or renewals; zero: none. */
  std::chrono::duration<double> heartbeat{0};
  /** What keeps the session alive: enforced, heartbeat or none; answer() refuses cdm. Only the value in the first
      answer counts. */
  renew_type renewal = renew_type::enforced;
  /** HTTP status of your server, for `http_status` of the error; 0: none. */
  int32_t http_status = 0;
  /** Your server's code, for `service_code` of the error; 0: none. In the answer that should open the session, 1007
      means too many sessions. See usher_customer_license. */
  int64_t service_code = 0;
  /** One line for the error's message. */
  std::string message{};
  /** The server that failed: license or ssm; local: not known. See usher_customer_license. */
  usher::origin origin = usher::origin::local;
};

namespace detail {
inline void no_license(usher_completion id) { usher_complete_license(id, nullptr); }
inline void no_call(usher_completion id) { usher_complete_call(id, USHER_E_CALLBACK); }
} // namespace detail

/** A question for a licence from your servers, as usher_customer_license_fn gets it. The object has a copy of the
    bytes, and the destructor wipes this copy. If you refuse the question, the request fails with USHER_E_CALLBACK. */
class customer_request : public detail::refusable_question<detail::no_license> {
public:
  customer_request(const usher_customer_request &request, detail::shared_faults kept)
      : refusable_question(request.completion, request.playback, request.tag, std::move(kept)),
        type_(static_cast<license_type>(request.type)), key_system_(request.key_system ? request.key_system : ""),
        payload_(request.payload, request.payload_size), asset_id_(request.asset_id, request.asset_id_size) {}

  license_type type() const noexcept { return type_; }
  const std::string &key_system() const noexcept { return key_system_; }
  /** The CDM's message. */
  bytes_view payload() const noexcept { return payload_.view(); }
  /** Asset ID of the licence request; empty: none. */
  bytes_view asset_id() const noexcept { return asset_id_.view(); }

  /** Calls usher_complete_license(). @return true if the library accepts the answer; false if the answer comes too
      late, or if the question already has an answer. After INVALID_ARGUMENT the question stays open. */
  outcome<bool> answer(const customer_license &license) {
    detail::c_text message(license.message);
    if (!message.is_valid()) return accepted(USHER_E_INVALID_ARGUMENT);
    usher_customer_license raw = USHER_CUSTOMER_LICENSE_INIT;
    raw.license = license.license.empty() ? nullptr : license.license.data();
    raw.license_size = license.license.size();
    raw.heartbeat_s = license.heartbeat.count();
    raw.renew_type = static_cast<int32_t>(license.renewal);
    raw.http_status = license.http_status;
    raw.service_code = license.service_code;
    raw.message = license.message.empty() ? nullptr : message.c_str();
    raw.origin = static_cast<int32_t>(license.origin);
    return accepted(usher_complete_license(id_, &raw));
  }

private:
  license_type type_;
  std::string key_system_;
  detail::secret payload_, asset_id_;
};

/** The question of usher_customer_call_fn for C++: the library asks the host to send a heartbeat or a teardown. If you
    refuse the question, or destroy it without an answer, the heartbeat or teardown has failed with USHER_E_CALLBACK;
    the library retries a heartbeat. */
class customer_call : public detail::refusable_question<detail::no_call> {
public:
  customer_call(usher_completion id, usher_playback *playback, uint64_t tag, detail::shared_faults kept) noexcept
      : refusable_question(id, playback, tag, std::move(kept)) {}

  /** Calls usher_complete_call(). Answer with ok, or with the status of the failure. For a heartbeat, status::session,
      status::refused and status::limit mean that your server ended the session; the library retries the heartbeat
      after any other failure. For a teardown, status::session means that the teardown is done. @return as
      customer_request::answer(). */
  outcome<bool> answer(status s = status::ok) { return accepted(usher_complete_call(id_, static_cast<int32_t>(s))); }
};

/** Gets a licence; see customer_request. */
using customer_license_callback = std::function<void(customer_request request)>;

/** The host's function that sends a heartbeat or teardown. Construct it from a function that takes a customer_call and
    answers it, or from a function without parameters. A function without parameters means success when it returns, and
    failure if it throws.
    */
class customer_call_callback {
public:
  customer_call_callback() noexcept = default;
  customer_call_callback(std::nullptr_t) noexcept {}
  template <class F, std::enable_if_t<std::is_invocable_v<F &, customer_call>, int> = 0>
  customer_call_callback(F f) : call_(std::move(f)) {}
  template <class F, std::enable_if_t<!std::is_invocable_v<F &, customer_call> && std::is_invocable_v<F &>, int> = 0>
  customer_call_callback(F f) {
    if constexpr (std::is_pointer_v<F> || std::is_same_v<F, std::function<void()>>) {
      if (!f) return;
    }
    call_ = [f = std::move(f)](customer_call call) mutable {
      f();
      (void)call.answer();
    };
  }
  explicit operator bool() const noexcept { return call_ != nullptr; }
  void operator()(customer_call call) const { call_(std::move(call)); }

private:
  std::function<void(customer_call)> call_;
};

/** The fields of usher_customer_callbacks. */
struct customer_callbacks {
  /** Gets licences and renewals. Required. */
  customer_license_callback license;
  customer_call_callback heartbeat, teardown;
};

/** The fields of usher_customer_options. Zero or an empty function means the default. */
struct customer_options {
  /** The application certificate, which playback::get_certificate() returns. Empty: none. The library reads these
      bytes only while it makes the delegate. */
  bytes_view certificate;
  /** The callback that gets licences and renewals from your servers. If you set no callback here, set the callbacks
      with delegate::set_callbacks(). */
  customer_license_callback license;
  customer_call_callback heartbeat, teardown;
  milliseconds license_timeout{0}, heartbeat_timeout{0}, teardown_timeout{0}, payload_timeout{0};
  /** USHER_OFF: none. */
  uint32_t jitter_permille = 0, retry_permille = 0, keep_alive_failures_max = 0;
  suspend_rule suspend = suspend_rule::keep;
  bool zap_without_waiting = false;
};

namespace detail {
using customer_calls = customer_callbacks;
inline void on_customer_license(const usher_customer_request *request, void *user_data) {
  auto *it = static_cast<box<customer_calls> *>(user_data);
  it->kept->guard([&] { it->call.license(customer_request(*request, it->kept)); });
}
inline void on_customer_heartbeat(
    usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<customer_calls> *>(user_data);
  it->kept->guard([&] { it->call.heartbeat(customer_call(completion, playback, tag, it->kept)); });
}
inline void on_customer_teardown(usher_completion completion, usher_playback *playback, uint64_t tag, void *user_data) {
  auto *it = static_cast<box<customer_calls> *>(user_data);
  it->kept->guard([&] { it->call.teardown(customer_call(completion, playback, tag, it->kept)); });
}

/** Sets the functions of a usher_customer_options or usher_customer_callbacks struct. */
template <class Raw, class Given>
void set_functions(Raw &raw, const Given &given) noexcept {
  if (given.license) raw.license = on_customer_license;
  if (given.heartbeat) raw.heartbeat = on_customer_heartbeat;
  if (given.teardown) raw.teardown = on_customer_teardown;
}

inline usher_customer_options raw_customer(const customer_options &options) noexcept {
  usher_customer_options raw = USHER_CUSTOMER_OPTIONS_INIT;
  set_functions(raw, options);
  raw.certificate = options.certificate.data();
  raw.certificate_size = options.certificate.size();
  raw.license_timeout_ms = ms32(options.license_timeout);
  raw.heartbeat_timeout_ms = ms32(options.heartbeat_timeout);
  raw.teardown_timeout_ms = ms32(options.teardown_timeout);
  raw.payload_timeout_ms = ms32(options.payload_timeout);
  raw.jitter_permille = options.jitter_permille;
  raw.retry_permille = options.retry_permille;
  raw.keep_alive_failures_max = options.keep_alive_failures_max;
  raw.suspend = static_cast<int32_t>(options.suspend);
  raw.zap_without_waiting = options.zap_without_waiting;
  return raw;
}
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_CUSTOMER_HPP */
