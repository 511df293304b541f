/* commands.h - the sub-commands of usher. Each gets its name and the arguments after it, and returns the exit code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_COMMANDS_H
#define USHER_COMMANDS_H

int run_command(int argc, char **argv);
int gateway_command(int argc, char **argv);
int trace_command(int argc, char **argv);

#endif
