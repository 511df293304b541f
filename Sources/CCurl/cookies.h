/* Cookies in memory, one jar for each origin: libcurl alone would also send a cookie to other ports of the same
 * host, and to other hosts of the same domain. A jar is a CURLSH that shares only cookies. Only one thread uses a
 * jar, so the jar needs no lock. */
#ifndef USHER_CCURL_COOKIES_H
#define USHER_CCURL_COOKIES_H

#include "headers.h"
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

/* How many cookies a jar has at most. If a server sets more, the jar forgets all its cookies. */
#define CURL_SHIM_COOKIES_MOST 64

/* Does the same as curl_shim_count_header(). Also empties the jar if it has too many cookies: libcurl alone would keep
 * all cookies that a server sets. */
static inline size_t curl_shim_count_cookie(char *line, size_t size, size_t count, void *data) {
  static const char name[] = "set-cookie:";
  CURL *easy = ((struct curl_shim_headers *)data)->easy;
  struct curl_slist *cookies = NULL;
  if (curl_shim_is_header(line, size * count, name, sizeof name - 1) &&
      curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &cookies) == CURLE_OK) {
    int found = 0;
    for (struct curl_slist *at = cookies; at != NULL; at = at->next) found++;
    curl_slist_free_all(cookies);
    if (found > CURL_SHIM_COOKIES_MOST) curl_easy_setopt(easy, CURLOPT_COOKIELIST, "ALL");
  }
  return curl_shim_count_header(line, size, count, data);
}
/* Makes a handle, and all its copies, keep the cookies of replies. Call it after curl_shim_limit_headers(). */
static inline CURLcode curl_shim_keep_cookies(CURL *e) {
  CURLcode result = curl_easy_setopt(e, CURLOPT_COOKIEFILE, ""); /* no file: only in memory */
  return result == CURLE_OK ? curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, curl_shim_count_cookie) : result;
}

/* The jar of one origin, in a list. */
struct curl_shim_jar {
  CURLSH *cookies;
  struct curl_shim_jar *next;
  size_t size;
  char origin[];
};
/* The jars of a context. */
struct curl_shim_jars {
  struct curl_shim_jar *first;
  /* How many more jars may be made. If this is 0, the handles of new origins get no jar. */
  int left;
};
/* Returns the jar of an origin, and makes it if necessary; NULL if there are too many, or if there is no memory. */
static inline CURLSH *curl_shim_find_jar(struct curl_shim_jars *jars, const void *origin, size_t size) {
  struct curl_shim_jar *jar = jars->first;
  while (jar != NULL && (jar->size != size || memcmp(jar->origin, origin, size) != 0)) jar = jar->next;
  if (jar != NULL) return jar->cookies;
  if (jars->left == 0 || (jar = (struct curl_shim_jar *)malloc(sizeof *jar + size)) == NULL) return NULL;
  jar->cookies = curl_share_init();
  jar->next = jars->first;
  jar->size = size;
  memcpy(jar->origin, origin, size);
  jars->first = jar;
  jars->left--;
  /* If this fails, libcurl stores no cookies in the jar, so the jar remains empty. */
  curl_share_setopt(jar->cookies, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
  return jar->cookies;
}
/* Lets a handle use the cookies of this origin, and no others. */
static inline int curl_shim_use_jar(struct curl_shim_jars *jars, CURL *e, const void *origin, size_t size) {
  return curl_easy_setopt(e, CURLOPT_SHARE, NULL) == CURLE_OK &&
         /* Deletes the handle's own cookies. The handle has some if its last request used no jar. */
         curl_easy_setopt(e, CURLOPT_COOKIELIST, "ALL") == CURLE_OK &&
         curl_easy_setopt(e, CURLOPT_SHARE, curl_shim_find_jar(jars, origin, size)) == CURLE_OK;
}
/* Returns the cookies of an origin, as CURLINFO_COOKIELIST writes them; NULL if there are none. The caller frees the
 * list with curl_shim_wipe_lines(). */
static inline struct curl_slist *curl_shim_list_cookies(struct curl_shim_jars *jars, const void *origin, size_t size) {
  struct curl_slist *found = NULL;
  CURL *easy = curl_easy_init();
  if (easy == NULL) return NULL;
  if (!curl_shim_use_jar(jars, easy, origin, size) || curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &found) != CURLE_OK)
    found = NULL;
  curl_easy_cleanup(easy);
  return found;
}
static inline void curl_shim_wipe_lines(struct curl_slist *list) {
  for (struct curl_slist *at = list; at != NULL; at = at->next) explicit_bzero(at->data, strlen(at->data));
  curl_slist_free_all(list);
}
/* Frees all cookies. The handles that used the cookies must be closed. */
static inline void curl_shim_free_jars(struct curl_shim_jars *jars) {
  while (jars->first != NULL) {
    struct curl_shim_jar *jar = jars->first;
    jars->first = jar->next;
    curl_share_cleanup(jar->cookies);
    free(jar);
  }
}

#endif
