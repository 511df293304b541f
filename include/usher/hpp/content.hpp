/*
 * hpp/content.hpp - part of usher.hpp: reads protection data out of content. Threads: any. In callbacks: yes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_HPP_CONTENT_HPP
#define USHER_HPP_CONTENT_HPP

#include "support.hpp"

#include <array>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace usher {
inline namespace USHER_HPP_FORM {

/** A copy of a usher_protection; you may keep it. If a member is empty, the content does not have this value. */
struct protection {
  /** key_system::... */
  std::string key_system;
  std::vector<uint8_t> system_id;
  std::vector<std::array<uint8_t, 16>> key_ids;
  std::vector<uint8_t> content_id, init_data;
  std::string uri;
  std::vector<uint8_t> iv;
  /** "cenc", "cbcs", ... */
  std::string scheme;
  uint32_t crypt_blocks = 0, skip_blocks = 0;
  bool is_session = false;
  usher::part part = usher::part::element;
  uint32_t track_id = 0;

  protection() = default;
  explicit protection(const usher_protection &p)
      : key_system(p.key_system ? p.key_system : ""), system_id(p.system_id, p.system_id + (p.system_id ? 16 : 0)),
        content_id(p.content_id, p.content_id + p.content_id_size),
        init_data(p.init_data, p.init_data + p.init_data_size), uri(bytes_view(p.uri, p.uri_size).text()),
        iv(p.iv, p.iv + p.iv_size), scheme(p.scheme ? p.scheme : ""), crypt_blocks(p.crypt_blocks),
        skip_blocks(p.skip_blocks), is_session(p.is_session != 0), part(static_cast<usher::part>(p.part)),
        track_id(p.track_id) {
    key_ids.resize(p.key_id_count);
    for (size_t i = 0; i < p.key_id_count * 16; i++) key_ids[i / 16][i % 16] = p.key_ids[i];
  }
};

namespace detail {
struct protections {
  std::vector<protection> found;
  faults kept;
};
inline void on_protection(const usher_protection *p, void *user_data) {
  auto *it = static_cast<protections *>(user_data);
  it->kept.guard([&] { it->found.emplace_back(*p); });
}
inline outcome<std::vector<protection>> read(
    int32_t (*reader)(const uint8_t *, size_t, usher_protection_fn, void *, size_t *), bytes_view bytes) {
  protections them;
  int32_t s = reader(bytes.data(), bytes.size(), on_protection, &them, nullptr);
#if defined(__cpp_exceptions)
  if (std::exception_ptr thrown = them.kept.take()) std::rethrow_exception(thrown); // out of memory
#endif
  return done(s, std::move(them.found));
}
/** Returns `value` if the status `s` is USHER_OK; otherwise an error with this status and with `message`, if it is not
    empty. */
template <class T>
outcome<T> explained(int32_t s, const char *message, T value) {
  if (s == USHER_OK) return give(result<T>(std::move(value)));
  error_detail detail(static_cast<status>(s));
  if (*message) detail.message = message;
  return give(result<T>(std::move(detail)));
}
/** Calls a C function twice: for the length, then for the bytes. */
template <class Bytes, class F>
outcome<Bytes> filled(F &&f) {
  Bytes bytes;
  size_t size = 0;
  int32_t s = f(nullptr, &size);
  if (s == USHER_E_TOO_LARGE) {
    bytes.resize(size);
    s = f(reinterpret_cast<uint8_t *>(bytes.data()), &size);
  }
  return done(s, std::move(bytes));
}
} // namespace detail

