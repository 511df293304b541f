/*
 * delegates.cpp - tests four kinds of delegate in usher.hpp, with the functions of their playbacks. The kinds are
 * default, common (with functions and with a class), SSP V2 and multi-instance.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wrapper.hpp"

#include <mutex>
#include <stdexcept>

namespace {

usher::default_options free_server(const char *url = enforced_url()) {
  usher::default_options options;
  if (url) options.license_url = url;
  options.certificate_url = certificate_url();
  return options;
}

void default_delegate() {
  usher::context context;
  auto delegate = context.new_default_delegate(free_server());
  delegate.set_http_header("X-Story", "default");
  delegate.connect_ahead();
  delegate.set_http_header("X-Gone", "gone");
  delegate.clear_http_header("X-Gone");
  auto player = context.new_player();
  player.prepare(item_of(delegate, 0, free_token()));
  auto playback = player.play(item_of(delegate, 0, free_token()));
  tell(playback.get_license(fairplay).data().text().substr(0, 4) == "CKC1",
      "default delegate: a licence without a session");
  tell(sent("license", "\"X-Story\", \"default\"") == 1 && sent("license", "X-Gone") == 0,
      "with the header that was set, without the one taken away");
  tell(playback.state() == usher::session_state::none && held() == 0, "a default delegate has no session");
  throws(
      usher::status::invalid_argument, [&] { delegate.set_http_header("X-Story", std::string_view("a\0b", 3)); },
      "a header with a NUL");
  throws(
      usher::status::invalid_argument, [&] { delegate.set_http_header("X Story", "a"); }, "an invalid header name");
  throws(
      usher::status::invalid_argument, [&] { return context.new_default_delegate({}); },
      "a default delegate without a URL");
  throws(
      usher::status::invalid_argument,
      [&] {
        auto o = free_server();
        o.token_header = std::string("a\0b", 3);
        return context.new_default_delegate(o);
      },
      "with a NUL");
}

void hooks_as_functions() {
  std::atomic<int> asked{0};
  witness w;
  {
    usher::context context;
    usher::delegate_hooks hooks;
    hooks.scheme = "skd";
    hooks.content_id = [&, w](usher::hook_request request) {
      asked += request.which() == usher::hook::content_id && request.asset_id().text() == "skd://one" &&
               request.key_system().empty();
      request.answer("id of " + std::string(request.builtin().data().text()));
    };
    hooks.certificate = [&, w](usher::hook_request request) {
      asked += request.which() == usher::hook::certificate;
      const auto superclass = request.builtin();
      request.answer(std::string(superclass.data().text()) + "mine");
    };
    hooks.http_headers = [&, w](usher::headers_request request) {
      asked += request.which() == usher::hook::http_headers && request.type() == usher::license_type::request &&
               request.tag() == 7;
      const auto superclass = request.builtin();
      request.answer(std::string(superclass.data().text()) + "\nX-Story: functions");
    };
    hooks.license_url = [&, w](usher::hook_request request) {
      asked += request.which() == usher::hook::license_url && request.key_system() == usher::key_system::fairplay &&
               request.asset_id().text() == "skd://one";
      throws(
          usher::status::invalid_argument, [&] { return request.answer("no URL"); }, "an invalid URL");
      throws(
          usher::status::state, [&] { return request.builtin(); }, "the built-in URL of a delegate without one");
      tell(static_cast<bool>(request) && request.answer(enforced_url()) && !request,
          "the question is still open, and takes an answer");
      tell(!request.answer(enforced_url()), "a second answer is too late");
    };
    hooks.license_body = [&, w](usher::hook_request request) {
      asked += request.which() == usher::hook::license_body && request.data().text() == "SPC";
      throws(
          usher::status::invalid_argument, [&] { return request.answer(usher::bytes_view()); }, "a body of no bytes");
      request.answer("another SPC");
    };
    hooks.license = [&, w](usher::hook_request request) {
      asked += request.which() == usher::hook::license && request.http_status() == 200 &&
               request.data().text().find("CkcMessage") != std::string_view::npos;
      request.answer(std::string(request.builtin().data().text().substr(0, 4)) + " mine");
    };
    auto delegate = context.new_common_delegate(free_server(nullptr), hooks);
    auto player = context.new_player();
    auto playback = player.play(item_of(delegate, 7, free_token()));
    tell(playback.get_content_id("skd://one").data().text() == "id of one", "hooks: the content identifier");
    const auto certificate = playback.get_certificate();
    tell(certificate.data().size() > 100 && certificate.data().text().substr(certificate.data().size() - 4) == "mine",
        "the certificate");
    tell(playback.get_license(fairplay).data().text() == "CKC1 mine", "the licence that the last hook made");
    tell(sent("license", "\"X-Story\", \"functions\"") == 1 && sent("license", "YW5vdGhlciBTUEM=") == 1,
        "the head-end saw headers and body of the hooks");
    tell(asked == 6, "the library called all six hooks with the right arguments: %d", asked.load());
    std::atomic<int> told{0};
    playback.request_content_id(
        "skd://one", [&, w](usher::playback_ref, const usher::response_info &info, uint64_t tag) {
          told += info.data.text() == "id of one" && tag == 7;
        });
    tell(until([&] { return told == 1; }), "a request with a completion: the content identifier arrives");
    delegate.clear_hooks();
    throws(
        usher::status::state, [&] { return playback.get_license(fairplay); },
        "after the hooks are cleared, the delegate has no URL");
    throws(
        usher::status::invalid_argument,
        [&] {
          usher::delegate_hooks bad;
          bad.scheme = std::string("a\0b", 3);
          delegate.set_hooks(bad);
        },
        "a scheme with a NUL");
    throws(
        usher::status::invalid_argument,
        [&] {
          usher::delegate_hooks bad;
          bad.scheme = "no scheme", bad.license = [w](usher::hook_request) {};
          delegate.set_hooks(bad);
        },
        "an invalid scheme");
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
}

/* A class of the host. It is derived from usher.hpp's common delegate, as an application derives a class from the SDK's
   common delegate. */
