/*
 * plain.h - a simple argument for each parameter of every function in functions.h: defaults, small numbers, and
 * callbacks that do nothing. These simple arguments are in `struct plain *plain`, which the test fills from
 * `plain_defaults`. The test itself defines the other arguments: ARG_HANDLE(type), ARG_OUT_HANDLE(type), ARG_USER_DATA
 * and ARG_DESTROY.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_PLAIN_H
#define USHER_TEST_PLAIN_H
#include <usher/usher.h>

#define CALLBACK_TYPE(type, result, parameters, ...) \
  static __attribute__((unused)) result plain_##type parameters { __VA_ARGS__; }
#include "functions.h"
#undef CALLBACK_TYPE

struct plain {
#define STRUCTURE(type, init, destroys) type of_##type;
#include "functions.h"
#undef STRUCTURE
  int out_int;
  int32_t out_int32_t;
  uint32_t out_uint32_t;
  uint64_t out_uint64_t;
  size_t out_size_t, buffer_size;
  uint8_t buffer[256];
  char message[128];
};
static __attribute__((unused)) const struct plain plain_defaults = {
#define STRUCTURE(type, init, destroys) .of_##type = init,
#include "functions.h"
#undef STRUCTURE
    .buffer_size = 256,
};

#define ARG_OPTIONS(type) (&plain->of_##type)
#define ARG_FILLED(type) (&plain->of_##type)
#define ARG_OUT(type) (&plain->out_##type)
#define ARG_BYTES ((const uint8_t *)"skd://one\0\0\0\0\0\0") /* 16 bytes with the NUL: also serves as a key id */
#define ARG_SIZE 9
#define ARG_BUFFER (plain->buffer)
#define ARG_BUFFER_SIZE (&plain->buffer_size)
#define ARG_MESSAGE (plain->message)
#define ARG_MESSAGE_SIZE (sizeof plain->message)
#define ARG_TEXT "text"
#define ARG_NUMBER(type) ((type)1)
#define ARG_COMPLETION ((usher_completion)1)
#define ARG_CALLBACK(type) plain_##type

#endif
