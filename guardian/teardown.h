/* teardown.h - tears the sessions of the records down. SPDX-License-Identifier: Apache-2.0 */
#ifndef GUARDIAN_TEARDOWN_H
#define GUARDIAN_TEARDOWN_H

#include "records.h"

/* Tears all sessions down, many at the same time. Returns when the server of each session has answered, or when the
 * guardian has given the session up: its retries or its time are used up. */
void teardown_all(const struct records *records);

#endif