class my_delegate : public usher::common_delegate {
public:
  ~my_delegate() override {
    for (auto &thread : threads_) thread.join();
  }
  std::string scheme() const override { return "abc"; }
  void http_headers(usher::headers_request request) override {
    std::lock_guard<std::mutex> hold(lock_);
    threads_.emplace_back([question = std::move(request)]() mutable {
      question.answer(std::string("nv-authorizations: ") + free_token() + "\nX-Story: class");
    });
  }
  void license(usher::hook_request request) override {
    if (request.http_status() == 200) licences++;
    common_delegate::license(std::move(request)); // calls the superclass
  }
  std::atomic<int> licences{0};

private:
  witness alive_;
  std::mutex lock_;
  std::vector<std::thread> threads_;
};

void hooks_as_a_class() {
  {
    usher::context context;
    auto mine = std::make_shared<my_delegate>();
    auto delegate = context.new_common_delegate(free_server(), mine);
    auto player = context.new_player();
    usher::playback_options item;
    item.delegate = &delegate;
    auto playback = player.play(item);
    tell(playback.get_license(fairplay).data().size() == 36,
        "a class: its headers, answered on another thread; everything else is built in");
    tell(mine->licences == 1 && sent("license", "\"X-Story\", \"class\"") == 1, "the head-end saw its header");
    tell(playback.get_certificate().data().size() > 100, "the built-in certificate");
    tell(playback.get_content_id("abc://one").data().text() == "one", "the content identifier is without its scheme");
    throws(
        usher::status::invalid_argument,
        [&] { return context.new_common_delegate({}, std::shared_ptr<usher::common_delegate>()); },
        "a NULL object as the class");
    throws(
        usher::status::invalid_argument, [&] { delegate.set_hooks(std::shared_ptr<usher::common_delegate>()); },
        "set_hooks with a NULL object");
    auto ssp = context.new_ssp_delegate(server());
    ssp.set_hooks(mine);
    tell(alive == 1, "one object for both delegates");
  }
  tell(alive == 0, "the object is destroyed with them");
}

void hooks_that_fail() {
  usher::context context;
  auto delegate = context.new_default_delegate(free_server());
  auto player = context.new_player();
  auto playback = player.play(item_of(delegate, 0, free_token()));
  const int before = requests("license");
  usher::delegate_hooks hooks;
  hooks.http_headers = [](usher::headers_request request) { request.refuse(); };
  delegate.set_hooks(hooks);
  throws(
      usher::status::declined, [&] { return playback.get_license(fairplay); }, "a headers hook that declines");
  hooks.http_headers = [](usher::headers_request) { throw std::runtime_error("hook"); };
  delegate.set_hooks(hooks);
  throws(
      usher::status::declined, [&] { return playback.get_license(fairplay); }, "a headers hook that throws");
  tell(context.take_exception() != nullptr, "its exception is kept");
  struct slow {
    ~slow() { std::this_thread::sleep_for(50ms); }
  };
  const auto thrower = [](usher::headers_request) { throw std::runtime_error("hook"); };
  hooks.http_headers = [&](usher::headers_request request) {
    slow on_the_way_out;
    thrower(std::move(request));
  };
  delegate.set_hooks(hooks);
  throws(
      usher::status::declined, [&] { return playback.get_license(fairplay); },
      "a headers hook that throws, and is slow to return");
  tell(context.take_exception() != nullptr, "its exception is kept before the request completes");
  hooks.http_headers = [&](usher::headers_request request) {
    try {
      thrower(std::move(request));
    } catch (const std::runtime_error &) {}
  };
  delegate.set_hooks(hooks);
  throws(
      usher::status::declined, [&] { return playback.get_license(fairplay); },
      "a headers hook that catches its own exception");
  tell(context.take_exception() == nullptr, "no exception is kept");
  hooks.http_headers = nullptr;
  hooks.license_body = [](usher::hook_request) {};
  delegate.set_hooks(hooks);
  throws(
      usher::status::callback, [&] { return playback.get_license(fairplay); },
      "a body hook that destroys its question without an answer");
  tell(requests("license") == before, "no request was sent");
}

