/* teardown.h - tears the sessions of the records down. SPDX-License-Identifier: Apache-2.0 */
#ifndef GUARDIAN_TEARDOWN_H
#define GUARDIAN_TEARDOWN_H

#include "records.h"

/* Tears all sessions down at the same time, and returns when each is torn down, or when its server no longer has it. */
void teardown_all(const struct records *records);

#endif
