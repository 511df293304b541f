/*
 * hpp/options.hpp - part of usher.hpp: options of default, common, SSP, SSP V2 and multi-instance delegates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_OPTIONS_HPP
#define USHER_HPP_OPTIONS_HPP

#include "support.hpp"

#include <optional>
#include <string>

namespace usher {
inline namespace USHER_HPP_FORM {

/** The fields of usher_ssp_options. No value or zero means the default. */
struct ssp_options {
  /** Required. */
  std::string license_url;
  std::optional<std::string> certificate_url, ssm_url;
  bool sync_setup_teardown = false;
  usher::append_version ssm_append_version = usher::append_version::automatic;
  std::optional<std::string> ssm_api_version;
  std::optional<std::string> setup_url, heartbeat_url, teardown_url, renewal_url;
  std::optional<std::string> token_header, extra_headers, setup_body, keep_alive_body;
  milliseconds setup_timeout{0}, teardown_timeout{0}, token_timeout{0}, payload_timeout{0};
  usher::heartbeat_missing heartbeat_missing = usher::heartbeat_missing::error;
  usher::heartbeat_start heartbeat_start = usher::heartbeat_start::setup;
  bool lenient_numbers = false;
  milliseconds period_min{0}, period_max{0};
  bool period_updates = false;
  /** USHER_OFF: none. */
  uint32_t jitter_permille = 0, retry_permille = 0, keep_alive_failures_max = 0;
  usher::keep_alive keep_alive = usher::keep_alive::automatic;
  resetup resetup_on_extra_license = resetup::callback_only;
  usher::wire_format wire_format = usher::wire_format::automatic;
  /** USHER_OFF: none. */
  uint32_t teardown_retries = 0;
  milliseconds token_wait{0}, hook_timeout{0};
  suspend_rule suspend = suspend_rule::keep;
  milliseconds keep_alive_timeout{0};
  /** How long the library waits for a slot. Zero: it does not wait. */
  milliseconds slot_wait{0};
  bool zap_without_waiting = false;
};

/** The fields of usher_ssp_v2_options. No value or zero means the default. */
struct ssp_v2_options {
  ssp_options ssp;
  bool teardown_on_close = false, leave_on_zap = false;
  std::optional<std::string> token_field, period_field, enforced_field, token_reply_header;
  /** The period of a session whose licence reply has no period. With usher::off, such a session has no keep-alives. */
  milliseconds period_default{0};
};

/** The fields of usher_default_options. No value or zero means the default. */
struct default_options {
  /** URL of the licence server. Required, except for a common delegate with a licence URL hook. */
  std::optional<std::string> license_url;
  std::optional<std::string> certificate_url, extra_headers, token_header;
  usher::wire_format wire_format = usher::wire_format::automatic;
  milliseconds hook_timeout{0};
};

/** The fields of usher_token_map_options. Zero means that there is no limit and no expiry. */
struct token_map_options {
  size_t tokens_max = 0;
  milliseconds time_to_live{0};
};

