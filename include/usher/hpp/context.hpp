/*
 * hpp/context.hpp - part of usher.hpp: one independent instance of the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_CONTEXT_HPP
#define USHER_HPP_CONTEXT_HPP

#include "customer.hpp"
#include "loader.hpp"
#include "metrics.hpp"
#include "options.hpp"
#include "player.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace usher {
inline namespace USHER_HPP_FORM {

/** A copy of a usher_event; you may keep it. */
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
      : type(static_cast<event_type>(e.type)), left(e.left != 0), sequence(e.sequence),
        time(detail::from_ms(e.time_ms)), playback(e.playback, kept), player(e.player, kept), tag(e.tag),
        period(detail::from_ms(e.period_ms)), lateness(detail::from_ms(e.lateness_ms)), error(e.error) {}
  const char *name() const noexcept { return event_name(type); }
};

/** Receives every event; see usher_event_fn. */
using observer = std::function<void(const event &)>;
/** Receives log lines; the view is valid until the callback returns. See usher_log_fn. */
using log_sink = std::function<void(log_level level, std::string_view line)>;

/** The fields of usher_context_options. No value or zero means the default. */
struct context_options {
  clock_kind clock = clock_kind::system;
  usher::log_level log_level = usher::log_level::standard;
  log_sink log;
  uint32_t callback_threads_max = 0;
  milliseconds connect_timeout{0}, http_timeout{0};
  uint32_t max_response_bytes = 0, requests_per_origin_max = 0;
  bool allow_insecure_http = false, http2 = false;
  std::optional<std::string> ca_file, pinned_public_key, client_certificate_file, client_key_file, proxy, user_agent;
  callback_mode callbacks = callback_mode::threaded;
  uint32_t connections_max = 0;
  std::optional<std::string> client_key_passphrase;
  bool wipe_freed_memory = false, keep_cookies = false, trace_context = false;
  milliseconds timer_slack{0};
  std::optional<std::string> journal_file;
  /** 32 bytes; empty: none. */
  std::vector<uint8_t> journal_key;
  bool journal_in_clear = false;
  milliseconds recovery_wait{0};
  guardian_mode guardian = guardian_mode::none;
  milliseconds close_at_exit{0};
  std::optional<std::string> guardian_path;
};

/** The fields of usher_pending. */
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

/** One independent instance of the library. The destructor frees it as usher_context_free() does: it closes the open
    playbacks and waits until they are closed, except inside callbacks. */
