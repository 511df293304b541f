/* trace.h - writes the trace of a context into a file; `usher trace` shows it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_TRACE_H
#define HOSTS_TRACE_H

#include <stdbool.h>
#include <usher/usher.h>

/* Empties or makes the file, and sets the log of `options`: the context writes to the file, and closes it. Does nothing
 * if `path` is NULL. On failure returns false; errno says why. */
bool trace_to_file(usher_context_options *options, const char *path);

#endif
