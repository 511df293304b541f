/** @file
 * base.h - names that every other header uses: export macro, handles, version, completion ids. Include <usher/usher.h>;
 * it explains what the library is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_BASE_H
#define USHER_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/** Marks an exported function. */
#define USHER_API __attribute__((visibility("default")))
#else
#define USHER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Major version of these headers. */
#define USHER_VERSION_MAJOR 0
/** Minor version of these headers. */
#define USHER_VERSION_MINOR 1
/** Patch version of these headers. */
#define USHER_VERSION_PATCH 0

/** The value for "none" in options for which 0 means "the default": no time-out, no retry, no limit. */
#define USHER_OFF UINT32_MAX

/** One independent instance of the library. */
typedef struct usher_context usher_context;
/** A licence delegate: decides how the library asks for licences. It may serve any number of playbacks, and exists at
    least as long as these playbacks. */
typedef struct usher_delegate usher_delegate;
/** One screen of the host. It plays one playback at a time. */
typedef struct usher_player usher_player;
/** One item that plays on a player: its session and its licences. */
typedef struct usher_playback usher_playback;
/** A resource loader registered for a URL scheme. */
typedef struct usher_loader usher_loader;
/** The answer to a blocking request: a licence, a certificate, a content identifier or a token. */
typedef struct usher_response usher_response;

/** The id of a question that the library asked with a callback. Answer it at most once, with the usher_complete_...()
    function that the callback's comment names. Never 0. */
typedef uint64_t usher_completion;

/**
 * The last call with a `user_data`: no callback with this `user_data` is running or will run again. The library makes
 * this call exactly once; release `user_data` in it.
 * Threads: a callback thread of the context, or the thread that ends the context. If the function that took the
 * `user_data` fails: the calling thread, before the function returns. May call: every function whose comment says "In
 * callbacks: yes". Last call: this call itself. usher_context_free() waits for this call, with two exceptions. Inside a
 * callback, usher_context_free() does not wait at all. If the function that took the `user_data` fails on another
 * thread, usher_context_free() does not wait for that thread.
 *
 * @param user_data  as the host passed it.
 */
typedef void (*usher_destroy_fn)(void *user_data);

/**
 * Returns the version of the library, "MAJOR.MINOR.PATCH".
 * @return static storage; never NULL, never freed.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_version(void);

#ifdef __cplusplus
}
#endif
#endif /* USHER_BASE_H */
