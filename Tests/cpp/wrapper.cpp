/*
 * wrapper.cpp - tests these parts of usher.hpp: ownership, exceptions, callbacks and the objects that they capture,
 * late answers, pumping, virtual time. delegates.cpp and customer.cpp test the delegates; contents.cpp tests resource
 * loaders and the readers of contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "wrapper.hpp"

namespace {

void texts() {
  tell(std::string(usher::version()) == usher_version(), "version");
  tell(std::string(usher::status_name(usher::status::limit)) == "USHER_E_LIMIT", "status_name");
  tell(usher::status_message(usher::status::limit)[0] && usher::origin_name(usher::origin::ssm)[0] &&
           usher::operation_name(usher::operation::setup)[0],
      "messages");
  tell(std::string(usher::event_name(usher::event_type::license)) == "LICENSE", "event_name");
  tell(usher::api() && usher::api()->struct_size >= sizeof(usher_api) && !usher::api(99), "api");
  std::error_code code = usher::status::limit;
  tell(code.category() == usher::category() && code.value() == USHER_E_LIMIT && !code.message().empty(),
      "statuses are error codes: %s", code.message().c_str());
  usher::error_detail limit(usher::status::limit);
  limit.origin = usher::origin::ssm;
  limit.service_code = 1007;
  tell(usher::explain(limit).known == 1, "explain");
  const std::vector<uint8_t> bytes{1, 2, 3};
  tell(usher::bytes_view(bytes).size() == 3 && usher::bytes_view("abc").text() == "abc" && usher::bytes_view().empty(),
      "bytes_view");
  tell(usher::detail::ms32(-5ms) == 1 && usher::detail::ms32(24h * 365) == USHER_OFF - 1 &&
           usher::detail::ms32(usher::off) == USHER_OFF,
      "times beyond the C types are limited");
}

void story() {
  std::atomic<int> events{0}, licences{0}, certificates{0}, lines{0}, traced{0};
  std::atomic<bool> tagged{true};
  witness w;
  {
    usher::context_options options;
    options.log = [&, w](usher::log_level level, std::string_view line) {
      lines += !line.empty();
      traced += level == usher::log_level::trace && line.front() == '{' && line.back() == '}';
    };
    options.log_level = usher::log_level::trace;
    options.http_timeout = 10s;
    options.keep_cookies = true;
    options.trace_context = true;
    options.timer_slack = 10ms;
    options.guardian = usher::guardian_mode::if_possible;
    options.close_at_exit = 1s;
    usher::context context(options);
    const uint64_t id = context.add_observer([&, w](const usher::event &event) {
      events++;
      if (event.tag != 7 || event.name()[0] == 0 || !event.playback || !event.player) tagged = false;
    });
    auto delegate = context.new_ssp_delegate(server());
    context.set_delegate(delegate);
    auto player = context.new_player();
    usher::playback_options item = item_of(delegate, 7);
    item.delegate = nullptr;
    item.content_id = "content-1";
    auto playback = player.play(item);
    playback.wait_session();
    tell(playback.state() == usher::session_state::active, "the session is active");
    tell(held() == 1, "a session is held");
    auto licence = playback.get_license(widevine);
    tell(licence.data().size() == 36 && licence.data().text().substr(0, 4) == "WVL1", "the licence's bytes");
    const auto info = licence.info();
    tell(info.period == 1s && info.renewal == usher::renew_type::heartbeat && !info.error,
        "how the session is kept alive");
    auto moved = std::move(licence);
    tell(!licence.handle() && licence.data().empty() && moved.data().size() == 36,
        "a response can be moved"); // NOLINT: used after the move on purpose
    tell(playback.get_certificate(5s).data().size() > 100, "a certificate");
    playback.request_license(widevine, [&, w](usher::playback_ref of, const usher::response_info &got, uint64_t tag) {
      licences += of == playback && got.data.size() == 36 && tag == 7;
    });
    playback.request_certificate(
        [&, w](usher::playback_ref, const usher::response_info &got, uint64_t) { certificates += !got.data.empty(); });
    tell(until([&] { return licences == 1 && certificates == 1; }), "requests with completions: both arrive");
    context.settle(5s);
    const auto pending = context.pending();
    tell(pending.transfers == 0 && pending.next_timer && *pending.next_timer <= 1s, "pending: the next heartbeat");
    const auto metrics = context.metrics();
    tell(metrics.sessions_held == 1 && metrics.setups_sent == 1 && metrics.licenses_sent >= 1 &&
             metrics.text().find("\nusher_sessions_held 1\n") != std::string::npos &&
             metrics.text("screen=\"3\"").find("\nusher_sessions_held{screen=\"3\"} 1\n") != std::string::npos,
        "metrics: one session, and their text");
    throws(
        usher::status::state, [&] { context.advance(1ms); }, "advance on the system clock");
    throws(
        usher::status::state, [&] { context.jump(1ms); }, "jump on the system clock");
    throws(
        usher::status::state, [&] { return context.pump(); }, "pump in threaded mode");
    throws(
        usher::status::state, [&] { return context.pump_fd(); }, "pump_fd in threaded mode");
    playback.close();
    playback.wait_closed(5s);
    tell(held() == 0, "closed: no session is held");
    player.stop();
    context.clear_delegate();
    throws(
        usher::status::no_delegate, [&] { return player.play({}); }, "play without a delegate");
    context.remove_observer(id);
    throws(
        usher::status::invalid_argument, [&] { context.remove_observer(id); }, "an observer removed twice");
    tell(context.close() == 0, "closed: no playback stays open");
    throws(
        usher::status::closed, [&] { return context.new_player(); }, "a player of a closed context");
  }
  tell(events >= 4 && tagged && lines > 0, "events and log lines came: %d, %d", events.load(), lines.load());
  tell(traced > events, "the trace has the events, and the requests with their replies: %d lines", traced.load());
  tell(alive == 1, "every captured object is gone: %d left", alive.load() - 1);
  nothing_held("story");
}

/** Whether the file has a byte other than 0. */
bool has_bytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::any_of(std::istreambuf_iterator<char>(file), {}, [](char byte) { return byte != 0; });
}

