/*
 * hpp/loader.hpp - part of usher.hpp: the FairPlay resource loader.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_LOADER_HPP
#define USHER_HPP_LOADER_HPP

#include "question.hpp"

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace usher {
inline namespace USHER_HPP_FORM {

/** A question for an SPC, as usher_spc_fn gets it. The object has a copy of the bytes, and the destructor wipes this
    copy. If you refuse the question, the loading request fails with USHER_E_CALLBACK. */
class spc_request : public detail::refusable_question<detail::no_payload> {
public:
  spc_request(const usher_spc_request &request, detail::shared_faults kept)
      : refusable_question(request.completion, request.playback, request.tag, std::move(kept)),
        certificate_(request.certificate, request.certificate_size),
        content_id_(request.content_id, request.content_id_size), url_(request.url, request.url_size) {}

  /** Empty: the loader has none. */
  bytes_view certificate() const noexcept { return certificate_.view(); }
  bytes_view content_id() const noexcept { return content_id_.view(); }
  /** The URL of the loading request, as the host gave it. */
  bytes_view url() const noexcept { return url_.view(); }
  /** Answers with the SPC, 1 byte to 1 MiB. @return true if the library accepts the answer; false if the answer comes
      too late, or if the question already has an answer. */
  outcome<bool> answer(bytes_view spc) {
    return accepted(usher_complete_payload(id_, detail::not_null(spc), spc.size()));
  }

private:
  detail::secret certificate_, content_id_, url_;
};

/** What the library asks an entitlement server for: usher_entitlement. No value means the default. */
struct entitlement {
  std::optional<std::string> url;
  bytes_view content_id;
  usher::token_kind token_kind = usher::token_kind::by_loader;
};

namespace detail {
inline void no_server(usher_completion id) { usher_complete_server(id, nullptr, nullptr); }
} // namespace detail

/** The library's question to the host: which server gets the SPC? See usher_server_fn. The object copies the URL and
    the content identifiers of the question; the destructor wipes these copies. If you refuse the question, the loading
    request fails with USHER_E_CALLBACK. */
class server_request : public detail::refusable_question<detail::no_server> {
public:
  server_request(const usher_server_request &request, detail::shared_faults kept)
      : refusable_question(request.completion, request.playback, request.tag, std::move(kept)),
        url_(request.url, request.url_size), content_id_(request.content_id, request.content_id_size),
        entitlement_id_(request.entitlement_id, request.entitlement_id_size),
        token_kind_(static_cast<usher::token_kind>(request.token_kind)) {
    if (request.entitlement_url) entitlement_url_ = request.entitlement_url;
  }

  /** The URL of the loading request, as the host gave it. */
  bytes_view url() const noexcept { return url_.view(); }
  /** The content identifier for the SPC. Empty: the URL has none. */
  bytes_view content_id() const noexcept { return content_id_.view(); }
  /** The content identifier for an entitlement server. Empty: the URL has none. */
  bytes_view entitlement_id() const noexcept { return entitlement_id_.view(); }
  /** The entitlement server that the library would ask. Empty: the library knows no such server, or the host of its
      URL is not on the allow-list. */
  const std::string &entitlement_url() const noexcept { return entitlement_url_; }
  /** The token that the library would ask for. */
  usher::token_kind token_kind() const noexcept { return token_kind_; }

  /** Answers with the URL to which the SPC goes, and "Name: value" lines separated by '\n'. @return true if the library
      accepts the answer; false if the answer comes too late, or if the question already has an answer. After
      INVALID_ARGUMENT (not a URL, not headers) the question stays open. */
  outcome<bool> answer(std::string_view url, std::string_view headers = {}) {
    detail::c_text text(url), lines(headers);
    return accepted(text.is_valid() && lines.is_valid() ? usher_complete_server(id_, text.c_str(), lines.c_str())
                                                        : USHER_E_INVALID_ARGUMENT);
  }
  /** Calls usher_complete_entitlement(): the library then asks an entitlement server. @return as answer(). */
  outcome<bool> ask_entitlement(const entitlement &wanted = {}) {
    detail::c_text url(wanted.url);
    usher_entitlement raw = USHER_ENTITLEMENT_INIT;
    raw.url = url.c_str();
    raw.content_id = wanted.content_id.data();
    raw.content_id_size = wanted.content_id.size();
    raw.token_kind = static_cast<int32_t>(wanted.token_kind);
    return accepted(url.is_valid() ? usher_complete_entitlement(id_, &raw) : USHER_E_INVALID_ARGUMENT);
  }
  /** Calls usher_complete_builtin(). @return as answer(). */
  outcome<bool> use_builtin() { return accepted(usher_complete_builtin(id_)); }

private:
  detail::secret url_, content_id_, entitlement_id_;
  std::string entitlement_url_;
  usher::token_kind token_kind_;
};

