/** @file
 * usher.h - licences and concurrent-stream sessions for any video player.
 *
 * WHAT IT IS
 * An operator limits how many streams an account plays at once. Before an encrypted playback libusher asks the operator's Secure Session
 * Manager (SSM) for a session token, sends it with the licence request, keeps the session alive (heartbeats, or enforced licence renewals)
 * and tears it down when playback stops. Your player keeps its demuxer, its CDM and its screen; libusher does the talking and the timing.
 *
 *   context   one independent instance of the library: its I/O thread, connections, timers, observers
 *   delegate  decides how licences are asked for, and what a session is: default, common (with your hooks), SSP with SSM v1, several streams by
 *             a token map, SSP V2, customer SSM
 *   loader    gets FairPlay keys for `skd:` URLs
 *   player    one screen. It plays one playback at a time; starting the next one on it is a zap
 *   playback  one play of one item. Owns at most one SSM session and its licences; closing it is "playback stops"
 *   event     what the library tells you: session started, set-up / heartbeat / teardown error, licence, closed ...
 *
 * A PLAYBACK, IN ORDER
 *   usher_context_new -> usher_context_add_observer -> usher_ssp_delegate_new -> usher_player_new -> usher_player_play
 *   -> (CDM wants a licence) usher_playback_request_license or usher_playback_get_license -> decode, and stop when an event has must_stop
 *   -> usher_playback_close -> usher_playback_free ... usher_context_close -> usher_context_free
 *
 * OWNERSHIP
 * A `usher_x *` is a ticket, never an address: it names an entry in a table with a generation. A stale, foreign, freed or wrong-kind handle
 * answers USHER_E_INVALID_HANDLE from every function, always. What `_new`, `_play` and `_get_...` hand out is yours to free; freeing NULL is a
 * no-op. Any order of frees is safe: a delegate lives on while a playback uses it, and freeing a context closes and frees everything in it. All
 * strings and bytes given to the library are copied before the call returns; pointers given to your callbacks live until the callback returns.
 *
 * THREADS
 * Every function may be called from any thread, and from inside callbacks unless its comment says otherwise. Each context has one I/O thread
 * that never runs your code. Callbacks run on a pool of the context's callback threads (at most `callback_threads_max`): those of
 * one playback in order and one at a time, those of different playbacks in parallel. Or, with USHER_CALLBACKS_PUMPED, only inside
 * usher_context_pump() on the thread of your own loop; a file descriptor says when. A function that would wait, called from inside a callback,
 * answers USHER_E_WOULD_DEADLOCK instead of waiting for itself.
 *
 * ANSWER NOW OR LATER
 * A callback that is asked for something (a token, a payload) gets a one-shot `usher_completion` id. Answer with usher_complete_...() at once or
 * later, from any thread, before the deadline. A second, late or unknown answer gets USHER_E_INVALID_COMPLETION and does nothing.
 *
 * ERRORS
 * Functions return int32_t: USHER_OK (0) or a negative USHER_E_... There is no "last error". What went wrong on the wire travels in the event
 * or response as a usher_error: status, origin (which server answered), operation, HTTP status, the server's own code and message, and
 * whether playback must stop. usher_error_explain() turns it into words for a support desk.
 *
 * OPTION STRUCTS
 * Each starts with `size_t struct_size` and has a ..._INIT. A field left 0 or NULL means the default written beside it; USHER_OFF
 * means "none" where none is possible. The structs only grow; a size smaller than the first release's, or unknown bytes that are
 * not zero, answer USHER_E_INVALID_ARGUMENT.
 *
 * WHAT IT DOES TO YOUR PROCESS
 * Signals: none installed, none raised; its threads block them all. stdio: writes nothing (logs go to your callback). Locale, environment, working
 * directory, umask: untouched. fork: in the child every call answers USHER_E_FORKED. dlclose: safe, the library stays mapped.
 *
 * SECRETS
 * Tokens, licences and keys never appear in events, log lines or error messages.
 *
 * VERSIONS
 * USHER_VERSION_* is the header's version, usher_version() the library's. Names and struct fields are only ever added within a major version.
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
#include "loader.h"
#include "testing.h"
#include "api.h"

#endif /* USHER_USHER_H */
