/*
 * hpp/license.hpp - part of usher.hpp: licence requests and their answers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_LICENSE_HPP
#define USHER_HPP_LICENSE_HPP

#include "support.hpp"

#include <functional>
#include <string>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

class playback_ref;

/** The fields of usher_license_request. */
struct license_request {
  /** key_system::... Required. */
  std::string key_system;
  /** The CDM's message. Required. The library reads these bytes only during the call. */
  bytes_view payload;
  license_type type = license_type::request;
  milliseconds timeout{0};
  /** Identifies the content for which the host requests the licence: the text of the `skd:` URL, or the asset ID (see
      `asset_id` of usher_license_request). Empty: none. The library reads these bytes only during the call. */
  bytes_view asset_id{};
};

/** The fields of usher_response_info. `data` is valid until the response is destroyed; in a callback, until the
    callback returns. */
struct response_info {
  bytes_view data;
  milliseconds period{0};
  renew_type renewal = renew_type::none;
  license_type type = license_type::request;
  error_detail error;

  response_info() = default;
  explicit response_info(const usher_response_info &r)
      : data(r.data, r.data_size), period(detail::from_ms(r.period_ms)), renewal(static_cast<renew_type>(r.renew_type)),
        type(static_cast<license_type>(r.type)), error(r.error) {}
};

/** A licence, certificate, content identifier or token. The destructor wipes it. */
class response : public detail::owner<usher_response, usher_response_free> {
public:
  using owner::owner;
  /** Calls usher_response_get(). The views in the result live as long as this object. */
  outcome<response_info> info() const {
    usher_response_info raw = USHER_RESPONSE_INFO_INIT;
    int32_t s = usher_response_get(handle_, &raw);
    return detail::done(s, s == USHER_OK ? response_info(raw) : response_info());
  }
  /** The bytes for the CDM; no bytes if this object is empty. */
  bytes_view data() const noexcept {
    usher_response_info raw = USHER_RESPONSE_INFO_INIT;
    return usher_response_get(handle_, &raw) == USHER_OK ? bytes_view(raw.data, raw.data_size) : bytes_view();
  }
};

/** Receives the answer of a request, exactly once. `info.error` says whether the answer has data. You may have freed
    the playback already. */
using license_callback = std::function<void(playback_ref playback, const response_info &info, uint64_t tag)>;

namespace detail {
/** Returns the error in the response. If there is no response with this status, returns an error that has only the
    status. */
inline error_detail error_of(int32_t s, usher_response *response) {
  usher_response_info raw = USHER_RESPONSE_INFO_INIT;
  bool has_error = response && usher_response_get(response, &raw) == USHER_OK && raw.error.status == s;
  return has_error ? error_detail(raw.error) : error_detail(static_cast<status>(s));
}
inline outcome<response> answered(int32_t s, usher_response *out, const shared_faults &kept) {
  response it(out, kept);
  return give(s == USHER_OK ? result<response>(std::move(it)) : result<response>(error_of(s, out)));
}
/** The result of a C function that returns the status `s` and a response without data: no value if `s` is USHER_OK,
    otherwise the error in the response. */
inline outcome<void> done(int32_t s, usher_response *out, const shared_faults &kept) {
  response it(out, kept);
  return give(s == USHER_OK ? result<void>() : result<void>(error_of(s, out)));
}
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_LICENSE_HPP */
