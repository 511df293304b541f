/*
 * names.c - the library gives each constant the name that it has in the headers, and every ..._INIT sets struct_size.
 * It compiles as C99 and C++11. The script names.sh makes the file `every.h` from the headers. Each line has one macro:
 * STATUS(macro), EVENT(macro), ORIGIN(macro), OPERATION(macro), INIT(type, macro).
 */
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

static int failed;

static void tell(int good, const char *what, const char *found) {
  if (good) {
    printf("ok - %s\n", what);
  } else {
    printf("not ok - %s: \"%s\"\n", what, found ? found : "(NULL)");
    failed++;
  }
}

/* @return whether a message is one line and not empty and, unless `ok_status` is 1, differs from the message of an
   unknown status. */
static int is_a_message(const char *text, int ok_status) {
  if (!text || !*text || strchr(text, '\n')) return 0;
  return ok_status || strcmp(text, usher_status_message(-9999)) != 0;
}

static void status(const char *macro, int32_t value) {
  const char *name = usher_status_name(value);
  tell(name && strcmp(name, macro) == 0, macro, name);
  tell(is_a_message(usher_status_message(value), value == USHER_OK), macro, usher_status_message(value));
}

static void event(const char *macro, int32_t value) {
  const char *name = usher_event_name(value);
  tell(name && strcmp(name, macro + strlen("USHER_EVENT_")) == 0, macro, name);
}

static void word(const char *macro, const char *name) {
  tell(name && *name && strcmp(name, "unknown") != 0, macro, name);
}

/* Checks what a macro ..._INIT sets: struct_size must be the size of the structure. */
static void init(const char *macro, size_t struct_size, size_t size) {
  tell(struct_size == size, macro, "struct_size is not the structure's size");
}

int main(void) {
#define STATUS(macro) status(#macro, macro);
#define EVENT(macro) event(#macro, macro);
#define ORIGIN(macro) word(#macro, usher_origin_name(macro));
#define OPERATION(macro) word(#macro, usher_operation_name(macro));
#define INIT(type, macro) \
  { \
    type value = macro; \
    init(#macro, value.struct_size, sizeof value); \
  }
#include "every.h"
  tell(strcmp(usher_status_name(-9999), "USHER_E_UNKNOWN") == 0, "an unknown status", usher_status_name(-9999));
  tell(strcmp(usher_status_name(1), "USHER_E_UNKNOWN") == 0, "a positive status", usher_status_name(1));
  tell(strcmp(usher_status_name(INT32_MIN), "USHER_E_UNKNOWN") == 0, "the smallest number as a status",
      usher_status_name(INT32_MIN));
  tell(strcmp(usher_origin_name(-1), "unknown") == 0, "an unknown origin", usher_origin_name(-1));
  tell(
      strcmp(usher_operation_name(INT32_MAX), "unknown") == 0, "an unknown operation", usher_operation_name(INT32_MAX));
  tell(strcmp(usher_event_name(0), "UNKNOWN") == 0, "an unknown event type", usher_event_name(0));
  tell(strcmp(usher_event_name(INT32_MAX), "UNKNOWN") == 0, "the largest number as an event type",
      usher_event_name(INT32_MAX));
  {
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", USHER_VERSION_MAJOR, USHER_VERSION_MINOR, USHER_VERSION_PATCH);
    tell(strcmp(usher_version(), version) == 0, "usher_version() is the header's", usher_version());
  }
  printf("ok - all names were asked\n");
  return failed != 0;
}
