/*
 * without_exceptions.cpp - tests usher.hpp with USHER_NO_EXCEPTIONS: every function returns a result<T> instead of
 * throwing an exception.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define USHER_NO_EXCEPTIONS 1
#include "support.h"

#include <stdexcept>
#include <usher/usher.hpp>

namespace {

class host_delegate : public usher::common_delegate {
  void license_url(usher::hook_request request) override {
    const auto none = request.builtin();
    tell(none.status() == usher::status::state, "the delegate has no built-in URL: %s", none.error().message.c_str());
    const auto refused = request.answer("no URL");
    const auto taken = request.answer(enforced_url());
    tell(refused.status() == usher::status::invalid_argument && taken.ok() && taken.value(),
        "a hook's answers are results");
  }
};

void other_delegates(const usher::context &context, const usher::player &player) {
  auto common = context.new_common_delegate({}, std::make_shared<host_delegate>());
  usher::playback_options item;
  item.delegate = &common.value();
  item.content_token = free_token();
  auto playback = player.play(item);
  auto licence = playback.value().get_license({usher::key_system::fairplay, "SPC"});
  tell(licence.ok() && licence.value().data().size() == 36, "a licence by a common delegate");
  const auto size = common.value().tokens().size();
  tell(!size && size.status() == usher::status::state, "a common delegate has no token map");
  tell(common.value().tokens().contains("one").status() == usher::status::state,
      "the other functions of the map fail, too");
  usher::customer_options no_license;
  no_license.heartbeat = [] {};
  tell(!context.new_customer_delegate(no_license).ok(), "a customer delegate without a licence callback");
  tell(
      !context.new_ssp_v2_delegate({}).ok() && !context.new_multi_instance_delegate({}).ok(), "delegates without URLs");
}

void every_step() {
  auto made = usher::context::make();
  tell(made.ok(), "a context is made");
  usher::context context = std::move(made).value();
  auto none = context.new_ssp_delegate({});
  tell(!none && none.status() == usher::status::invalid_argument && !none.error().message.empty(),
      "a delegate without a URL: %s", none.error().message.c_str());
  tell(none.code() == usher::status::invalid_argument, "its error is an error code, too");
  usher::ssp_options server;
  server.license_url = license_url();
  server.ssm_url = ssm_url();
  auto delegate = context.new_ssp_delegate(server);
  tell(delegate.ok() && context.set_delegate(delegate.value()).ok(), "a delegate with URLs is set");
  auto player = context.new_player();
  tell(context.add_observer([](const usher::event &) { throw std::runtime_error("kept"); }).ok(),
      "an observer that throws nevertheless");
  usher::playback_options item;
  item.content_token = content_token();
  auto playback = player.value().play(item);
  auto licence = playback.value().get_license({usher::key_system::widevine, "challenge"});
  tell(licence.ok() && licence.value().data().size() == 36, "a licence");
  fault(R"({"route":"license","fault":{"kind":"status","status":503}})");
  auto failed_one = playback.value().get_license({usher::key_system::widevine, "challenge"});
  tell(
      !failed_one && failed_one.error().http_status == 503, "an error in full: %s", failed_one.error().message.c_str());
  tell(usher::attempt([&] { return playback.value().close(); }).ok(),
      "without exceptions attempt() only makes the call");
  other_delegates(context, player.value());
  auto open = context.close();
  tell(open.ok() && open.value() == 0, "closed");
  tell(context.take_exception() != nullptr, "the exception was kept");
}

} // namespace

int main() {
  every_step();
  nothing_held("without exceptions");
  return failed != 0;
}
