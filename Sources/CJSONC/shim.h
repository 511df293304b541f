/* Typed shims over json-c: the iteration macros, look-ups by name in any case, and wiping of strings. */
#ifndef USHER_CJSONC_SHIM_H
#define USHER_CJSONC_SHIM_H

#include <json-c/json.h>
#include <json-c/printbuf.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct json_object *uj_object;

/* Overwrites every string value below `o`. */
static inline void uj_wipe(uj_object o) {
  switch (json_object_get_type(o)) {
  case json_type_string:
    explicit_bzero((char *)json_object_get_string(o), (size_t)json_object_get_string_len(o));
    break;
  case json_type_object: {
    json_object_object_foreach(o, key, value) {
      (void)key;
      uj_wipe(value);
    }
    break;
  }
  case json_type_array:
    for (size_t i = 0; i < json_object_array_length(o); i++) uj_wipe(json_object_array_get_idx(o, i));
    break;
  default: break;
  }
}
/* Parses a whole text, at most `depth` deep; NULL unless it is one JSON value and nothing else: a NUL, which json-c takes for the end, is something else. */
static inline uj_object uj_parse(const char *text, int size, int depth) {
  uj_object object = NULL;
  struct json_tokener *tokener = memchr(text, 0, (size_t)size) == NULL ? json_tokener_new_ex(depth) : NULL;
  if (tokener == NULL) return NULL;
  json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
  /* Room for the longest string there can be: a buffer that grows leaves what it held where it was. */
  if (printbuf_memset(tokener->pb, 0, 0, size) >= 0) {
    printbuf_reset(tokener->pb);
    object = json_tokener_parse_ex(tokener, text, size);
    if (object == NULL && json_tokener_get_error(tokener) == json_tokener_continue)
      object = json_tokener_parse_ex(tokener, "", 1);
  }
  /* What it holds: where the text broke off, the values read until then; the last string. */
  for (int level = 0; object == NULL && level <= tokener->depth; level++) uj_wipe(tokener->stack[level].current);
  explicit_bzero(tokener->pb->buf, (size_t)tokener->pb->size);
  json_tokener_free(tokener);
  return object;
}

#define UJ_NULL 0
#define UJ_BOOLEAN 1
#define UJ_NUMBER 2
#define UJ_STRING 3
#define UJ_OBJECT 4
#define UJ_ARRAY 5
static inline int uj_kind(uj_object o) {
  switch (json_object_get_type(o)) {
  case json_type_boolean: return UJ_BOOLEAN;
  case json_type_double:
  case json_type_int: return UJ_NUMBER;
  case json_type_string: return UJ_STRING;
  case json_type_object: return UJ_OBJECT;
  case json_type_array: return UJ_ARRAY;
  default: return UJ_NULL;
  }
}
/* The member of that name, else the first that differs in case only; NULL where there is none. */
static inline uj_object uj_member(uj_object o, const char *name) {
  uj_object found = NULL;
  if (json_object_get_type(o) != json_type_object) return NULL;
  if (json_object_object_get_ex(o, name, &found)) return found;
  json_object_object_foreach(o, key, value) {
    if (strcasecmp(key, name) == 0) return value;
  }
  return NULL;
}
static inline const char *uj_string(uj_object o) { return json_object_get_string(o); }
static inline int uj_string_size(uj_object o) { return json_object_get_string_len(o); }
static inline double uj_double(uj_object o) { return json_object_get_double(o); }
static inline int64_t uj_integer(uj_object o) { return json_object_get_int64(o); }
static inline int uj_boolean(uj_object o) { return json_object_get_boolean(o); }
static inline size_t uj_count(uj_object o) { return json_object_array_length(o); }
static inline uj_object uj_at(uj_object o, size_t i) { return json_object_array_get_idx(o, i); }

/* Wipes, then frees. */
static inline void uj_free(uj_object o) {
  uj_wipe(o);
  json_object_put(o);
}

#endif