namespace detail {
/** A usher_ssp_options struct, and the texts to which its members point. */
class raw_ssp {
public:
  explicit raw_ssp(const ssp_options &options)
      : license_(options.license_url), certificate_(options.certificate_url), ssm_(options.ssm_url),
        version_(options.ssm_api_version), setup_(options.setup_url), heartbeat_(options.heartbeat_url),
        teardown_(options.teardown_url), renewal_(options.renewal_url), header_(options.token_header),
        extra_(options.extra_headers), setup_body_(options.setup_body), keep_alive_body_(options.keep_alive_body) {
    raw_.license_url = license_.c_str();
    raw_.certificate_url = certificate_.c_str();
    raw_.ssm_url = ssm_.c_str();
    raw_.sync_setup_teardown = options.sync_setup_teardown;
    raw_.ssm_append_version = static_cast<int32_t>(options.ssm_append_version);
    raw_.ssm_api_version = version_.c_str();
    raw_.setup_url = setup_.c_str();
    raw_.heartbeat_url = heartbeat_.c_str();
    raw_.teardown_url = teardown_.c_str();
    raw_.renewal_url = renewal_.c_str();
    raw_.token_header = header_.c_str();
    raw_.extra_headers = extra_.c_str();
    raw_.setup_body = setup_body_.c_str();
    raw_.keep_alive_body = keep_alive_body_.c_str();
    raw_.setup_timeout_ms = ms32(options.setup_timeout);
    raw_.teardown_timeout_ms = ms32(options.teardown_timeout);
    raw_.token_timeout_ms = ms32(options.token_timeout);
    raw_.payload_timeout_ms = ms32(options.payload_timeout);
    raw_.heartbeat_missing = static_cast<int32_t>(options.heartbeat_missing);
    raw_.heartbeat_start = static_cast<int32_t>(options.heartbeat_start);
    raw_.lenient_numbers = options.lenient_numbers;
    raw_.period_min_ms = ms32(options.period_min);
    raw_.period_max_ms = ms32(options.period_max);
    raw_.period_updates = options.period_updates;
    raw_.jitter_permille = options.jitter_permille;
    raw_.retry_permille = options.retry_permille;
    raw_.keep_alive_failures_max = options.keep_alive_failures_max;
    raw_.keep_alive = static_cast<int32_t>(options.keep_alive);
    raw_.resetup_on_extra_license = static_cast<int32_t>(options.resetup_on_extra_license);
    raw_.wire_format = static_cast<int32_t>(options.wire_format);
    raw_.teardown_retries = options.teardown_retries;
    raw_.token_wait_ms = ms32(options.token_wait);
    raw_.hook_timeout_ms = ms32(options.hook_timeout);
    raw_.suspend = static_cast<int32_t>(options.suspend);
    raw_.keep_alive_timeout_ms = ms32(options.keep_alive_timeout);
    raw_.slot_wait_ms = ms32(options.slot_wait);
    raw_.zap_without_waiting = options.zap_without_waiting;
  }
  bool is_valid() const noexcept {
    return detail::are_valid(license_, certificate_, ssm_, version_, setup_, heartbeat_, teardown_, renewal_, header_,
        extra_, setup_body_, keep_alive_body_);
  }
  const usher_ssp_options *get() const noexcept { return &raw_; }

private:
  c_text license_, certificate_, ssm_, version_, setup_, heartbeat_, teardown_, renewal_, header_, extra_, setup_body_,
      keep_alive_body_;
  usher_ssp_options raw_ = USHER_SSP_OPTIONS_INIT;
};

/** A usher_ssp_v2_options struct, and everything to which its members point. */
class raw_ssp_v2 {
public:
  explicit raw_ssp_v2(const ssp_v2_options &options)
      : ssp_(options.ssp), token_(options.token_field), period_(options.period_field),
        enforced_(options.enforced_field), header_(options.token_reply_header) {
    raw_.ssp = ssp_.get();
    raw_.teardown_on_close = options.teardown_on_close;
    raw_.leave_on_zap = options.leave_on_zap;
    raw_.token_field = token_.c_str();
    raw_.period_field = period_.c_str();
    raw_.enforced_field = enforced_.c_str();
    raw_.token_reply_header = header_.c_str();
    raw_.period_default_ms = ms32(options.period_default);
  }
  bool is_valid() const noexcept { return detail::are_valid(ssp_, token_, period_, enforced_, header_); }
  const usher_ssp_v2_options *get() const noexcept { return &raw_; }

private:
  raw_ssp ssp_;
  c_text token_, period_, enforced_, header_;
  usher_ssp_v2_options raw_ = USHER_SSP_V2_OPTIONS_INIT;
};

/** A usher_default_options struct, and the texts to which its members point. */
class raw_default {
public:
  explicit raw_default(const default_options &options)
      : license_(options.license_url), certificate_(options.certificate_url), extra_(options.extra_headers),
        header_(options.token_header) {
    raw_.license_url = license_.c_str();
    raw_.certificate_url = certificate_.c_str();
    raw_.extra_headers = extra_.c_str();
    raw_.token_header = header_.c_str();
    raw_.wire_format = static_cast<int32_t>(options.wire_format);
    raw_.hook_timeout_ms = ms32(options.hook_timeout);
  }
  bool is_valid() const noexcept { return detail::are_valid(license_, certificate_, extra_, header_); }
  const usher_default_options *get() const noexcept { return &raw_; }

private:
  c_text license_, certificate_, extra_, header_;
  usher_default_options raw_ = USHER_DEFAULT_OPTIONS_INIT;
};
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_OPTIONS_HPP */
