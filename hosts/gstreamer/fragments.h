/*
 * fragments.h - finds out whether a URI names a local MP4 file without fragments.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_FRAGMENTS_H
#define USHER_GST_FRAGMENTS_H

#include <glib.h>

G_BEGIN_DECLS

/** Returns TRUE if the URI names a local MP4 file without fragments; FALSE for all other files and URIs. */
gboolean usher_is_progressive(const gchar *uri);

G_END_DECLS

#endif /* USHER_GST_FRAGMENTS_H */
