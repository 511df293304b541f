/* Typed functions over json-c: its iteration macros, look-up of members in any letter case, wiping of strings. */
#ifndef USHER_CJSONC_SHIM_H
#define USHER_CJSONC_SHIM_H

#include <json-c/json.h>
#include <json-c/printbuf.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

typedef struct json_object *json_shim_value;

/* Overwrites every string value below `o`. */
static inline void json_shim_wipe(json_shim_value o) {
  switch (json_object_get_type(o)) {
  case json_type_string:
    explicit_bzero((char *)json_object_get_string(o), (size_t)json_object_get_string_len(o));
    break;
  case json_type_object: {
    json_object_object_foreach(o, key, value) {
      (void)key;
      json_shim_wipe(value);
    }
    break;
  }
  case json_type_array:
    for (size_t i = 0; i < json_object_array_length(o); i++) json_shim_wipe(json_object_array_get_idx(o, i));
    break;
  default: break;
  }
}
/* A tokener that is kept for the next text, because making a tokener costs more than parsing a short text. NULL: no
   tokener is kept, or a thread uses it now. */
static struct json_tokener **json_shim_kept(void) {
  static struct json_tokener *kept;
  return &kept;
}
static inline struct json_tokener *json_shim_take_tokener(int depth) {
  struct json_tokener *tokener = __atomic_exchange_n(json_shim_kept(), NULL, __ATOMIC_ACQUIRE);
  if (tokener != NULL) return tokener;
  tokener = json_tokener_new_ex(depth);
  if (tokener != NULL) json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
  return tokener;
}
/* Keeps a tokener that has parsed a text successfully, unless its buffer is large. After a failure, the tokener may
   still have the first part of a character, which would change the next text. */
static inline void json_shim_give_tokener(struct json_tokener *tokener, int is_reusable) {
  enum { kept_most = 2048 };
  if (is_reusable && tokener->pb->size <= kept_most)
    tokener = __atomic_exchange_n(json_shim_kept(), tokener, __ATOMIC_ACQ_REL);
  if (tokener != NULL) json_tokener_free(tokener);
}
/* Parses a text that is nested at most 32 deep. Returns NULL unless the text is exactly one JSON value. Refuses a text
   with a NUL byte, because json-c would stop reading at the NUL. */
static inline json_shim_value json_shim_parse(const char *text, int size) {
  json_shim_value object = NULL;
  struct json_tokener *tokener = memchr(text, 0, (size_t)size) == NULL ? json_shim_take_tokener(32) : NULL;
  if (tokener == NULL) return NULL;
  /* Make room for the longest possible string now, because a buffer that grows leaves an unwiped copy in memory. */
  if (tokener->pb->size > size || printbuf_memset(tokener->pb, 0, 0, size) >= 0) {
    printbuf_reset(tokener->pb);
    object = json_tokener_parse_ex(tokener, text, size);
    if (object == NULL && json_tokener_get_error(tokener) == json_tokener_continue)
      object = json_tokener_parse_ex(tokener, "", 1);
  }
  /* Wipe the bytes that the tokener holds: the last string that it read and, if the JSON text was incomplete, all
     values that it read. */
  for (int level = 0; object == NULL && level <= tokener->depth; level++) json_shim_wipe(tokener->stack[level].current);
  explicit_bzero(tokener->pb->buf, (size_t)tokener->pb->size);
  json_shim_give_tokener(tokener, object != NULL);
  return object;
}

#define JSON_SHIM_NULL 0
#define JSON_SHIM_BOOLEAN 1
#define JSON_SHIM_NUMBER 2
#define JSON_SHIM_STRING 3
#define JSON_SHIM_OBJECT 4
#define JSON_SHIM_ARRAY 5
static inline int json_shim_kind(json_shim_value o) {
  switch (json_object_get_type(o)) {
  case json_type_boolean: return JSON_SHIM_BOOLEAN;
  case json_type_double:
  case json_type_int: return JSON_SHIM_NUMBER;
  case json_type_string: return JSON_SHIM_STRING;
  case json_type_object: return JSON_SHIM_OBJECT;
  case json_type_array: return JSON_SHIM_ARRAY;
  default: return JSON_SHIM_NULL;
  }
}
/* Returns the member of `o` with this name, or the first member whose name differs only in letter case, or NULL. */
static inline json_shim_value json_shim_member(json_shim_value o, const char *name) {
  json_shim_value found = NULL;
  if (json_object_get_type(o) != json_type_object) return NULL;
  if (json_object_object_get_ex(o, name, &found)) return found;
  json_object_object_foreach(o, key, value) {
    if (strcasecmp(key, name) == 0) return value;
  }
  return NULL;
}
static inline const char *json_shim_string(json_shim_value o) { return json_object_get_string(o); }
static inline int json_shim_string_size(json_shim_value o) { return json_object_get_string_len(o); }
static inline double json_shim_double(json_shim_value o) { return json_object_get_double(o); }
static inline int64_t json_shim_integer(json_shim_value o) { return json_object_get_int64(o); }
static inline int json_shim_boolean(json_shim_value o) { return json_object_get_boolean(o); }
static inline size_t json_shim_array_count(json_shim_value o) { return json_object_array_length(o); }
static inline json_shim_value json_shim_array_element(json_shim_value o, size_t i) {
  return json_object_array_get_idx(o, i);
}

/* Wipes every string value in `o`, then frees `o`. */
static inline void json_shim_free(json_shim_value o) {
  json_shim_wipe(o);
  json_object_put(o);
}

#endif
