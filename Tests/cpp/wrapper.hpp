/*
 * wrapper.hpp - parts that the tests of usher.hpp share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_WRAPPER_HPP
#define USHER_TEST_WRAPPER_HPP

#include "support.h"

#include <atomic>
#include <string>
#include <thread>
#include <usher/usher.hpp>
#include <vector>

using namespace std::chrono_literals;

/* Each function runs the tests in the file of its name. @return how many of their claims failed. */
int delegates();
int customer();
int contents();
int contexts();

/* The callbacks capture copies of a `witness`. `alive`: how many witnesses exist now, with copies; `ever`: how many the
   tests have made, without copies. */
inline std::atomic<int> alive{0}, ever{0};
struct witness {
  witness() { alive++, ever++; }
  witness(const witness &) { alive++; }
  ~witness() { alive--; }
};

namespace {

template <class F>
void throws(usher::status wanted, F &&f, const char *what) {
  auto got = usher::attempt(std::forward<F>(f));
  tell(got.status() == wanted, "%s: %s", what, usher::status_name(got.status()));
}
template <class Condition>
bool until(Condition &&condition, int ms = 5000) {
  for (ms *= patience(); ms > 0 && !condition(); ms -= 2) std::this_thread::sleep_for(2ms);
  return condition();
}
MAY_BE_UNUSED usher::ssp_options server(const char *url = license_url()) {
  usher::ssp_options options;
  options.license_url = url;
  options.ssm_url = ssm_url();
  options.certificate_url = certificate_url();
  return options;
}
MAY_BE_UNUSED usher::playback_options item_of(
    const usher::delegate &delegate, uint64_t tag = 0, const char *token = content_token()) {
  usher::playback_options item;
  item.delegate = &delegate;
  item.content_token = token;
  item.tag = tag;
  return item;
}
MAY_BE_UNUSED const usher::license_request widevine{usher::key_system::widevine, "challenge"},
    fairplay{usher::key_system::fairplay, "SPC", usher::license_type::request, 0ms, "skd://one"};

} // namespace

#endif
