/*
 * usher.hpp - the C API for C++17: the same functions, with owners, std::function, std::chrono and exceptions. Header only; link with libusher as C does.
 *
 *   usher::context context;
 *   auto delegate = context.new_ssp_delegate(options);
 *   auto player = context.new_player();
 *   auto playback = player.play(item);
 *   auto licence = playback.get_license(request);          // waits; throws usher::error
 *
 * The parts are in hpp/; each may be included alone.
 *
 * Read <usher/usher.h> for what the functions do; here stands what is different.
 *
 * OWNERSHIP
 * context, delegate, loader, player, playback and response are move-only owners; their destructors free. Any order of destruction is safe. ~context waits as
 * usher_context_free() does. playback_ref and player_ref own nothing; what they name may be gone, and then answers INVALID_HANDLE. Strings and bytes
 * given are copied before a call returns, and the wrapper's own copies of tokens are wiped.
 *
 * CALLBACKS
 * Are std::function. The library destroys each (and so what it captured) exactly once, after its last call, also where the call it was given to failed.
 * Threads and order are those of the C callbacks. What a callback is given by reference or as a view lives until it returns. An exception that leaves a
 * callback never crosses C: the first one of a context is kept, context::pump() throws it again, context::take_exception() hands it out; a question
 * that was being asked is answered with "none".
 *
 * ANSWER LATER
 * token_request, payload_request, hook_request, headers_request, customer_request, customer_call and spc_request are move-only and answer one question, from
 * any thread. One that is destroyed unanswered answers "none". What they show is theirs: it lives as long as they do.
 *
 * HOOKS
 * Are functions (delegate_hooks), or the virtual functions of a class derived from common_delegate.
 *
 * ERRORS
 * Functions that return outcome<T> return T and throw usher::error (a std::system_error with the usher_error in full). With USHER_NO_EXCEPTIONS
 * defined before inclusion (or -fno-exceptions) they return result<T> instead. usher::attempt(f) turns one form into the other for one call.
 *
 * TIMES
 * std::chrono::milliseconds; zero means the C header's default, usher::off "none" where that is possible. At most 49 days: longer is cut.
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
#include "hpp/context.hpp"
#include "hpp/content.hpp"

#endif /* USHER_USHER_HPP */
