/*
 * hpp/clearkey.hpp - part of usher.hpp: the messages of W3C Clear Key. Threads: any. In callbacks: yes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_CLEARKEY_HPP
#define USHER_HPP_CLEARKEY_HPP

#include "content.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace usher {
inline namespace USHER_HPP_FORM {

/** One key of a Clear Key licence. The destructor overwrites `key`. */
struct clear_key {
  std::array<uint8_t, 16> key_id{}, key{};

  clear_key() = default;
  explicit clear_key(const usher_clearkey_key &raw) {
    std::copy(raw.key_id, raw.key_id + 16, key_id.begin());
    std::copy(raw.key, raw.key + 16, key.begin());
  }
  clear_key(const clear_key &) = default;
  clear_key &operator=(const clear_key &) = default;
  ~clear_key() { detail::wipe(key); }
};

/** Calls usher_clearkey_request(). @return the payload of a licence request for these key ids. */
inline outcome<std::string> clear_key_request(const std::vector<std::array<uint8_t, 16>> &key_ids) {
  const uint8_t *ids = key_ids.empty() ? nullptr : key_ids.front().data();
  return detail::filled<std::string>(
      [&](uint8_t *buffer, size_t *size) { return usher_clearkey_request(ids, key_ids.size(), buffer, size); });
}

/** Calls usher_clearkey_keys(). @return the keys in a Clear Key licence. */
inline outcome<std::vector<clear_key>> clear_keys(bytes_view license) {
  std::vector<usher_clearkey_key> raw(8);
  char message[128] = "";
  int32_t s = USHER_E_TOO_LARGE;
  for (size_t count = raw.size(); s == USHER_E_TOO_LARGE; raw.resize(count)) {
    count = raw.size();
    s = usher_clearkey_keys(license.data(), license.size(), raw.data(), &count, message, sizeof message);
  }
  std::vector<clear_key> keys(raw.begin(), raw.end());
  for (auto &key : raw) detail::wipe(key.key);
  return detail::explained(s, message, std::move(keys));
}

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_CLEARKEY_HPP */