/** Calls usher_read_pssh(). `bytes` has the boxes as they are, or as base64 text. @return each pssh box. */
inline outcome<std::vector<protection>> read_pssh(bytes_view bytes) { return detail::read(usher_read_pssh, bytes); }
/** Calls usher_read_tenc(). `bytes` has tenc boxes alone, or an init segment with tenc boxes. @return each tenc box. */
inline outcome<std::vector<protection>> read_tenc(bytes_view bytes) { return detail::read(usher_read_tenc, bytes); }
/** A copy of what usher_read_mp4() reports: how an MP4 file is protected. You may keep the struct. */
struct file_protection {
  /** The whole file: all key ids, the scheme of the first encrypted track, all pssh boxes as init data. If there are
      neither key ids nor a scheme, the file is not encrypted. */
  protection whole;
  /** The encrypted tracks. If a track is encrypted by default, its first key id is the default one. */
  std::vector<protection> tracks;
  /** The pssh boxes, without duplicates. */
  std::vector<protection> pssh;
};

/** Reads at most `size` bytes of a file from `offset`. @return how many bytes it read, 0 only at and beyond the end of
    the file; a negative number if it failed. It may throw: read_mp4() throws the same exception. */
using file_reader = std::function<int64_t(uint64_t offset, uint8_t *buffer, size_t size)>;

namespace detail {
struct mp4_reading {
  const file_reader &read;
  file_protection found;
  faults kept;
};
inline int64_t on_read(uint64_t offset, uint8_t *buffer, size_t size, void *user_data) {
  auto *it = static_cast<mp4_reading *>(user_data);
  int64_t count = -1;
  it->kept.guard([&] { count = it->read(offset, buffer, size); });
  return count;
}
inline void on_part(const usher_protection *p, void *user_data) {
  auto *it = static_cast<mp4_reading *>(user_data);
  it->kept.guard([&] {
    if (p->part == USHER_PART_FILE) it->found.whole = protection(*p);
    else (p->part == USHER_PART_TRACK ? it->found.tracks : it->found.pssh).emplace_back(*p);
  });
}
} // namespace detail

/** Calls usher_read_mp4(). If a box is malformed, the message of the error has the path of the box. @return how the
    file is protected. */
inline outcome<file_protection> read_mp4(const file_reader &read) {
  detail::mp4_reading it{read, {}, {}};
  char message[512] = "";
  int32_t s = usher_read_mp4(read ? detail::on_read : nullptr, detail::on_part, &it, message, sizeof message);
#if defined(__cpp_exceptions)
  if (std::exception_ptr thrown = it.kept.take()) std::rethrow_exception(thrown);
#endif
  return detail::explained(s, message, std::move(it.found));
}
/** Calls usher_read_hls_keys(). @return each EXT-X-KEY and EXT-X-SESSION-KEY line. */
inline outcome<std::vector<protection>> read_hls_keys(bytes_view playlist) {
  return detail::read(usher_read_hls_keys, playlist);
}
/** Calls usher_read_dash_protection(). @return each ContentProtection element. */
inline outcome<std::vector<protection>> read_dash_protection(bytes_view manifest) {
  return detail::read(usher_read_dash_protection, manifest);
}

/** Calls usher_content_id(). */
inline outcome<std::vector<uint8_t>> content_id(bytes_view url, content_id_rule rule = content_id_rule::decoded_json) {
  return detail::filled<std::vector<uint8_t>>([&](uint8_t *buffer, size_t *size) {
    return usher_content_id(url.data(), url.size(), static_cast<int32_t>(rule), buffer, size);
  });
}
/** Calls usher_rewrite_hls_keys(). If `scheme` has no value, it is "skd". @return the rewritten playlist. */
inline outcome<std::string> rewrite_hls_keys(
    bytes_view playlist, std::string_view uri_prefix, const std::optional<std::string> &scheme = std::nullopt) {
  detail::c_text prefix(uri_prefix), of(scheme);
  if (!detail::are_valid(prefix, of)) return detail::done(USHER_E_INVALID_ARGUMENT, std::string());
  return detail::filled<std::string>([&](uint8_t *buffer, size_t *size) {
    return usher_rewrite_hls_keys(playlist.data(), playlist.size(), of.c_str(), prefix.c_str(), buffer, size);
  });
}

} // inline namespace
} // namespace usher

#endif /* USHER_HPP_CONTENT_HPP */
