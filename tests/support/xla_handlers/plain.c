/* An XLA FFI handler in C without headers of jaxlib: y = 2 x of float32. -DMAJOR and -DMINOR set the version
 * that it reports, -DSTATE its type of state; with -DSILENT it ignores the question. */
#include <stddef.h>
#include <stdint.h>

#ifndef MAJOR
#define MAJOR 0
#endif
#ifndef MINOR
#define MINOR 3
#endif
#ifndef STATE
#define STATE 0
#endif

struct version {
  size_t size;
  void *next;
  int major, minor;
};
struct metadata {
  size_t size;
  struct version version;
  uint32_t traits;
  int64_t state;
};
struct extension {
  size_t size;
  int kind;
  void *next;
  struct metadata *metadata;
};
struct buffer {
  size_t size;
  void *next;
  int dtype;
  float *data;
  int64_t rank;
  int64_t *dims;
};
struct buffers {
  size_t size;
  void *next;
  int64_t count;
  int *kinds;
  struct buffer **items;
};
struct frame {
  size_t size;
  struct extension *extension;
  const void *api;
  void *context;
  int stage;
  struct buffers arguments, results;
};

void *Twice(struct frame *frame) {
  if (frame->extension && frame->extension->kind == 1) {
#ifndef SILENT
    struct metadata *metadata = frame->extension->metadata;
    metadata->version.major = MAJOR;
    metadata->version.minor = MINOR;
    metadata->state = STATE;
#endif
    return NULL;
  }
  const struct buffer *x = frame->arguments.items[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; ++i) count *= x->dims[i];
  for (int64_t i = 0; i < count; ++i) frame->results.items[0]->data[i] = 2 * x->data[i];
  return NULL;
}