/* Playback stops, and then the application tears the session down. */
void ssp_v2_stop_then_teardown() {
  std::atomic<int> ended{0};
  usher::context context;
  context.add_observer(
      [&](const usher::event &event) { ended += event.type == usher::event_type::session_ended && !event.left; });
  usher::ssp_v2_options options;
  options.ssp = server(v2_url());
  auto delegate = context.new_ssp_v2_delegate(options);
  auto player = context.new_player();
  auto playback = player.play(item_of(delegate));
  playback.get_license(widevine);
  player.stop();
  playback.wait_closed(5s);
  tell(held() == 1, "SSP V2: after the stop the session is held");
  playback.close(usher::close_mode::teardown);
  playback.wait_closed(5s);
  tell(held() == 0 && until([&] { return ended == 1; }), "SSP V2: then a close with teardown frees the slot");
  playback = player.play(item_of(delegate));
  playback.get_license(widevine);
  player.stop();
  player.stop(usher::close_mode::teardown);
  playback.wait_closed(5s);
  tell(held() == 0, "SSP V2: a second stop with teardown frees the slot, too");
}

/* Two players play clear streams in a context without a delegate. */
void clear_streams() {
  usher::context context;
  auto one = context.new_player(), two = context.new_player();
  usher::playback_options item;
  item.clear = true;
  auto first = one.play(item), second = two.play(item);
  second.wait_session();
  tell(second.state() == usher::session_state::none, "clear streams on two players need no delegate");
  item.clear = false;
  throws(
      usher::status::no_delegate, [&] { return one.play(item); }, "an encrypted stream needs one");
}

/* An observer of the player gets READY with the licence, TORN_DOWN after the stop, and no other notice. */
void notices() {
  std::atomic<int> ready{0}, ended{0}, others{0};
  usher::context context;
  auto options = server();
  options.slot_wait = 10s;
  auto delegate = context.new_ssp_delegate(options);
  auto player = context.new_player();
  player.add_observer([&](const usher::notice &notice) {
    const bool mine = notice.player == player.handle() && notice.tag == 7 && !notice.summary.empty();
    ready += mine && notice.type == usher::notice_type::ready && !notice.error;
    ended += mine && notice.type == usher::notice_type::torn_down;
    others += notice.type != usher::notice_type::ready && notice.type != usher::notice_type::torn_down;
  });
  auto item = item_of(delegate);
  item.tag = 7;
  auto playback = player.play(item);
  playback.get_license(widevine);
  tell(until([&] { return ready == 1; }), "notice: READY with the licence");
  player.stop();
  tell(until([&] { return ended == 1; }) && others == 0, "notice: TORN_DOWN after the stop, and no other notice");
}

/* With this delay, a call that does not wait for the teardown returns before the slot is free. */
void delay_teardown() { fault("{\"route\":\"teardown\",\"fault\":{\"kind\":\"delay\",\"ms\":100}}"); }

/* Set-up and teardown block the calling thread, also the pumping thread. */
void synchronous(usher::callback_mode callbacks) {
  usher::context_options mode;
  mode.callbacks = callbacks;
  usher::context context(mode);
  if (callbacks == usher::callback_mode::pumped) context.pump();
  auto options = server();
  options.sync_setup_teardown = true;
  auto delegate = context.new_ssp_delegate(options);
  {
    auto player = context.new_player();
    auto playback = player.play(item_of(delegate));
    tell(playback.state() == usher::session_state::active, "sync: play returns with the session");
    delay_teardown();
    player.stop();
    tell(held() == 0, "sync: stop returns when the slot is free");
    playback = player.play(item_of(delegate));
    delay_teardown();
  }
  tell(held() == 0, "sync: the destructors return when the slot is free");
}

