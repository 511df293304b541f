/*
 * cenc_samples.c - decrypts samples with hosts/gstreamer/cenc.c. Each line of standard input describes one sample:
 *
 *   SCHEME KEY IV CRYPT SKIP SUBSAMPLES DATA
 *
 * SCHEME is 1 for cenc and 2 for cbcs. Bytes are hexadecimal digits, or "-" for no bytes. For each sample the program
 * prints the decrypted bytes, or "wrong: " and the reason.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "cenc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE (1 << 20)

static size_t bytes(const char *text, unsigned char *out) {
  size_t size = 0;
  unsigned value;
  for (; text[0] && text[1] && sscanf(text, "%2x", &value) == 1; text += 2) out[size++] = (unsigned char)value;
  return size;
}

int main(void) {
  static char words[7][LINE];
  static unsigned char data[LINE], subsamples[LINE];
  static char line[LINE];
  unsigned char key[16];
  struct cenc_cipher *cipher = cenc_cipher_new();
  if (!cipher) return 1;
  while (fgets(line, sizeof line, stdin)) {
    struct cenc_sample sample = {0};
    char *rest = line;
    for (int i = 0; i < 7; i++) {
      char *word = strtok(rest, " \n");
      if (!word) return 2;
      strcpy(words[i], word);
      rest = NULL;
    }
    sample.scheme = atoi(words[0]);
    bytes(words[1], key);
    sample.iv_size = bytes(words[2], sample.iv);
    sample.crypt_blocks = (uint32_t)atoi(words[3]);
    sample.skip_blocks = (uint32_t)atoi(words[4]);
    sample.subsample_count = (uint32_t)(bytes(words[5], subsamples) / 6);
    sample.subsamples = subsamples;
    unsigned char *copy = malloc(strlen(words[6]) / 2 + 1); /* the exact size: AddressSanitizer reports a longer read */
    size_t size = bytes(words[6], data);
    memcpy(copy, data, size);
    const char *wrong = cenc_decrypt(cipher, key, &sample, copy, size);
    if (wrong) printf("wrong: %s", wrong);
    for (size_t i = 0; !wrong && i < size; i++) printf("%02x", copy[i]);
    puts("");
    free(copy);
  }
  cenc_cipher_free(cipher);
  return 0;
}
