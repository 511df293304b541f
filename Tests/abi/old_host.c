/*
 * old_host.c - a host that plays one item, built with the headers of one release and run with the library of another.
 *   old_host LICENSE_URL SSM_URL TOKEN KEY_ID [LIBUSHER]
 * With -DBY_TABLE the program is not linked with libusher: it loads LIBUSHER and calls the functions of the table.
 * With -DOLDER_LIBRARY the library may be older than the headers. The program uses only what the headers of the oldest
 * recorded release have. It uses every kind of structure that host and library pass to each other: options, results,
 * events and notices. The context has a manual clock, so the program never waits for a heartbeat.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <usher/usher.h>

#ifdef BY_TABLE
static const usher_api *api;
#define USHER(function) api->function
#else
#define USHER(function) usher_##function
#endif

enum { HEARTBEATS = 3, PERIOD_MS = 10000, SETTLE_MS = 20000 };
static int failed;
static void tell(int good, const char *what) {
  printf("%sok - %s\n", good ? "" : "not ", what);
  failed += !good;
}

struct seen {
  int started, alive, ended, notices, short_events, closed;
  uint64_t tag;
};
static struct seen seen;

static void on_event(const usher_event *event, void *user_data) {
  struct seen *all = user_data;
  if (event->struct_size < sizeof *event) all->short_events++;
  if (event->type == USHER_EVENT_SESSION_STARTED) all->started++, all->tag = event->tag;
  if (event->type == USHER_EVENT_KEPT_ALIVE) all->alive++;
  if (event->type == USHER_EVENT_SESSION_ENDED) all->ended++;
}
static void on_notice(const usher_notice *notice, void *user_data) {
  struct seen *all = user_data;
  if (notice->struct_size < sizeof *notice) all->short_events++;
  all->notices++;
}
static void on_destroy(void *user_data) { ((struct seen *)user_data)->closed++; }

/* Passes options that have more fields than the library knows. The library must accept them if all unknown fields are
   0, and refuse them if an unknown field has a value. */
static void refuse_unknown_fields(usher_context *context, const char *url) {
  struct {
    usher_default_options known;
    uint64_t unknown[256];
  } larger;
  usher_delegate *delegate = NULL;
  memset(&larger, 0, sizeof larger);
  larger.known.struct_size = sizeof larger;
  larger.known.license_url = url;
  tell(
      USHER(default_delegate_new)(context, &larger.known, &delegate) == USHER_OK, "unknown fields that are 0 are fine");
  tell(USHER(delegate_free)(delegate) == USHER_OK, "the delegate is freed");
  larger.unknown[255] = 1;
  tell(USHER(default_delegate_new)(context, &larger.known, &delegate) == USHER_E_INVALID_ARGUMENT,
      "an unknown field with a value is refused");
}

static void get_license(usher_playback *playback, const char *key_id) {
  char challenge[128];
  usher_license_request request = USHER_LICENSE_REQUEST_INIT;
  struct {
    usher_response_info info;
    unsigned char after[64];
  } out = {USHER_RESPONSE_INFO_INIT, {0}};
  usher_response *response = NULL;
  snprintf(challenge, sizeof challenge, "{\"kids\":[\"%.64s\"],\"type\":\"temporary\"}", key_id);
  request.key_system = USHER_KEY_SYSTEM_CLEARKEY;
  request.payload = (const uint8_t *)challenge;
  request.payload_size = strlen(challenge);
  memset(out.after, 0x5A, sizeof out.after);
  tell(USHER(playback_get_license)(playback, &request, &response) == USHER_OK, "the library gets a licence");
  tell(USHER(response_get)(response, &out.info) == USHER_OK && out.info.data_size > 0, "the response has its bytes");
  tell(out.info.error.status == USHER_OK, "the response has no error");
  tell(memchr(out.after, 0, sizeof out.after) == NULL, "the library writes nothing after the host's structure");
  tell(out.info.struct_size <= sizeof out.info, "struct_size says how much the library wrote");
  USHER(response_free)(response);
}

