/*
 * film.h - a film without media, and a licence with its key, for tests of the functions that read contents.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_TEST_FILM_H
#define USHER_TEST_FILM_H
#include <stdint.h>

/* moov/trak/mdia/minf/stbl/stsd/encv/sinf/schm and .../sinf/schi/tenc: a film with one encrypted track. */
static const uint8_t film[] = {0, 0, 0, 210, 'm', 'o', 'o', 'v', 0, 0, 0, 202, 't', 'r', 'a', 'k', 0, 0, 0, 194, 'm',
    'd', 'i', 'a', 0, 0, 0, 186, 'm', 'i', 'n', 'f', 0, 0, 0, 178, 's', 't', 'b', 'l', 0, 0, 0, 170, 's', 't', 's', 'd',
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 154, 'e', 'n', 'c', 'v', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 68, 's', 'i', 'n', 'f', 0, 0, 0, 20, 's', 'c',
    'h', 'm', 0, 0, 0, 0, 'c', 'e', 'n', 'c', 0, 0, 0, 0, 0, 0, 0, 40, 's', 'c', 'h', 'i', 0, 0, 0, 32, 't', 'e', 'n',
    'c', 0, 0, 0, 0, 0, 0, 1, 8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static const char film_license[] = "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"AAECAwQFBgcICQoLDA0ODw\",\"k\":"
                                   "\"AAECAwQFBgcICQoLDA0ODw\",\"new\":1}],\"type\":\"temporary\"}";

#endif
