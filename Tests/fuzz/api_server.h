/*
 * api_server.h - the servers for api.c. The servers run on one thread and listen on loopback: a session manager with a
 * session table, a licence server, and servers that reply with bytes of the input, with an empty reply, or not at all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef USHER_FUZZ_SERVER_H
#define USHER_FUZZ_SERVER_H
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 64
#define SESSIONS 4096

static int server_port;
static pthread_mutex_t server_lock = PTHREAD_MUTEX_INITIALIZER;
/* The reply to requests to /garbage/: bytes of the input. */
static uint8_t garbage[256];
static size_t garbage_size;
/* The session table: sessions[n] is 1 while the server holds session Sn of the current input. */
static uint8_t sessions[SESSIONS];
static unsigned session_count;
/* The number of the current input. URLs contain this number, so that the server does not count late requests of an
   earlier input. */
static unsigned input_number;

static struct connection {
  int fd;
  size_t have;
  char text[4096];
} connections[CONNECTIONS];

/* @return the number of the session whose token a request carries; 0: the request has no session token. */
static unsigned session_in(const char *request) {
  const char *at = strstr(request, "token-S");
  unsigned number = at ? (unsigned)strtoul(at + 7, NULL, 10) : 0;
  return number < SESSIONS ? number : 0;
}

/* Makes a URL that contains the number of the current input. */
static void make_url(char *url, size_t room, int port, const char *kind, const char *path) {
  snprintf(url, room, "http://127.0.0.1:%d/input-%u/%s/%s", port, input_number, kind, path);
}

static size_t json_reply(char *reply, size_t room, const char *body) {
  return (size_t)snprintf(reply, room,
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

static int is_of_now(const char *request) {
  const char *at = strstr(request, "/input-");
  return at && strtoul(at + 7, NULL, 10) == input_number;
}

/* Handles a complete request. @return the reply's size; 0: send no reply and close the connection. */
static size_t answer_request(const char *request, char *reply, size_t room) {
  char body[512];
  size_t size = 0;
  unsigned number;
  int head;
  pthread_mutex_lock(&server_lock);
  if (strstr(request, "/drop/") || !is_of_now(request)) {
    size = 0;
  } else if (strstr(request, "/garbage/")) {
    head = snprintf(reply, room, "HTTP/1.1 %d X\r\nX-Token: t\r\nContent-Length: %zu\r\n\r\n",
        garbage_size && garbage[0] & 1 ? 403 : 200, garbage_size);
    memcpy(reply + head, garbage, garbage_size);
    size = (size_t)head + garbage_size;
  } else if (strstr(request, "setup") && session_count + 1 < SESSIONS) {
    sessions[++session_count] = 1;
    snprintf(body, sizeof body, "{\"sessionToken\":\"token-S%u.1\",\"heartbeat\":0.2}", session_count);
    size = json_reply(reply, room, body);
  } else if (strstr(request, "heartbeat")) {
    number = session_in(request);
    if (number) snprintf(body, sizeof body, "{\"sessionToken\":\"token-S%u.2\"}", number);
    else snprintf(body, sizeof body, "{\"errorCode\":1006,\"message\":\"no such session\"}");
    size = json_reply(reply, room, body);
  } else if (strstr(request, "teardown")) {
    sessions[session_in(request)] = 0;
    size = (size_t)snprintf(reply, room, "HTTP/1.1 204 No Content\r\n\r\n");
  } else if (strstr(request, "/certificate")) {
    size = json_reply(reply, room, "0\003\001\002\003");
  } else { /* a reply that is valid for every key system except PlayReady */
    size = json_reply(reply, room,
        "{\"CkcMessage\":\"AAAAAQIDBAUG\",\"license\":[\"CAISAQ==\"],\"keys\":[{\"k\":\"AA\"}],"
        "\"sessionDrmEnforced\":false,\"heartbeat\":0.3}");
  }
  pthread_mutex_unlock(&server_lock);
  return size;
}

/* Reads from a connection and replies to each complete request. @return 0 if the connection must be closed, else 1. */
static int serve(struct connection *c) {
  char reply[2048], *end, *length;
  size_t whole, size, sent = 0;
  ssize_t got = read(c->fd, c->text + c->have, sizeof c->text - 1 - c->have);
  if (got <= 0) return 0;
  c->have += (size_t)got;
  c->text[c->have] = '\0';
  while ((end = strstr(c->text, "\r\n\r\n")) != NULL) {
    length = strcasestr(c->text, "content-length:");
    whole = (size_t)(end + 4 - c->text) + (length && length < end ? strtoul(length + 15, NULL, 10) : 0);
    if (whole >= sizeof c->text) return 0;
    if (c->have < whole) return 1;
    size = answer_request(c->text, reply, sizeof reply);
    if (!size) return 0;
    while (sent < size && (got = send(c->fd, reply + sent, size - sent, MSG_NOSIGNAL)) > 0) sent += (size_t)got;
    if (sent < size) return 0;
    sent = 0;
    memmove(c->text, c->text + whole, c->have - whole + 1);
    c->have -= whole;
  }
  return c->have + 1 < sizeof c->text;
}

static void *run_server(void *argument) {
  int listener = (int)(intptr_t)argument, index, fd;
  struct pollfd polled[CONNECTIONS + 1];
  for (index = 0; index < CONNECTIONS; index++) connections[index].fd = -1;
  for (;;) {
    for (index = 0; index < CONNECTIONS; index++)
      polled[index].fd = connections[index].fd, polled[index].events = POLLIN;
    polled[CONNECTIONS].fd = listener, polled[CONNECTIONS].events = POLLIN;
    if (poll(polled, CONNECTIONS + 1, -1) < 0) continue;
    for (index = 0; index < CONNECTIONS; index++)
      if (polled[index].fd >= 0 && polled[index].revents && !serve(&connections[index]))
        close(connections[index].fd), connections[index].fd = -1;
    if (!polled[CONNECTIONS].revents || (fd = accept(listener, NULL, NULL)) < 0) continue;
    for (index = 0; index < CONNECTIONS && connections[index].fd >= 0; index++) continue;
    if (index == CONNECTIONS) close(connections[--index].fd); /* the input has ended: closes all connections */
    connections[index].fd = fd, connections[index].have = 0;
  }
  return NULL;
}

static void start_server(void) {
  struct sockaddr_in address;
  socklen_t size = sizeof address;
  pthread_t thread;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 64) ||
      getsockname(listener, (struct sockaddr *)&address, &size) ||
      pthread_create(&thread, NULL, run_server, (void *)(intptr_t)listener)) {
    perror("api: no server on loopback");
    exit(1);
  }
  server_port = ntohs(address.sin_port);
}

static unsigned sessions_held(void) {
  unsigned number, held = 0;
  pthread_mutex_lock(&server_lock);
  for (number = 1; number <= session_count; number++) held += sessions[number];
  pthread_mutex_unlock(&server_lock);
  return held;
}

/* Makes the server forget the previous input, before the next input begins. `bytes`: the new reply to requests to
   /garbage/. */
static void reset_server(const uint8_t *bytes, size_t size) {
  pthread_mutex_lock(&server_lock);
  garbage_size = size < sizeof garbage ? size : sizeof garbage;
  if (garbage_size) memcpy(garbage, bytes, garbage_size);
  memset(sessions, 0, sizeof sessions);
  session_count = 0, input_number++;
  pthread_mutex_unlock(&server_lock);
}

#endif
