/* player.h - starts a player's process and gives it the keys of a clip, so that `ps` does not show them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef USHER_PLAYER_PROCESS_H
#define USHER_PLAYER_PROCESS_H

#include "../common/content.h"

#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

enum player_kind {
  PLAYER_MPV, /* mpv, which reads the key from a configuration file: --include=/proc/self/fd/N */
  PLAYER_FFMPEG, /* ffmpeg, ffplay and ffprobe, which read the key from a concat script: -f concat -i /proc/self/fd/N */
  PLAYER_OTHER /* any other player: {keys-file} in its arguments, and USHER_KEYS_FILE, name a file with the keys */
};

/* Returns the kind of player that a command runs; its name decides. */
enum player_kind player_kind_of(const char *program);

/* Returns the reason why the command cannot get the clip and its keys; NULL if it can. */
const char *player_obstacle(enum player_kind kind, char *const command[]);

/* Starts a command. In its arguments, {clip} stands for the clip. The process has the signal mask `mask`, and gets
 * SIGTERM when the calling process dies. `keys` is NULL for a clip that is not encrypted; otherwise it has all keys of
 * `content`. @return the process id; -1 on failure, with the reason in errno. */
pid_t player_start(enum player_kind kind, char *const command[], const char *clip, const struct content *content,
    const usher_clearkey_key *keys, size_t count, const sigset_t *mask);

#endif
