/*
 * usher.hpp - the C API for C++17: the same functions, with owners, std::function, std::chrono and exceptions. Header
 * only; link with libusher as C does.
 *
 *   usher::context context;
 *   auto delegate = context.new_ssp_delegate(options);
 *   auto player = context.new_player();
 *   auto playback = player.play(item);
 *   auto licence = playback.get_license(request);          // waits; throws usher::error
 *
 * The parts are in hpp/; you may include each part alone.
 *
 * Read <usher/usher.h> for what the functions do. This file describes only the differences.
 *
 * OWNERSHIP
 * context, delegate, loader, player, playback and response are move-only owners; their destructors free the C handle.
 * Any order of destruction is safe. ~context waits as usher_context_free() does. playback_ref and player_ref own
 * nothing; if their playback or player is freed, their functions fail with USHER_E_INVALID_HANDLE. The library copies
 * strings and bytes before a call returns, and the wrapper wipes its own copies of tokens.
 *
 * CALLBACKS
 * Callbacks are std::function objects. The library destroys each function object, with everything that it captured,
 * exactly once: after its last call, or when the call that took it fails. Threads and order are those of the C
 * callbacks. References and views that a callback receives are valid until the callback returns. An exception that
 * leaves a callback never crosses C: the context stores the first one. context::pump() throws it again, and
 * context::take_exception() returns it; the wrapper refuses a question that the callback has not answered.
 *
 * ANSWER LATER
 * token_request, payload_request, hook_request, headers_request, customer_request, customer_call, spc_request and
 * server_request are move-only; each answers one question, from any thread. If you destroy such an object without an
 * answer, it refuses the question. The data of the question lives as long as the object.
 *
 * HOOKS
 * Hooks are functions (delegate_hooks), or the virtual functions of a class derived from common_delegate.
 *
 * ERRORS
 * Functions that return outcome<T> return T and throw usher::error (a std::system_error with the full usher_error).
 * With USHER_NO_EXCEPTIONS defined before inclusion (or -fno-exceptions) they return result<T> instead.
 * usher::attempt(f) gives a result<T> for one call in either form.
 *
 * TIMES
 * Times are std::chrono::milliseconds. Zero means the default of the C header; usher::off means "none" in the options
 * that allow it. The wrapper shortens a time of more than 49 days to 49 days.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_USHER_HPP
#define USHER_USHER_HPP

#include "hpp/words.hpp"
#include "hpp/errors.hpp"
#include "hpp/support.hpp"
#include "hpp/license.hpp"
#include "hpp/playback.hpp"
#include "hpp/question.hpp"
#include "hpp/hooks.hpp"
#include "hpp/options.hpp"
#include "hpp/delegate.hpp"
#include "hpp/customer.hpp"
#include "hpp/loader.hpp"
#include "hpp/player.hpp"
#include "hpp/metrics.hpp"
#include "hpp/context.hpp"
#include "hpp/content.hpp"
#include "hpp/clearkey.hpp"

#endif /* USHER_USHER_HPP */