class context : public detail::owner<usher_context, usher_context_free> {
public:
  /** Calls usher_context_new(). In callbacks: yes. */
  static outcome<context> make(context_options options = {}) {
    auto kept = std::make_shared<detail::faults>();
    detail::c_text ca(options.ca_file), pin(options.pinned_public_key), certificate(options.client_certificate_file),
        key(options.client_key_file), proxy(options.proxy), agent(options.user_agent),
        passphrase(options.client_key_passphrase), journal(options.journal_file), guardian(options.guardian_path);
    if (!detail::are_valid(ca, pin, certificate, key, proxy, agent, passphrase, journal, guardian))
      return detail::done(USHER_E_INVALID_ARGUMENT, context(nullptr, kept));
    usher_context_options raw = USHER_CONTEXT_OPTIONS_INIT;
    raw.clock = static_cast<int32_t>(options.clock);
    raw.log_level = static_cast<int32_t>(options.log_level);
    raw.callback_threads_max = options.callback_threads_max;
    raw.connect_timeout_ms = detail::ms32(options.connect_timeout);
    raw.http_timeout_ms = detail::ms32(options.http_timeout);
    raw.max_response_bytes = options.max_response_bytes;
    raw.requests_per_origin_max = options.requests_per_origin_max;
    raw.allow_insecure_http = options.allow_insecure_http;
    raw.http2 = options.http2;
    raw.ca_file = ca.c_str();
    raw.pinned_public_key = pin.c_str();
    raw.client_certificate_file = certificate.c_str();
    raw.client_key_file = key.c_str();
    raw.proxy = proxy.c_str();
    raw.user_agent = agent.c_str();
    raw.callbacks = static_cast<int32_t>(options.callbacks);
    raw.connections_max = options.connections_max;
    raw.client_key_passphrase = passphrase.c_str();
    raw.wipe_freed_memory = options.wipe_freed_memory;
    raw.keep_cookies = options.keep_cookies;
    raw.trace_context = options.trace_context;
    raw.timer_slack_ms = detail::ms32(options.timer_slack);
    raw.journal_file = journal.c_str();
    raw.journal_key = options.journal_key.empty() ? nullptr : options.journal_key.data();
    raw.journal_key_size = options.journal_key.size();
    raw.journal_in_clear = options.journal_in_clear;
    raw.recovery_wait_ms = detail::ms32(options.recovery_wait);
    raw.guardian = static_cast<int32_t>(options.guardian);
    raw.close_at_exit_ms = detail::ms32(options.close_at_exit);
    raw.guardian_path = guardian.c_str();
    raw.refusal = words::on_refusal;
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
  /** Takes ownership of a C handle. */
  static context adopt(usher_context *handle) { return {handle, std::make_shared<detail::faults>()}; }

  /** Calls usher_context_close(). @return how many playbacks did not close in time; 0: all are closed. In callbacks:
      no. */
  outcome<uint32_t> close(milliseconds timeout = milliseconds(0)) const {
    uint32_t open = 0;
    int32_t s = usher_context_close(handle_, detail::ms32(timeout), &open);
    return detail::done(s == USHER_E_TIMEOUT ? USHER_OK : s, open);
  }
  /** Calls usher_context_pump(). Throws the first exception that a callback threw. @return how many callbacks ran. In
      callbacks: no. */
  outcome<uint32_t> pump() const {
    detail::shared_faults kept = kept_; // a callback may destroy this object
    uint32_t ran = 0;
    int32_t s = usher_context_pump(handle_, &ran);
#if !defined(USHER_NO_EXCEPTIONS)
    if (std::exception_ptr thrown = kept ? kept->take() : nullptr) std::rethrow_exception(thrown);
#endif
    return detail::done(s, ran);
  }
  /** Calls usher_context_pump_fd(). Only watch the descriptor for reading. In callbacks: yes. */
  outcome<int> pump_fd() const {
    int fd = -1;
    int32_t s = usher_context_pump_fd(handle_, &fd);
    return detail::done(s, fd);
  }
  /** Returns the first exception that left a callback and was not returned before; null if there is none. Threads:
      any. */
  std::exception_ptr take_exception() const noexcept { return kept_ ? kept_->take() : nullptr; }

  /** Calls usher_context_add_observer(). @return the id for remove_observer(). In callbacks: yes. */
  outcome<uint64_t> add_observer(observer fn) const {
    auto *it = detail::boxed(std::move(fn), kept_);
    uint64_t id = 0;
    int32_t s = usher_context_add_observer(handle_, it->call ? detail::on_event : nullptr, it, it->destroy, &id);
    return detail::done(s, id);
  }
  /** Calls usher_context_remove_observer(). In callbacks: yes. */
  outcome<void> remove_observer(uint64_t id) const { return detail::done(usher_context_remove_observer(handle_, id)); }
  /** Calls usher_context_set_delegate(). In callbacks: yes. */
  outcome<void> set_delegate(const delegate &d) const {
    return detail::done(usher_context_set_delegate(handle_, d.handle()));
  }
  outcome<void> clear_delegate() const { return detail::done(usher_context_set_delegate(handle_, nullptr)); }

  /** Calls usher_context_begin_close(). event_type::context_closed follows. In callbacks: yes. */
  outcome<void> begin_close(milliseconds timeout = milliseconds(0)) const {
    return detail::done(usher_context_begin_close(handle_, detail::ms32(timeout)));
  }
  /** Calls usher_context_suspend(). In callbacks: yes. */
  outcome<void> suspend() const { return detail::done(usher_context_suspend(handle_)); }
  /** Calls usher_context_resume(). In callbacks: yes. */
  outcome<void> resume() const { return detail::done(usher_context_resume(handle_)); }
  /** Calls usher_context_network_changed(). In callbacks: yes. */
  outcome<void> network_changed() const { return detail::done(usher_context_network_changed(handle_)); }

  /** Calls usher_default_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_default_delegate(const default_options &options) const {
    detail::raw_default raw(options);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    usher_delegate *out = nullptr;
    int32_t s = usher_default_delegate_new(handle_, raw.get(), &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_common_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_common_delegate(const default_options &options, delegate_hooks hooks) const {
    detail::raw_default raw(options);
    detail::raw_hooks raw_hooks(hooks);
    if (!detail::are_valid(raw, raw_hooks)) return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    auto *it = detail::boxed(std::move(hooks), kept_);
    usher_delegate *out = nullptr;
    int32_t s = usher_common_delegate_new(handle_, raw.get(), raw_hooks.get(), it, it->destroy, &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_common_delegate_new() with an object of your own class, which derives from common_delegate. The
      library releases the object after the last call of its hooks. */
  outcome<delegate> new_common_delegate(
      const default_options &options, const std::shared_ptr<common_delegate> &host) const {
    return host ? new_common_delegate(options, detail::hooks_of(host))
                : detail::done(USHER_E_INVALID_ARGUMENT, delegate());
  }
  /** Calls usher_ssp_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_ssp_delegate(const ssp_options &options) const {
    detail::raw_ssp raw(options);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    usher_delegate *out = nullptr;
    int32_t s = usher_ssp_delegate_new(handle_, raw.get(), &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_ssp_v2_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_ssp_v2_delegate(const ssp_v2_options &options) const {
    detail::raw_ssp_v2 raw(options);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    usher_delegate *out = nullptr;
    int32_t s = usher_ssp_v2_delegate_new(handle_, raw.get(), &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_multi_instance_delegate_new(). delegate::tokens() returns its token map. In callbacks: yes. */
  outcome<delegate> new_multi_instance_delegate(const ssp_options &options, const token_map_options &map = {}) const {
    detail::raw_ssp raw(options);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, delegate());
    usher_token_map_options raw_map = USHER_TOKEN_MAP_OPTIONS_INIT;
    raw_map.tokens_max = map.tokens_max;
    raw_map.time_to_live_ms = detail::ms64(map.time_to_live);
    usher_delegate *out = nullptr;
    int32_t s = usher_multi_instance_delegate_new(handle_, raw.get(), &raw_map, &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_customer_delegate_new(). In callbacks: yes. */
  outcome<delegate> new_customer_delegate(customer_options options) const {
    usher_customer_options raw = detail::raw_customer(options);
    auto *it = detail::boxed(
        detail::customer_calls{std::move(options.license), std::move(options.heartbeat), std::move(options.teardown)},
        kept_);
    raw.user_data = it;
    raw.destroy = it->destroy;
    usher_delegate *out = nullptr;
    int32_t s = usher_customer_delegate_new(handle_, &raw, &out);
    return detail::done(s, delegate(out, kept_));
  }
  /** Calls usher_context_add_loader(). In callbacks: yes. */
  outcome<loader> add_loader(loader_options options) const {
    detail::raw_loader raw(options);
    if (!raw.is_valid()) return detail::done(USHER_E_INVALID_ARGUMENT, loader());
    if (options.spc) raw.get()->spc = detail::on_spc;
    if (options.server) raw.get()->server = detail::on_server;
    if (options.token_url) raw.get()->token_url = detail::on_token_url;
    auto *it = detail::boxed(
        detail::loader_calls{std::move(options.spc), std::move(options.server), std::move(options.token_url)}, kept_);
    raw.get()->user_data = it;
    raw.get()->destroy = it->destroy;
    usher_loader *out = nullptr;
    int32_t s = usher_context_add_loader(handle_, raw.get(), &out);
    return detail::done(s, loader(out, kept_));
  }
  /** Calls usher_player_new(). In callbacks: yes. */
  outcome<player> new_player() const {
    usher_player *out = nullptr;
    int32_t s = usher_player_new(handle_, &out);
    return detail::done(s, player(out, kept_));
  }

  /* -- testing.h: virtual time. In callbacks: no. -- */

  /** Calls usher_context_advance(). Fails with USHER_E_TIMEOUT if a request or callback was still under way at a
      timer or at the end; the clock has advanced nevertheless. */
  outcome<void> advance(milliseconds by, milliseconds settle = milliseconds(0)) const {
    return detail::done(usher_context_advance(handle_, detail::ms64(by), detail::ms32(settle)));
  }
  /** Calls usher_context_jump(). */
  outcome<void> jump(milliseconds by) const { return detail::done(usher_context_jump(handle_, detail::ms64(by))); }
  /** Calls usher_context_settle(). Waits at most `timeout` of real time. */
  outcome<void> settle(milliseconds timeout, uint32_t transfers = 0, uint32_t callbacks = 0) const {
    return detail::done(usher_context_settle(handle_, transfers, callbacks, detail::ms32(timeout)));
  }
  /** Calls usher_context_pending(). */
  outcome<usher::pending> pending() const {
    usher_pending raw = USHER_PENDING_INIT;
    int32_t s = usher_context_pending(handle_, &raw);
    usher::pending it;
    it.transfers = raw.transfers, it.callbacks = raw.callbacks, it.queued = raw.queued;
    if (raw.next_timer_ms != UINT64_MAX) it.next_timer = detail::from_ms(raw.next_timer_ms);
    it.now = detail::from_ms(raw.now_ms);
    return detail::done(s, it);
  }
  /** Calls usher_context_metrics(). */
  outcome<usher::metrics> metrics() const {
    usher::metrics it;
    int32_t s = usher_context_metrics(handle_, &it);
    return detail::done(s, it);
  }

private:
  context(usher_context *handle, detail::shared_faults kept) noexcept : owner(handle, std::move(kept)) {}
};

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_CONTEXT_HPP */
