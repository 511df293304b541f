/*
 * host.h - a host of libusher with many playbacks, each with its own session.
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef HOST_H
#define HOST_H

#include "bench.h"
#include <usher/usher.h>

typedef struct host {
  usher_context *context;
  usher_delegate *delegate;
  usher_player **players;
  usher_playback **playbacks;
  int count;
  int is_pumped;
  int is_v2; /* whether to make an SSP V2 delegate; set it before host_open() */
} host;

/** Ends the program if the status is not USHER_OK. */
void host_check(int32_t status, const char *what);

/**
 * Makes a context and an SSP delegate without jitter. `context` and `ssp` are the options of the two; the command line
 * may override some of them.
 */
void host_open(host *me, const bench_options *options, usher_context_options context, usher_ssp_options ssp);

/** Starts the next playback on a new player; does not wait. */
void host_start(host *me);

/** Starts one playback on each of `count` players and waits until all sessions are set up. */
void host_play(host *me, int count);

/** How many sessions are active. */
int host_active(const host *me);

/** Frees everything, and leaves the sessions at the server. */
void host_close(host *me);

#endif
