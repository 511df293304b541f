/* sandbox.h - gives up the rights that the guardian does not need. SPDX-License-Identifier: Apache-2.0 */
#ifndef GUARDIAN_SANDBOX_H
#define GUARDIAN_SANDBOX_H

/* After this call the process cannot gain rights, start programs, make processes, write files, send signals to other
 * processes, or use other sockets than those of the internet, of the resolver and of this machine (AF_UNIX). Processes
 * of the same user cannot read its memory or its descriptors. If the kernel does not support a limit, the process runs
 * without this limit. */
void sandbox_enter(void);

#endif
