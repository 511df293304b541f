/* Typed functions over libcurl's variadic calls, which Swift cannot import. */
#ifndef USHER_CCURL_SHIM_H
#define USHER_CCURL_SHIM_H

#include <curl/curl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline CURLcode curl_shim_set_long(CURL *e, CURLoption o, long v) { return curl_easy_setopt(e, o, v); }
static inline CURLcode curl_shim_set_string(CURL *e, CURLoption o, const char *v) { return curl_easy_setopt(e, o, v); }
/* If `avoids` is not 0, requests of the handle use no proxy, whatever the environment says. */
static inline CURLcode curl_shim_avoid_proxy(CURL *e, int avoids) {
  return curl_easy_setopt(e, CURLOPT_NOPROXY, avoids ? "*" : (const char *)0);
}
static inline CURLcode curl_shim_set_list(CURL *e, CURLoption o, struct curl_slist *v) {
  return curl_easy_setopt(e, o, v);
}
typedef size_t (*curl_shim_data_callback)(char *, size_t, size_t, void *);
static inline CURLcode curl_shim_set_data_callback(CURL *e, CURLoption o, curl_shim_data_callback v) {
  return curl_easy_setopt(e, o, v);
}

typedef int (*curl_shim_prerequest_callback)(void *, char *, char *, int, int);
static inline CURLcode curl_shim_set_prerequest_callback(CURL *e, curl_shim_prerequest_callback v) {
  return curl_easy_setopt(e, CURLOPT_PREREQFUNCTION, v);
}
/* Sets what libcurl passes to callbacks of a handle: `headers` to the callbacks for header lines and for TLS contexts,
   `data` to those for the body, for new sockets and before a request. CURLINFO_PRIVATE returns `data` too. libcurl
   writes error texts to `error_text`, which has room for CURL_ERROR_SIZE bytes. The handle uses the TLS sessions in
   `share`, which may be NULL. Returns 0 if libcurl refused an option, except CURLOPT_SHARE and CURLOPT_SSL_CTX_DATA. */
static inline int curl_shim_set_callback_data(CURL *e, void *data, void *headers, char *error_text, CURLSH *share) {
  curl_easy_setopt(e, CURLOPT_SHARE, share);
  return curl_easy_setopt(e, CURLOPT_PREREQDATA, data) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_OPENSOCKETDATA, data) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_WRITEDATA, data) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_PRIVATE, data) == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_HEADERDATA, headers) == CURLE_OK &&
         (curl_easy_setopt(e, CURLOPT_SSL_CTX_DATA, headers), 1) && /* libcurl refuses it without OpenSSL */
         curl_easy_setopt(e, CURLOPT_ERRORBUFFER, error_text) == CURLE_OK;
}
/* Sets the URL of a handle; libcurl copies `url`. `parsed` may be NULL; otherwise it is the result of
   curl_shim_split_url() for this URL, and libcurl does not parse the URL again. `parsed` must live as long as the
   handle has this URL. */
static inline CURLcode curl_shim_set_url(CURL *e, const void *url, CURLU *parsed) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_CURLU, parsed); /* libcurl 8.12 forgets CURLOPT_URL here */
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_URL, (const char *)url) : result;
}
typedef int (*curl_shim_close_callback)(void *, curl_socket_t);
static inline CURLcode curl_shim_set_close_callback(CURL *e, curl_shim_close_callback v, void *data) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_CLOSESOCKETFUNCTION, v);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_CLOSESOCKETDATA, data) : result;
}
#define CURL_SHIM_NONE_MADE (-2)
/* Call this after a transfer that succeeded. Returns the socket of the connection that libcurl made for the transfer.
   Returns CURL_SOCKET_BAD if libcurl has closed this connection because the server asked for that. Returns
   CURL_SHIM_NONE_MADE if the transfer used a kept connection. */
static inline curl_socket_t curl_shim_socket_made(CURL *e) {
  long made = 0;
  curl_socket_t found = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(e, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && made == 0) return CURL_SHIM_NONE_MADE;
  return curl_easy_getinfo(e, CURLINFO_ACTIVESOCKET, &found) == CURLE_OK ? found : CURL_SOCKET_BAD;
}
/* Returns a list with a copy of one line, which ends with a NUL; NULL if there is no memory. */
static inline struct curl_slist *curl_shim_line_list(const void *line) {
  return curl_slist_append(NULL, (const char *)line);
}
static inline void curl_shim_free_lines(struct curl_slist *list) { curl_slist_free_all(list); }
/* Sets the body of a POST, which libcurl does not copy; NULL for an empty body. */
static inline CURLcode curl_shim_set_body(CURL *e, const void *bytes, int64_t size) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_POSTFIELDS, bytes == NULL ? "" : bytes) : result;
}

/* Returns a store of TLS sessions for handles that only one thread uses; NULL if libcurl has no memory. Without it,
   each handle would keep its own TLS sessions, and each new connection would need a full handshake. */
static inline CURLSH *curl_shim_new_share(void) {
  CURLSH *share = curl_share_init();
  if (share != NULL) curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  return share;
}

