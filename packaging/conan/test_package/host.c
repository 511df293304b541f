/* Makes and closes a context, which starts and ends the library's threads. */
#include <stdio.h>
#include <usher/usher.h>

int main(void) {
  usher_context *context = NULL;
  int32_t status = usher_context_new(NULL, &context);
  printf("libusher %s: %s\n", usher_version(), usher_status_name(status));
  if (!status) status = usher_context_close(context, 0, NULL);
  usher_context_free(context);
  return status != USHER_OK;
}
