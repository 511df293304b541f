/*
 * contexts.cpp - options of usher::context_options whose effect is visible only in requests, connections or refusals.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "wrapper.hpp"

#include <poll.h>

namespace {

/* A listening socket on loopback that never answers. */
class silent_server {
public:
  silent_server() {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd_, reinterpret_cast<sockaddr *>(&address), size);
    listen(fd_, 8);
    getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &size);
    url_ = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  }
  ~silent_server() { close(fd_); }
  silent_server(const silent_server &) = delete;
  silent_server &operator=(const silent_server &) = delete;
  const std::string &url() const { return url_; }
  /** @return the first bytes of the next client: its TLS ClientHello; empty if no client comes in time. */
  std::string first_bytes() const {
    std::string bytes(4096, '\0');
    if (!is_readable(fd_)) return "";
    const int client = accept(fd_, nullptr, nullptr);
    const ssize_t size = is_readable(client) ? read(client, bytes.data(), bytes.size()) : 0;
    close(client);
    bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return bytes;
  }

private:
  static bool is_readable(int fd) {
    pollfd wanted{fd, POLLIN, 0};
    return poll(&wanted, 1, 5000 * patience()) == 1;
  }
  int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string url_;
};

/* @return whether a context with this option offers HTTP/2 to an https server (ALPN, RFC 7301). */
bool offers_http2(bool http2) {
  const silent_server server;
  usher::context_options options;
  options.http2 = http2;
  options.proxy = "";
  usher::context context(options);
  usher::ssp_options urls;
  urls.license_url = server.url();
  urls.ssm_url = server.url();
  auto delegate = context.new_ssp_delegate(urls);
  auto player = context.new_player();
  auto playback = player.play(item_of(delegate));
  const std::string hello = server.first_bytes();
  playback.close(usher::close_mode::leave);
  tell(hello.find("\bhttp/1.1") != std::string::npos, "the ClientHello has the names of protocols");
  return hello.find(std::string("\2h2\bhttp/1.1")) != std::string::npos;
}

void http2() {
  tell(offers_http2(true), "with http2 = true, the context offers HTTP/2");
  tell(!offers_http2(false), "without http2, the context does not offer HTTP/2");
}

/* @return how many of two requests to the licence server wait in the queue while the server answers neither. */
uint32_t queued_of_two(uint32_t connections_max) {
  usher::context_options options;
  options.connections_max = connections_max;
  usher::context context(options);
  auto delegate = context.new_ssp_delegate(server());
  auto player = context.new_player();
  std::atomic<int> licences{0};
  fault(R"({"route":"license","fault":{"kind":"stall"},"times":2})");
  auto playback = player.play(item_of(delegate, 0, free_token()));
  for (int count = 0; count < 2; count++)
    playback.request_license(
        widevine, [&](usher::playback_ref, const usher::response_info &, uint64_t) { licences++; });
  until([&] { return context.pending().transfers + context.pending().queued == 2; });
  const uint32_t queued = context.pending().queued;
  until([&] { return release_held(), licences == 2; });
  tell(licences == 2, "both requests get their replies");
  playback.close();
  fault(R"({"clear":true})");
  return queued;
}

void connections_max() {
  tell(queued_of_two(1) == 1, "with connections_max = 1, one of two requests waits in the queue");
  tell(queued_of_two(0) == 0, "without connections_max, no request waits in the queue");
}

/* Tests/cpp/run makes a client certificate and its key, which has the pass phrase "open sesame". */
void client_key_passphrase() {
  usher::context_options options;
  options.client_certificate_file = setting("USHER_TEST_CLIENT_CERTIFICATE");
  options.client_key_file = setting("USHER_TEST_CLIENT_KEY");
  throws(
      usher::status::tls, [&] { usher::context context(options); }, "a client key without its pass phrase");
  options.client_key_passphrase = "open sesame";
  throws(
      usher::status::ok, [&] { usher::context context(options); }, "a client key with its pass phrase");
}

/* The process has used OpenSSL for an earlier context, so the library refuses this option. */
void wipe_freed_memory() {
  usher::context_options options;
  options.wipe_freed_memory = true;
  throws(
      usher::status::state, [&] { usher::context context(options); }, "wipe_freed_memory in a later context");
}

} // namespace

int contexts() {
  http2();
  connections_max();
  client_key_passphrase();
  wipe_freed_memory();
  nothing_held("contexts");
  return failed;
}