typedef int (*curl_shim_socket_callback)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*curl_shim_timer_callback)(CURLM *, long, void *);
static inline CURLMcode curl_shim_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
static inline CURLMcode curl_shim_multi_set_pointer(CURLM *m, CURLMoption o, void *v) {
  return curl_multi_setopt(m, o, v);
}
static inline CURLMcode curl_shim_multi_set_socket_callback(CURLM *m, curl_shim_socket_callback v) {
  return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, v);
}
static inline CURLMcode curl_shim_multi_set_timer_callback(CURLM *m, curl_shim_timer_callback v) {
  return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, v);
}

static inline long curl_shim_response_code(CURL *e) {
  long code = 0;
  curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &code);
  return code;
}
/* Returns what the TLS library found when it checked the certificate of the server or of an https proxy
   (X509_V_ERR_...). 0 or 1: the TLS library has checked no certificate, or has found no fault. */
static inline long curl_shim_verify_result(CURL *e) {
  long server = 0, proxy = 0;
  curl_easy_getinfo(e, CURLINFO_SSL_VERIFYRESULT, &server);
  curl_easy_getinfo(e, CURLINFO_PROXY_SSL_VERIFYRESULT, &proxy);
  return server > 1 ? server : proxy;
}
/* Returns the status of the proxy's last reply to CONNECT; 0 if there was none. */
static inline long curl_shim_proxy_status(CURL *e) {
  long code = 0;
  curl_easy_getinfo(e, CURLINFO_HTTP_CONNECTCODE, &code);
  return code;
}
/* Returns how many bytes libcurl has sent for the current transfer, including CONNECT requests to a proxy. */
static inline long curl_shim_request_size(CURL *e) {
  long size = 0;
  curl_easy_getinfo(e, CURLINFO_REQUEST_SIZE, &size);
  return size;
}
/* Returns the microseconds from the time the connection was ready for the request to the end of the reply. */
static inline int64_t curl_shim_reply_time(CURL *e) {
  curl_off_t ready = 0, end = 0;
  curl_easy_getinfo(e, CURLINFO_PRETRANSFER_TIME_T, &ready);
  curl_easy_getinfo(e, CURLINFO_TOTAL_TIME_T, &end);
  return end > ready ? end - ready : 0;
}
/* Whether libcurl has connected to the server for the current transfer. */
static inline int curl_shim_has_connected(CURL *e) {
  curl_off_t taken = 0;
  return curl_easy_getinfo(e, CURLINFO_CONNECT_TIME_T, &taken) == CURLE_OK && taken > 0;
}
static inline void *curl_shim_private_pointer(CURL *e) {
  void *p = NULL;
  curl_easy_getinfo(e, CURLINFO_PRIVATE, &p);
  return p;
}
/* Returns the next finished transfer and stores its result; NULL if no other transfer has finished. */
static inline CURL *curl_shim_next_finished(CURLM *m, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(m, &left)) != NULL) {
    if (message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}
/* Fills `at`, one element of a list of header lines, with `line`, which is NUL-terminated. libcurl does not copy the
   line. */
static inline void curl_shim_fill_header_line(struct curl_slist *at, const void *line, struct curl_slist *next) {
  at->data = (char *)line;
  at->next = next;
}
static inline void curl_shim_fill_no_expect_line(struct curl_slist *at) {
  curl_shim_fill_header_line(at, "Expect:", NULL);
}
/* With this line, libcurl sends no Accept-Encoding header, but still decodes the reply. */
static inline void curl_shim_fill_no_coding_line(struct curl_slist *at, int has_next) {
  curl_shim_fill_header_line(at, "Accept-Encoding:", has_next ? at + 1 : NULL);
}
/* Returns the value of a response header, or NULL. The pointer is valid until the next transfer of the handle. */
static inline const char *curl_shim_response_header(CURL *e, const char *name) {
  struct curl_header *header = NULL;
  if (curl_easy_header(e, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return NULL;
  return header->value;
}
/* Splits a URL. Returns 0 if it is an absolute http or https URL without a user, -1 if not, -2 if libcurl gets no
   memory. `host` has room for 256 bytes. On success `parsed` is the parsed URL, which the caller frees with
   curl_url_cleanup(); or NULL if the URL has an IPv6 zone, which libcurl before 8.1 loses when it copies the URL. */
static inline int curl_shim_split_url(const char *text, int *https, char *host, int *port, CURLU **parsed) {
  CURLU *url = curl_url();
  char *scheme = NULL, *name = NULL, *number = NULL, *zone = NULL;
  CURLUcode code = url == NULL ? CURLUE_OUT_OF_MEMORY : curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER);
  int result = -1;
  if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0);
  if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_HOST, &name, 0);
  if (code == CURLUE_OK) code = curl_url_get(url, CURLUPART_PORT, &number, CURLU_DEFAULT_PORT);
  if (code == CURLUE_OUT_OF_MEMORY) result = -2;
  /* Accept only http and https: libcurl knows their default ports, and a URL of another scheme may have no port. */
  if (code == CURLUE_OK && (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0) && strlen(name) < 256) {
    *https = scheme[4] == 's';
    *port = (int)strtol(number, NULL, 10);
    strcpy(host, name);
    result = 0;
    if (curl_url_get(url, CURLUPART_ZONEID, &zone, 0) == CURLUE_NO_ZONEID) {
      *parsed = url;
      url = NULL;
    }
  }
  curl_free(scheme);
  curl_free(name);
  curl_free(number);
  curl_free(zone);
  curl_url_cleanup(url);
  return result;
}

#endif