/** Makes an SPC; see spc_request. */
using spc_callback = std::function<void(spc_request request)>;
/** Decides which server gets the SPC; see server_request. */
using server_callback = std::function<void(server_request request)>;

/** The fields of usher_loader_options. No value or zero means the default. */
struct loader_options {
  /** Required. */
  spc_callback spc;
  /** The callback that decides for each URL to which server the SPC goes. Empty: `route` decides. */
  server_callback server;
  /** The callback that supplies the token URL. Empty: the library asks the entitlement server. */
  server_callback token_url;
  std::optional<std::string> scheme;
  usher::route route = usher::route::key_server;
  usher::content_id_rule content_id_rule = usher::content_id_rule::decoded_json;
  std::optional<std::string> license_url, entitlement_url, allowed_hosts, derived_scheme;
  /** The application certificate; empty: none. The library reads these bytes only while it adds the loader. */
  bytes_view certificate;
  std::optional<std::string> certificate_file, certificate_url, extra_headers;
  fps_request_format request_format = fps_request_format::raw;
  usher::spc_urlencode spc_urlencode = usher::spc_urlencode::value;
  std::optional<std::string> spc_field, content_id_field;
  fps_response_format response_format = fps_response_format::automatic;
  std::optional<std::string> response_path;
  bool device_binding = false;
  bool device_registered = false;
  std::optional<std::string> customer_cookie;
  milliseconds spc_timeout{0};
  milliseconds server_timeout{0};
};

/** A resource loader of a context; the destructor unregisters it. */
class loader : public detail::owner<usher_loader, usher_loader_free> {
public:
  using owner::owner;
};

namespace detail {
struct loader_calls {
  spc_callback spc;
  server_callback server, token_url;
};
inline void on_spc(const usher_spc_request *request, void *user_data) {
  auto *it = static_cast<box<loader_calls> *>(user_data);
  it->kept->guard([&] { it->call.spc(spc_request(*request, it->kept)); });
}
inline void on_server(const usher_server_request *request, void *user_data) {
  auto *it = static_cast<box<loader_calls> *>(user_data);
  it->kept->guard([&] { it->call.server(server_request(*request, it->kept)); });
}
inline void on_token_url(const usher_server_request *request, void *user_data) {
  auto *it = static_cast<box<loader_calls> *>(user_data);
  it->kept->guard([&] { it->call.token_url(server_request(*request, it->kept)); });
}

/** A usher_loader_options struct without callbacks, and the texts to which its members point. */
class raw_loader {
public:
  explicit raw_loader(const loader_options &options)
      : scheme_(options.scheme), license_(options.license_url), entitlement_(options.entitlement_url),
        hosts_(options.allowed_hosts), derived_(options.derived_scheme), file_(options.certificate_file),
        certificate_(options.certificate_url), extra_(options.extra_headers), spc_(options.spc_field),
        content_(options.content_id_field), path_(options.response_path), cookie_(options.customer_cookie) {
    raw_.scheme = scheme_.c_str();
    raw_.route = static_cast<int32_t>(options.route);
    raw_.content_id_rule = static_cast<int32_t>(options.content_id_rule);
    raw_.license_url = license_.c_str();
    raw_.entitlement_url = entitlement_.c_str();
    raw_.allowed_hosts = hosts_.c_str();
    raw_.derived_scheme = derived_.c_str();
    raw_.certificate = options.certificate.data();
    raw_.certificate_size = options.certificate.size();
    raw_.certificate_file = file_.c_str();
    raw_.certificate_url = certificate_.c_str();
    raw_.extra_headers = extra_.c_str();
    raw_.request_format = static_cast<int32_t>(options.request_format);
    raw_.spc_urlencode = static_cast<int32_t>(options.spc_urlencode);
    raw_.spc_field = spc_.c_str();
    raw_.content_id_field = content_.c_str();
    raw_.response_format = static_cast<int32_t>(options.response_format);
    raw_.response_path = path_.c_str();
    raw_.device_binding = options.device_binding;
    raw_.device_registered = options.device_registered;
    raw_.customer_cookie = cookie_.c_str();
    raw_.spc_timeout_ms = ms32(options.spc_timeout);
    raw_.server_timeout_ms = ms32(options.server_timeout);
  }
  bool is_valid() const noexcept {
    return detail::are_valid(
        scheme_, license_, entitlement_, hosts_, derived_, file_, certificate_, extra_, spc_, content_, path_, cookie_);
  }
  usher_loader_options *get() noexcept { return &raw_; }

private:
  c_text scheme_, license_, entitlement_, hosts_, derived_, file_, certificate_, extra_, spc_, content_, path_, cookie_;
  usher_loader_options raw_ = USHER_LOADER_OPTIONS_INIT;
};
} // namespace detail

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_LOADER_HPP */
