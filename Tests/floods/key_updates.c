/* A TLS 1.3 server for the flood tests. As soon as a client has sent a request, the server sends KeyUpdate messages
 * without end. Python's ssl module cannot send these messages.
 *
 *     key_updates CERTIFICATE plain|asking
 *
 * CERTIFICATE is a PEM file with the certificate and its private key. With "asking", each message also asks the client
 * to update the client's key. The program prints its port, and ends when its standard input ends.
 */
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PIECE = 1024 * 1024, RECEIVED = 16 * 1024, SILENCE_S = 30 };

static SSL_CTX *context;
static int update_type = SSL_KEY_UPDATE_NOT_REQUESTED;

/* Sends what OpenSSL has written to `out`. Returns 0 if the client has closed the connection. */
static int send_written(int client, BIO *out) {
  char *bytes = NULL;
  long size = BIO_get_mem_data(out, &bytes);
  for (long sent = 0; sent < size;) {
    ssize_t now = send(client, bytes + sent, (size_t)(size - sent), MSG_NOSIGNAL);
    if (now <= 0) return 0;
    sent += now;
  }
  return BIO_reset(out) == 1;
}

/* Calls SSL_accept, or SSL_read, and passes bytes between the socket and OpenSSL until OpenSSL needs no more of them.
 * Returns 1 on success; 0 after an error, or if the client has closed the connection. */
static int finish(int client, SSL *tls, BIO *in, BIO *out, int is_accept) {
  char bytes[RECEIVED];
  for (;;) {
    int result = is_accept ? SSL_accept(tls) : SSL_read(tls, bytes, sizeof bytes);
    int error = SSL_get_error(tls, result);
    if (!send_written(client, out)) return 0;
    if (result > 0) return 1;
    if (error != SSL_ERROR_WANT_READ) return 0;
    ssize_t size = recv(client, bytes, sizeof bytes, 0);
    if (size <= 0 || BIO_write(in, bytes, (int)size) != size) return 0;
  }
}

/* Sends KeyUpdate messages until the client closes the connection. Reads the client's messages and ignores them. */
static void flood(int client, SSL *tls, BIO *out) {
  char ignored[RECEIVED];
  do {
    while (BIO_pending(out) < PIECE) {
      if (SSL_key_update(tls, update_type) != 1 || SSL_do_handshake(tls) != 1) return;
    }
    while (recv(client, ignored, sizeof ignored, MSG_DONTWAIT) > 0) {}
  } while (send_written(client, out));
}

static void *serve(void *argument) {
  int client = (int)(long)argument;
  struct timeval silence = {.tv_sec = SILENCE_S};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
  SSL *tls = SSL_new(context);
  BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
  if (tls && in && out) {
    SSL_set_bio(tls, in, out);
    if (finish(client, tls, in, out, 1) && finish(client, tls, in, out, 0)) flood(client, tls, out);
  }
  SSL_free(tls);
  close(client);
  return NULL;
}

static void *wait_for_end(void *argument) {
  char ignored;
  while (read(STDIN_FILENO, &ignored, 1) > 0) {}
  _exit(0);
  return argument;
}

int main(int count, char **arguments) {
  if (count != 3) return fprintf(stderr, "usage: key_updates CERTIFICATE plain|asking\n"), 2;
  if (strcmp(arguments[2], "asking") == 0) update_type = SSL_KEY_UPDATE_REQUESTED;
  context = SSL_CTX_new(TLS_server_method());
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(context, arguments[1]) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, arguments[1], SSL_FILETYPE_PEM) != 1) {
    return fprintf(stderr, "key_updates: cannot use %s\n", arguments[1]), 1;
  }
  int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (bind(listening, (struct sockaddr *)&address, size) != 0 || listen(listening, 128) != 0 ||
      getsockname(listening, (struct sockaddr *)&address, &size) != 0) {
    return perror("key_updates"), 1;
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0) return 1;
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);
  for (;;) {
    int client = accept(listening, NULL, NULL);
    if (client < 0) continue;
    if (pthread_create(&thread, NULL, serve, (void *)(long)client) != 0) {
      close(client);
    } else {
      pthread_detach(thread);
    }
  }
}
