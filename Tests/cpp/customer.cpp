/*
 * customer.cpp - tests customer SSM in usher.hpp. The host answers licences, heartbeats and teardown, at once and
 * later.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wrapper.hpp"

#include <mutex>
#include <stdexcept>

namespace {

void kept_alive_by_heartbeats() {
  std::atomic<int> licences{0}, beats{0}, teardowns{0}, kept_alive{0};
  std::vector<std::thread> threads;
  std::mutex lock;
  witness w;
  {
    usher::context context;
    context.add_observer([&](const usher::event &event) { kept_alive += event.type == usher::event_type::kept_alive; });
    usher::customer_options options;
    options.certificate = "the certificate";
    options.license = [&, w](usher::customer_request request) {
      licences += request.type() == usher::license_type::request &&
                  request.key_system() == usher::key_system::fairplay && request.payload().text() == "SPC" &&
                  request.asset_id().text() == "skd://one" && request.tag() == 7;
      usher::customer_license bad;
      bad.license = "licence";
      bad.heartbeat = -1s;
      throws(
          usher::status::invalid_argument, [&] { return request.answer(bad); }, "a period below zero");
      bad.heartbeat = 0s;
      bad.message = std::string("a\0b", 3);
      throws(
          usher::status::invalid_argument, [&] { return request.answer(bad); }, "a message with a NUL");
      std::lock_guard<std::mutex> hold(lock);
      threads.emplace_back([question = std::move(request)]() mutable {
        usher::customer_license license;
        license.license = "licence";
        license.heartbeat = 300ms;
        license.renewal = usher::renew_type::heartbeat;
        if (!question.answer(license)) tell(false, "the licence is taken");
      });
    };
    options.heartbeat = [&, w](usher::customer_call call) {
      beats++;
      std::lock_guard<std::mutex> hold(lock);
      threads.emplace_back([question = std::move(call)]() mutable {
        if (!question.answer()) tell(false, "the heartbeat's answer is taken");
      });
    };
    options.teardown = [&, w](usher::customer_call call) { teardowns += call.answer(); };
    auto delegate = context.new_customer_delegate(std::move(options));
    auto player = context.new_player();
    usher::playback_options item;
    item.delegate = &delegate;
    item.tag = 7;
    auto playback = player.play(item);
    tell(playback.get_certificate().data().text() == "the certificate", "customer: the certificate given");
    const auto licence = playback.get_license(fairplay);
    tell(licence.data().text() == "licence" && licence.info().period == 300ms &&
             licence.info().renewal == usher::renew_type::heartbeat,
        "the licence, with its period");
    tell(until([&] { return kept_alive >= 2; }) && licences == 1,
        "kept alive by heartbeats answered from other threads: %d", beats.load());
    throws(
        usher::status::state, [&] { delegate.set_hooks(usher::delegate_hooks()); }, "hooks of a customer delegate");
    playback.close();
    playback.wait_closed(5s);
    tell(teardowns == 1, "the library asks for one teardown");
  }
  for (auto &thread : threads) thread.join();
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
}

void kept_alive_by_renewals() {
  std::atomic<int> renewals{0}, renewed{0}, errors{0};
  usher::context context;
  context.add_observer([&](const usher::event &event) {
    errors += event.type == usher::event_type::heartbeat_error && event.error.must_stop;
  });
  usher::customer_options options;
  options.license_timeout = 5s;
  options.license = [&](usher::customer_request request) {
    usher::customer_license license;
    if (request.type() == usher::license_type::renewal && ++renewals > 2) {
      license.service_code = 1006;
      license.http_status = 400;
      license.message = "killed by the operator";
    } else {
      license.license = request.payload();
      license.heartbeat = 200ms;
    }
    request.answer(license);
  };
  auto delegate = context.new_customer_delegate(std::move(options));
  usher::playback_options item;
  item.delegate = &delegate;
  item.payload = [](usher::payload_request request) { request.answer("fresh"); };
  item.renewed = [&](usher::playback_ref, const usher::response_info &info, uint64_t) {
    renewed += info.data.text() == "fresh";
  };
  auto player = context.new_player();
  auto playback = player.play(item);
  tell(playback.get_license(fairplay).data().text() == "SPC", "renewals: the licence");
  tell(until([&] { return renewals >= 3 && errors == 1; }) && renewed == 2,
      "renewed twice, then refused: playback must stop");
}

/* The two callbacks as the SDK's page shows them: license(), and heartbeat() without parameters. */
void as_the_sdk(usher::renew_type renewal) {
  std::atomic<int> licences{0}, renewals{0}, beats{0}, kept_alive{0}, errors{0};
  witness w;
  {
    usher::context context;
    context.add_observer([&](const usher::event &event) {
      kept_alive += event.type == usher::event_type::kept_alive;
      errors += event.type == usher::event_type::heartbeat_error || event.type == usher::event_type::renewal_due;
    });
    usher::customer_options options;
    options.certificate = "the certificate";
    auto delegate = context.new_customer_delegate(options);
    usher::customer_callbacks callbacks;
    callbacks.license = [&, w](usher::customer_request request) {
      (request.type() == usher::license_type::renewal ? renewals : licences) +=
          request.payload().text() == "SPC" && request.key_system() == "94CE86FB-07FF-4F43-ADB8-93D2FA968CA2";
      usher::customer_license license;
      license.license = "ckc";
      license.heartbeat = 200ms;
      license.renewal = renewal;
      request.answer(license);
    };
    callbacks.heartbeat = [&, w] { beats++; };
    delegate.set_callbacks(callbacks);
    context.set_delegate(delegate);
    auto player = context.new_player();
    auto playback = player.play({});
    tell(playback.get_license(fairplay).data().text() == "ckc", "as the SDK: construct, then set the callbacks");
    auto &count = renewal == usher::renew_type::heartbeat ? beats : renewals;
    tell(until([&] { return count >= 3 && kept_alive >= 2; }) && errors == 0 && licences == 1,
        "as the SDK: the pair of callbacks is enough for %s",
        renewal == usher::renew_type::heartbeat ? "heartbeats" : "renewals");
    delegate.clear_callbacks();
    auto got = usher::attempt([&] { return playback.get_license(fairplay); });
    tell(got.status() == usher::status::state, "as the SDK: without callbacks a licence fails with STATE");
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
}

void heartbeat_that_throws() {
  std::atomic<int> errors{0};
  usher::context context;
  context.add_observer([&](const usher::event &event) { errors += event.type == usher::event_type::heartbeat_error; });
  usher::customer_options options;
  options.retry_permille = USHER_OFF;
  options.license = [](usher::customer_request request) {
    usher::customer_license license;
    license.license = "ckc";
    license.heartbeat = 100ms;
    license.renewal = usher::renew_type::heartbeat;
    request.answer(license);
  };
  options.heartbeat = [] { throw std::runtime_error("heartbeat"); };
  auto delegate = context.new_customer_delegate(options);
  usher::playback_options item;
  item.delegate = &delegate;
  auto player = context.new_player();
  auto playback = player.play(item);
  playback.get_license(fairplay);
  tell(until([&] { return errors >= 1; }), "a heartbeat callback without parameters that throws: it failed");
  tell(context.take_exception() != nullptr, "its exception is kept");
}

void refusals() {
  witness w;
  {
    std::atomic<int> what{0};
    usher::context context;
    usher::customer_options options;
    options.license = [&, w](usher::customer_request request) {
      if (what == 0) return request.refuse();
      if (what == 1) throw std::runtime_error("licence");
      usher::customer_license refusal;
      refusal.service_code = 1007;
      refusal.http_status = 403;
      request.answer(refusal);
    };
    auto delegate = context.new_customer_delegate(options);
    auto player = context.new_player();
    usher::playback_options item;
    item.delegate = &delegate;
    for (; what < 3; what++) {
      auto playback = player.play(item);
      auto got = usher::attempt([&] { return playback.get_license(fairplay); });
      if (what < 2)
        tell(got.status() == usher::status::callback, "a licence callback that %s: %s",
            what == 0 ? "refuses" : "throws", usher::status_name(got.status()));
      else
        tell(got.status() == usher::status::limit && got.error().service_code == 1007 && got.error().http_status == 403,
            "a refusal for the limit, with the full error");
    }
    tell(context.take_exception() != nullptr, "the exception is kept");
    throws(
        usher::status::invalid_argument,
        [&, w] {
          usher::customer_options none;
          none.teardown = [w](usher::customer_call) {};
          return context.new_customer_delegate(none);
        },
        "a customer delegate without a licence callback");
  }
  tell(alive == 1, "%d captured objects left", alive.load() - 1);
}

} // namespace

int customer() {
  kept_alive_by_heartbeats();
  kept_alive_by_renewals();
  as_the_sdk(usher::renew_type::heartbeat);
  as_the_sdk(usher::renew_type::standard);
  heartbeat_that_throws();
  refusals();
  return failed;
}