void ssp_v2() {
  std::atomic<int> started{0}, without{0}; /* these must outlive the context, whose observer uses them */
  usher::context context;
  context.add_observer([&](const usher::event &event) {
    started += event.type == usher::event_type::session_started;
    without += event.type == usher::event_type::no_session;
  });
  usher::ssp_v2_options options;
  options.ssp = server(v2_url());
  options.teardown_on_close = true;
  options.period_default = usher::off;
  options.token_field = "sessionToken";
  auto delegate = context.new_ssp_v2_delegate(options);
  auto player = context.new_player();
  const int setups = requests("setup");
  {
    auto playback = player.play(item_of(delegate));
    // shows: v2-play-sends-nothing
    tell(playback.state() == usher::session_state::pending && held() == 0,
        "SSP V2: no session before the first licence");
    tell(playback.get_license(widevine).info().period == 1s && held() == 1, "the licence opens it");
    tell(until([&] { return started == 1; }) && requests("setup") == setups,
        "SESSION_STARTED, without a set-up request");
    playback.close();
    playback.wait_closed(5s);
    tell(held() == 0, "closed: torn down");
  }
  auto playback = player.play(item_of(delegate, 0, free_token()));
  tell(playback.get_license(widevine).data().size() > 0 && until([&] { return without == 1; }),
      "a content that needs no session: NO_SESSION");
  throws(
      usher::status::invalid_argument,
      [&] {
        auto bad = options;
        bad.period_field = std::string("a\0b", 3);
        return context.new_ssp_v2_delegate(bad);
      },
      "a field with a NUL");
}

void multi_instance() {
  usher::context context;
  usher::token_map_options map;
  map.tokens_max = 2;
  map.time_to_live = 1h;
  auto delegate = context.new_multi_instance_delegate(server(), map);
  const auto tokens = delegate.tokens();
  tokens.set("one", content_token());
  tokens.set("two", content_token());
  tell(tokens.size() == 2 && tokens.contains("one") && !tokens.contains("three") &&
           tokens.get("two").data().text() == content_token(),
      "a token map");
  throws(
      usher::status::no_token, [&] { return tokens.get("three"); }, "a token that is not in it");
  throws(
      usher::status::invalid_argument, [&] { tokens.set("", "x"); }, "an empty content identifier");
  throws(
      usher::status::invalid_argument, [&] { tokens.set("three", std::string_view("a\0b", 3)); }, "a token with a NUL");
  auto screen = context.new_player(), inset = context.new_player();
  usher::playback_options first, second;
  first.delegate = second.delegate = &delegate;
  first.content_id = "one";
  second.content_id = "two";
  auto main_picture = screen.play(first), preview = inset.play(second);
  main_picture.wait_session();
  preview.wait_session();
  tell(held() == 2, "two streams at once, each with its session");
  throws(
      usher::status::full, [&] { tokens.set("three", content_token()); }, "a third token, while playbacks hold both");
  tell(tokens.remove("one") && !tokens.remove("one"), "removed, once");
  tokens.clear();
  tell(tokens.size() == 0 && preview.get_license(widevine).data().size() == 36,
      "cleared: a playback that runs keeps its token");
  auto other = context.new_ssp_delegate(server());
  throws(
      usher::status::state, [&] { return other.tokens().size(); }, "the map of a delegate without one");
}

void of_a_playback() {
  usher::context context;
  usher::ssp_options options = server();
  options.suspend = usher::suspend_rule::pause;
  options.token_wait = 10s;
  options.hook_timeout = 1s;
  auto delegate = context.new_ssp_delegate(options);
  auto player = context.new_player();
  usher::playback_options item;
  item.delegate = &delegate;
  auto playback = player.play(item);
  throws(
      usher::status::invalid_argument, [&] { playback.set_content_token(std::string_view("a\0b", 3)); },
      "a late token with a NUL");
  playback.set_content_token(content_token());
  playback.wait_session();
  throws(
      usher::status::state, [&] { playback.set_content_token(content_token()); }, "a second token");
  tell(held() == 1, "a token that came late");
  playback.suspend();
  playback.resume();
  context.suspend();
  context.resume();
  context.network_changed();
  const int beats = requests("heartbeat");
  tell(until([&] { return requests("heartbeat") > beats; }), "suspended and resumed: kept alive");
  item.clear = true;
  auto clear = player.play(item);
  clear.wait_session();
  tell(clear.state() == usher::session_state::none && until([] { return held() == 0; }),
      "a clear item: no session, and the earlier one is torn down");
  usher::error_detail limit(usher::status::limit);
  limit.origin = usher::origin::ssm;
  limit.operation = usher::operation::setup;
  limit.service_code = 1007;
  const auto codes = usher::legacy_codes(limit);
  tell(codes.react_native == 6004 && codes.android_what == -1352 && codes.android_extra == 1007 &&
           usher::explain(limit).source[0],
      "codes of other players, and the table of the code");
}

} // namespace

int delegates() {
  default_delegate();
  hooks_as_functions();
  hooks_as_a_class();
  hooks_that_fail();
  ssp_v2();
  ssp_v2_stop_then_teardown();
  notices();
  clear_streams();
  synchronous(usher::callback_mode::threaded);
  synchronous(usher::callback_mode::pumped);
  multi_instance();
  of_a_playback();
  nothing_held("delegates");
  return failed;
}