static void play(usher_context *context, char **argv) {
  usher_ssp_options ssp = USHER_SSP_OPTIONS_INIT;
  usher_playback_options item = USHER_PLAYBACK_OPTIONS_INIT;
  usher_pending pending = USHER_PENDING_INIT;
  usher_delegate *delegate = NULL;
  usher_player *player = NULL;
  usher_playback *playback = NULL;
  ssp.license_url = argv[1];
  ssp.ssm_url = argv[2];
  ssp.slot_wait_ms = 1000; /* the last field of the oldest release */
  tell(USHER(ssp_delegate_new)(context, &ssp, &delegate) == USHER_OK, "a delegate is made");
  tell(USHER(player_new)(context, &player) == USHER_OK, "a player is made");
  tell(USHER(player_add_observer)(player, on_notice, &seen, NULL, NULL) == USHER_OK, "notices have an observer");
  item.delegate = delegate;
  item.content_token = argv[3];
  item.tag = 77;
  item.user_data = &seen;
  item.destroy = on_destroy;
  tell(USHER(player_play)(player, &item, &playback) == USHER_OK, "the playback starts");
  tell(USHER(playback_wait_session)(playback, SETTLE_MS, NULL) == USHER_OK, "its session is set up");
  get_license(playback, argv[4]);
  for (int i = 0; i < HEARTBEATS; i++)
    tell(USHER(context_advance)(context, PERIOD_MS, SETTLE_MS) == USHER_OK, "a period passes");
  tell(USHER(context_pending)(context, &pending) == USHER_OK && pending.transfers == 0, "no request is open");
  tell(pending.now_ms >= HEARTBEATS * PERIOD_MS, "the clock of the context has moved");
  USHER(player_free)(player);
  USHER(playback_free)(playback);
}

int main(int argc, char **argv) {
  if (argc < 5) return fprintf(stderr, "usage: %s LICENSE_URL SSM_URL TOKEN KEY_ID [LIBUSHER]\n", argv[0]), 2;
#ifdef BY_TABLE
  usher_get_api_fn get_api = NULL;
  void *library = argc > 5 ? dlopen(argv[5], RTLD_NOW | RTLD_LOCAL) : NULL;
  void *symbol = library ? dlsym(library, "usher_get_api") : NULL;
  memcpy(&get_api, &symbol, sizeof symbol); /* ISO C has no cast from an object pointer to a function pointer */
  api = get_api ? get_api(USHER_VERSION_MAJOR) : NULL;
  tell(api != NULL, "the library has a table for the major version of the headers");
  if (!api) return 1;
#endif
  usher_context_options options = USHER_CONTEXT_OPTIONS_INIT;
  usher_context *context = NULL;
  options.clock = USHER_CLOCK_MANUAL;
  printf("# headers %d.%d.%d, library %s\n", USHER_VERSION_MAJOR, USHER_VERSION_MINOR, USHER_VERSION_PATCH,
      USHER(version)());
  tell(USHER(context_new)(&options, &context) == USHER_OK, "a context is made");
  tell(USHER(context_add_observer)(context, on_event, &seen, NULL, NULL) == USHER_OK, "events have an observer");
  refuse_unknown_fields(context, argv[1]);
  play(context, argv);
  tell(USHER(context_close)(context, SETTLE_MS, NULL) == USHER_OK, "the context closes");
  tell(USHER(context_free)(context) == USHER_OK, "the context is freed");
  tell(seen.started == 1 && seen.tag == 77 && seen.alive == HEARTBEATS && seen.ended == 1,
      "the events are those of one session");
  tell(seen.notices > 0, "the player's observer got notices");
  tell(seen.closed == 1, "the playback's data was released once");
#ifndef OLDER_LIBRARY
  tell(seen.short_events == 0, "events and notices have all fields of the headers");
#endif
  printf("ok - the program ends by itself\n");
  return failed != 0;
}