void journal() {
  char folder[] = "/tmp/usher-wrapper-XXXXXX";
  tell(mkdtemp(folder) != nullptr, "a folder for the journal");
  usher::context_options options;
  options.journal_file = std::string(folder) + "/journal";
  throws(
      usher::status::invalid_argument, [&] { return usher::context(options); }, "a journal without a key");
  options.journal_key.assign(32, 7);
  options.recovery_wait = 1s;
  {
    usher::context context(options);
    auto player = context.new_player();
    auto playback = player.play(item_of(context.new_ssp_delegate(server())));
    playback.wait_session();
    tell(has_bytes(*options.journal_file), "a session has a record in the journal");
  }
  tell(!has_bytes(*options.journal_file), "a journal without sessions has only zeros");
  tell(std::string(usher::event_name(usher::event_type::recovered_slot)) == "RECOVERED_SLOT" &&
           std::string(usher::event_name(usher::event_type::journal_error)) == "JOURNAL_ERROR",
      "the events of the journal");
  std::remove(options.journal_file->c_str());
  tell(rmdir(folder) == 0, "the journal is one file");
}

void ownership() {
  witness w;
  usher::player player;
  usher::playback playback;
  usher::delegate delegate;
  {
    usher::context first, context = std::move(first);
    tell(!first && context, "a context can be moved"); // NOLINT
    throws(
        usher::status::invalid_handle, [&] { return first.new_player(); }, "a moved-from context has no handle");
    delegate = context.new_ssp_delegate(server());
    player = context.new_player();
    usher_player *const unused = player.handle();
    player = context.new_player();
    tell(usher_player_stop(unused, USHER_CLOSE_DEFAULT) == USHER_E_INVALID_HANDLE,
        "an assignment frees the player that it replaces");
    auto item = item_of(delegate);
    item.renewed = [w](usher::playback_ref, const usher::response_info &, uint64_t) {};
    playback = player.play(item);
    auto other = player.play(item_of(delegate)); // a zap
    usher_playback *const replaced = playback.handle();
    playback = std::move(other);
    if (!tell(usher_playback_close(replaced, USHER_CLOSE_DEFAULT) == USHER_E_INVALID_HANDLE,
            "an assignment frees the playback that it replaces"))
      std::_Exit(1); // later steps would wait for the end of this playback
    playback.wait_session();
    tell(held() == 1, "after a zap one session is held");
    std::atomic<bool> is_closed{false};
    context.add_observer([&is_closed, w](const usher::event &event) {
      if (event.type == usher::event_type::context_closed && !event.error) is_closed = true;
    });
    context.begin_close();
    for (int i = 0; i < 1000 && !is_closed; i++) std::this_thread::sleep_for(10ms);
    tell(is_closed && held() == 0, "an event says that the context is closed");
  } // the context is destroyed first
  throws(
      usher::status::invalid_handle, [&] { playback.close(); }, "a playback of a freed context");
  throws(
      usher::status::invalid_handle, [&] { return player.play({}); }, "a player of a freed context");
  throws(
      usher::status::invalid_handle, [&] { delegate.set_token_callback([w](usher::token_request) {}); },
      "a delegate of a freed context");
  tell(alive == 1, "the captures of failed calls are destroyed, too: %d left", alive.load() - 1);
  throws(
      usher::status::invalid_handle,
      [w] {
        usher::playback_ref().request_license(
            widevine, [w](usher::playback_ref, const usher::response_info &, uint64_t) {});
      },
      "no playback");
  throws(
      usher::status::invalid_argument,
      [] {
        usher::context c;
        return c.add_observer(nullptr);
      },
      "an empty function as observer");
  try {
    usher::default_options wrong;
    wrong.license_url = "foo";
    usher::context().new_default_delegate(wrong);
    tell(false, "a licence URL of foo is refused");
  } catch (const usher::error &error) {
    tell(error.status() == usher::status::invalid_argument &&
             error.what() == std::string("license_url: not an absolute http or https URL"),
        "the exception names the field and the reason: %s", error.what());
  }
  throws(
      usher::status::invalid_argument,
      [] {
        usher::context_options o;
        o.proxy = std::string("a\0b", 3);
        return usher::context(o);
      },
      "a NUL inside a text");
  throws(
      usher::status::invalid_argument,
      [] {
        usher::context c;
        auto s = server();
        s.extra_headers = std::string("A: b\0", 5);
        return c.new_ssp_delegate(s);
      },
      "in headers");
  {
    usher::context c;
    auto d = c.new_ssp_delegate(server());
    auto p = c.new_player();
    auto item = item_of(d);
    item.content_token = std::string("a\0b", 3);
    throws(
        usher::status::invalid_argument, [&] { return p.play(item); }, "in a token");
    usher_player *raw = p.release();
    tell(!p && usher_player_free(raw) == USHER_OK, "a released handle belongs to its new owner");
    usher::context adopted = usher::context::adopt(c.release());
    tell(adopted && adopted.close() == 0, "a C handle can be adopted");
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
  nothing_held("ownership");
}

void errors() {
  usher::context context;
  auto delegate = context.new_ssp_delegate(server());
  auto player = context.new_player();
  auto playback = player.play(item_of(delegate));
  fault(R"({"route":"license","fault":{"kind":"status","status":503}})");
  try {
    playback.get_license(widevine);
    tell(false, "a licence server that answers 503 throws");
  } catch (const usher::error &e) {
    const auto &d = e.detail();
    tell(d.status == usher::status::http && d.http_status == 503 && d.origin == usher::origin::license &&
             d.operation == usher::operation::license,
        "the error in full: %s", e.what());
    tell(e.code() == usher::status::http && e.status() == usher::status::http && std::string(e.what()) == d.message,
        "the exception is a std::system_error with the same status");
    usher::error copy = e;
    tell(copy.detail().http_status == 503, "the exception can be copied");
  }
  auto result = usher::attempt([&] { return playback.get_license(widevine); });
  tell(result.ok() && result.value().data().size() == 36, "the next licence arrives, as a result");
}

void answer_later() {
  std::atomic<int> renewed{0};
  std::vector<std::thread> threads;
  std::mutex lock;
  std::optional<usher::token_request> kept;
  witness w;
  auto asked = [&] {
    std::lock_guard<std::mutex> hold(lock);
    return kept.has_value();
  };
  auto drop = [&] {
    std::lock_guard<std::mutex> hold(lock);
    kept.reset();
  };
  {
    usher::context context;
    auto delegate = context.new_ssp_delegate(server(enforced_url()));
    delegate.set_token_callback([&, w](usher::token_request request) {
      std::lock_guard<std::mutex> hold(lock);
      kept = std::move(request);
    });
    usher::playback_options item;
    item.delegate = &delegate;
    item.payload = [&, w](usher::payload_request request) {
      std::lock_guard<std::mutex> hold(lock);
      threads.emplace_back([question = std::move(request)]() mutable {
        if (question.key_system() != usher::key_system::fairplay) tell(false, "the question has the key system");
        auto empty = usher::attempt([&] { return question.answer(usher::bytes_view()); });
        if (empty.status() != usher::status::invalid_argument || !question)
          tell(false, "a payload of no bytes leaves the question open");
        if (!question.answer("fresh")) tell(false, "the library takes the payload");
      });
    };
    item.renewed = [&, w](usher::playback_ref, const usher::response_info &info, uint64_t) {
      renewed += info.data.size() == 36;
    };
    auto player = context.new_player();
    auto playback = player.play(item);
    until(asked);
    {
      std::lock_guard<std::mutex> hold(lock);
      throws(
          usher::status::invalid_argument, [&] { return kept->answer("two\nlines"); }, "a token of two lines");
      throws(
          usher::status::invalid_argument, [&] { return kept->answer(std::string_view("a\0b", 3)); },
          "a token with a NUL");
      tell(static_cast<bool>(*kept) && kept->playback() == playback, "the question stays open");
      tell(kept->answer(content_token()) && !*kept, "the token, later");
      tell(!kept->answer(content_token()), "a second answer is too late");
    }
    playback.get_license({usher::key_system::fairplay, "SPC"});
    tell(until([&] { return renewed == 1; }, 8000), "the payload, answered on another thread: renewed");
    kept.reset();
    auto second = context.new_player().play(item); // destroys the player at once
    throws(
        usher::status::closed, [&] { second.wait_session(5s); }, "a player freed at once stops its playback");
    second.wait_closed(5s);
    context.settle(5s);
    drop();
    auto screen = context.new_player();
    auto third = screen.play(item);
    until(asked);
    drop();
    throws(
        usher::status::no_token, [&] { third.wait_session(5s); },
        "a question destroyed without an answer means: no token");
    auto fourth = screen.play(item);
    until(asked);
    usher_completion id = kept->release();
    tell(!*kept && usher_complete_token(id, nullptr) == USHER_OK, "a released question is answered by C");
  }
  for (auto &thread : threads) thread.join();
  kept.reset();
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
  nothing_held("answer later");
}

void exceptions_in_callbacks() {
  witness w;
  {
    usher::context context;
    context.add_observer([w](const usher::event &) { throw std::runtime_error("observer"); });
    auto delegate = context.new_ssp_delegate(server());
    delegate.set_token_callback([w](usher::token_request) { throw 42; });
    usher::playback_options item;
    item.delegate = &delegate;
    auto player = context.new_player();
    auto playback = player.play(item);
    throws(
        usher::status::no_token, [&] { playback.wait_session(5s); }, "a token callback that throws means: no token");
    until([&] { return context.pending().callbacks == 0; });
    tell(context.take_exception() != nullptr && context.take_exception() == nullptr,
        "the first exception is kept, and can be taken once");
    playback = player.play(item_of(delegate));
    playback.request_license(widevine,
        [w](usher::playback_ref, const usher::response_info &, uint64_t) { throw std::logic_error("licence"); });
    until([&] { return context.pending().callbacks == 0 && requests("license") > 0; });
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
  nothing_held("exceptions");
}

void pumped() {
  witness w;
  int events = 0;
  {
    usher::context_options options;
    options.callbacks = usher::callback_mode::pumped;
    usher::context context(options);
    tell(context.pump_fd() >= 0 && context.pump() == 0, "no callback is due");
    context.add_observer([&, w](const usher::event &event) {
      events++;
      if (event.type == usher::event_type::session_started) throw std::runtime_error("thrown in a pump");
    });
    auto delegate = context.new_ssp_delegate(server());
    auto player = context.new_player();
    auto playback = player.play(item_of(delegate));
    bool thrown = false;
    for (int tries = 0; tries < 2500 * patience() && !thrown; tries++) {
      try {
        context.pump();
      } catch (const std::runtime_error &e) { thrown = std::string(e.what()) == "thrown in a pump"; }
      std::this_thread::sleep_for(2ms);
    }
    tell(thrown && events > 0, "pump() throws what a callback threw");
    throws(
        usher::status::would_deadlock, [&] { return context.close(); }, "close on the pumping thread");
  }
  auto own = std::make_unique<usher::context>([] {
    usher::context_options options;
    options.callbacks = usher::callback_mode::pumped;
    return options;
  }());
  own->add_observer([&, w](const usher::event &) { own.reset(); }); // destroys its own context inside the pump
  auto delegate = own->new_ssp_delegate(server());
  auto player = own->new_player();
  auto playback = player.play(item_of(delegate));
  for (int tries = 0; tries < 2500 * patience() && own; tries++) own->pump(), std::this_thread::sleep_for(2ms);
  tell(!own && alive == 1, "a context destroyed inside its own pump: %d captured objects left", alive.load() - 1);
  nothing_held("pumped");
}

void virtual_time() {
  usher::context_options options;
  options.clock = usher::clock_kind::manual;
  usher::context context(options);
  context.advance(1min, 1s);
  context.jump(1h);
  tell(context.pending().now == 61min && !context.pending().next_timer, "the host moves time: %lld min",
      static_cast<long long>(context.pending().now / 1min));
}

} // namespace

int main() {
  texts();
  story();
  journal();
  ownership();
  errors();
  answer_later();
  exceptions_in_callbacks();
  pumped();
  virtual_time();
  failed += delegates();
  failed += customer();
  failed += contents();
  failed += contexts();
  return failed != 0;
}
