/** @file
 * base.h - the words every other header uses: export macro, handles, version, completion ids.
 * Include <usher/usher.h>; it says what the library is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_BASE_H
#define USHER_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/** Marks what the library exports. */
#define USHER_API __attribute__((visibility("default")))
#else
#define USHER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** First number of the version of these headers. */
#define USHER_VERSION_MAJOR 0
/** Second number. */
#define USHER_VERSION_MINOR 1
/** Third number. */
#define USHER_VERSION_PATCH 0

/** "none" for a time or a count whose 0 already means "the default". */
#define USHER_OFF UINT32_MAX

/** One independent instance of the library. */
typedef struct usher_context usher_context;
/** How licences are asked for. Shared by any number of playbacks; lives as long as one of them does. */
typedef struct usher_delegate usher_delegate;
/** One screen. */
typedef struct usher_player usher_player;
/** One play of one item. */
typedef struct usher_playback usher_playback;
/** A resource loader registered for a URL scheme. */
typedef struct usher_loader usher_loader;
/** The answer to a blocking request: a licence or a certificate. */
typedef struct usher_response usher_response;

/** Names one question the library asked; answered at most once with the usher_complete_...() that its callback names. Never 0. */
typedef uint64_t usher_completion;

/**
 * Last call for a `user_data`: no callback that was given it runs now or later. Runs exactly once, on a callback thread of the context, or on the
 * calling thread where the function that took the `user_data` failed or the context is already gone.
 *
 * @param user_data  as the function was given it.
 */
typedef void (*usher_destroy_fn)(void *user_data);

/**
 * The library's version, "MAJOR.MINOR.PATCH".
 * @return static storage; never NULL, never freed.
 * Threads: any. In callbacks: yes. Since: 0.1
 */
USHER_API const char *usher_version(void);

#ifdef __cplusplus
}
#endif
#endif /* USHER_BASE_H */
