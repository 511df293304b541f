/** @file
 * usher.h - licences and concurrent-stream sessions for any video player.
 *
 * WHAT IT IS
 * An operator limits how many streams an account plays at once. The operator's Secure Session Manager (SSM) enforces
 * this limit: each encrypted playback needs a session at the SSM. The licence for the playback comes from a licence
 * server: SSP (the SDKs' name for the licence service that works with an SSM) or another server. Before a playback,
 * libusher asks the SSM for a session token. It sends the token with the licence request, keeps the session alive with
 * heartbeats (or with licence renewals, if the operator enforces renewals), and tears the session down when playback
 * stops. Your player keeps its demuxer, its content decryption module (CDM) and its screen; libusher sends the requests
 * at the right times.
 *
 *   context   one independent instance of the library: its I/O thread, connections, timers and observers
 *   delegate  says how to ask for licences: default, common (hooks), SSP (SSM v1), SSP V2, multi-instance, customer SSM
 *   loader    gets FairPlay keys for `skd:` URLs
 *   player    one screen. It plays one playback at a time. Starting the next playback while another plays is a zap
 *   playback  one item that plays. It has at most one SSM session, and the item's licences. Close it when the item ends
 *   event     what the library reports to you: session started, set-up error, heartbeat error, licence, closed ...
 *
 * A PLAYBACK, IN ORDER
 *   usher_context_new -> usher_context_add_observer -> usher_ssp_delegate_new
 *   -> usher_context_set_delegate (or `delegate` in the playback's options) -> usher_player_new -> usher_player_play
 *   -> (the CDM wants a licence) usher_playback_request_license or usher_playback_get_license
 *   -> decode; stop when an event has must_stop -> usher_playback_close -> usher_playback_free
 *   ... usher_context_close -> usher_context_free
 *
 * OWNERSHIP
 * A `usher_x *` is a handle, never an address: it holds an index into a table and a generation number. Every function
 * returns USHER_E_INVALID_HANDLE for a handle that you have freed, whose context you have freed, that is of another
 * kind, or that the library never returned. Free every handle that a function returns through its parameter `out`, in
 * any order; freeing NULL does nothing. If you free a delegate while a playback uses it, the library keeps the
 * delegate until that playback has ended. Freeing a context closes and frees everything in it. The library copies all
 * strings and bytes that you pass in before the call returns. Memory that a callback receives by pointer is valid until
 * the callback returns.
 *
 * THREADS
 * You may call every function from any thread, and inside callbacks unless its comment says otherwise. Each context has
 * one I/O thread, which never runs your code, and a watchdog thread, which drops a connection that keeps the I/O thread
 * busy. Callbacks run on the context's callback threads, at most `callback_threads_max`: callbacks of one playback in
 * order and one at a time, those of different playbacks in parallel. With USHER_CALLBACKS_PUMPED there are no callback
 * threads: callbacks run only inside usher_context_pump() (and inside a usher_player_play() that waits), on the thread
 * of your own loop. A file descriptor is readable while callbacks are due. Inside a callback, a function that waits
 * returns USHER_E_WOULD_DEADLOCK, since it may wait for something that happens only after this callback. The comment of
 * such a function has the word "Waits:". Many of these functions return this error also outside callbacks, on the
 * thread that pumps; their comments have "Pumping thread: no".
 *
 * ANSWERS OF CALLBACKS
 * A callback that must answer (a token, a payload) receives a `usher_completion` id. Answer it once with the
 * usher_complete_...() function that the callback's comment names: inside the callback or later, from any thread,
 * before the deadline and before you close the playback. For a second answer, a late answer or an unknown id, the
 * function does nothing and returns USHER_E_INVALID_COMPLETION.
 *
 * ERRORS
 * Functions return int32_t: USHER_OK (0) or a negative USHER_E_... The library has no function that returns a "last
 * error". Every function that takes a handle may return USHER_E_INVALID_HANDLE. Every function returns
 * USHER_E_INVALID_ARGUMENT if an argument is not as its comment requires. For an error of a server or of the network,
 * the event or response has a usher_error. It has the status, the origin (which server answered), the operation, the
 * HTTP status, the server's own code and message, and whether playback must stop. usher_error_explain() explains a
 * usher_error in words for a support desk. If the system has no memory for the library itself, no function returns an
 * error: the process ends, by SIGILL or SIGABRT.
 *
 * OPTION STRUCTS
 * Each begins with `size_t struct_size` and has a ..._INIT macro. If a field is 0 or NULL, the library uses the default
 * that the field's comment states. USHER_OFF means "none" in the fields that allow it. Later releases add fields at
 * the end; a field that the host's struct does not have is 0. If `struct_size` is smaller than in the first release, or
 * if the struct has bytes other than 0 after the last field that the library knows, the function returns
 * USHER_E_INVALID_ARGUMENT. A function that fills a struct writes at most `struct_size` bytes, and sets `struct_size`
 * to the number of bytes that it wrote.
 *
 * WHAT IT DOES TO YOUR PROCESS
 * Signals: the library installs no signal handler and raises no signal; its threads block all signals and have names
 * that begin with "usher-". stdio: the library writes nothing; log lines go to your callback. It does not change
 * locale, environment, working directory or umask. fork: if the parent called usher_context_new() before, every
 * function that returns a status returns USHER_E_FORKED in the child. dlclose: you may call it; the library stays in
 * memory.
 *
 * SECRETS
 * Tokens, licences and keys never appear in events, log lines or error messages.
 *
 * VERSIONS
 * USHER_VERSION_* is the version of this header; usher_version() returns the library's. Within a major version a
 * release may add names and struct fields, but never changes or removes them. Before 1.0 there is one exception: a
 * minor release (0.2) may change or remove names, and docs/api-changes.md then says what a host must change. The SONAME
 * has the major version, so it is libusher.so.0 for all releases before 1.0. docs/abi.md has the details.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_USHER_H
#define USHER_USHER_H

#include "base.h"
#include "error.h"
#include "event.h"
#include "context.h"
#include "delegate.h"
#include "hooks.h"
#include "tokens.h"
#include "customer.h"
#include "player.h"
#include "playback.h"
#include "license.h"
#include "content.h"
#include "clearkey.h"
#include "loader.h"
#include "metrics.h"
#include "testing.h"
#include "api.h"

#endif /* USHER_USHER_H */
