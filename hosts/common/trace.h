/* trace.h - writes the trace of a context into a file; `usher trace` shows it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_TRACE_H
#define HOSTS_TRACE_H

#include <stdbool.h>
#include <usher/usher.h>

/* Makes the file, or empties an existing file. Sets the log of `options`, so that the context writes its trace to the
   file and later closes the file. Does nothing if `path` is NULL. Returns false on failure; errno has the reason. */
bool trace_to_file(usher_context_options *options, const char *path);

#endif
