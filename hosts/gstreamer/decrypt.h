/*
 * decrypt.h - the element usherdecrypt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_GST_DECRYPT_H
#define USHER_GST_DECRYPT_H

#include <gst/base/gstbasetransform.h>

G_BEGIN_DECLS

G_DECLARE_FINAL_TYPE(UsherDecrypt, usher_decrypt, USHER, DECRYPT, GstBaseTransform)

G_END_DECLS

#endif /* USHER_GST_DECRYPT_H */
