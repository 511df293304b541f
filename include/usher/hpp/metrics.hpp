/*
 * hpp/metrics.hpp - part of usher.hpp: what a context has done so far. Threads: any. In callbacks: yes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_METRICS_HPP
#define USHER_HPP_METRICS_HPP

#include "content.hpp"

#include <optional>
#include <string>

namespace usher {
inline namespace USHER_HPP_FORM {

/** The fields of usher_metrics, and their text. */
struct metrics : usher_metrics {
  metrics() noexcept : usher_metrics USHER_METRICS_INIT {}

  /** Calls usher_metrics_text(). If `labels` has no value, the samples get no labels. @return the text. */
  outcome<std::string> text(const std::optional<std::string> &labels = std::nullopt) const {
    detail::c_text given(labels);
    if (!detail::are_valid(given)) return detail::done(USHER_E_INVALID_ARGUMENT, std::string());
    return detail::filled<std::string>(
        [&](uint8_t *buffer, size_t *size) { return usher_metrics_text(this, given.c_str(), buffer, size); });
  }
};

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_METRICS_HPP */
