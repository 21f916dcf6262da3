// Publishes which request a thread serves, for readers outside of the process, as OpenTelemetry's
// OTEP 4947 has it.

#include <stdint.h>
#include <string.h>

#define MOST_ATTRIBUTES 600

struct record {
    uint8_t trace[16];
    uint8_t span[8];
    uint8_t valid;
    uint8_t reserved;
    uint16_t attributes_size;
    uint8_t attributes[MOST_ATTRIBUTES];
};

#define EXPORTED __attribute__((visibility("default")))

EXPORTED __thread struct record *otel_thread_ctx_v1;
static __thread struct record own;

#ifdef ROOM
// So much that it has no place beside the variables that every thread has from its start.
static __thread char room[ROOM];

EXPORTED char *use_room(void)
{
    return room;
}
#endif

// Ids as they are given.
EXPORTED void publish_as(const uint8_t *trace, const uint8_t *span)
{
    own.valid = 0;
    own.attributes_size = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memcpy(own.trace, trace, sizeof(own.trace));
    memcpy(own.span, span, sizeof(own.span));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own.valid = 1;
    otel_thread_ctx_v1 = &own;
}

// The ids are all the same byte; *valid* is 1, or another value if it is not to be believed.
EXPORTED void publish(uint8_t trace, uint8_t span, uint8_t valid)
{
    own.valid = 0;
    own.attributes_size = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    memset(own.trace, trace, sizeof(own.trace));
    memset(own.span, span, sizeof(own.span));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    own.valid = valid;
    otel_thread_ctx_v1 = &own;
}

// Says more of the request: *text* is the attribute with the number *key*.
EXPORTED void add_attribute(uint8_t key, const char *text)
{
    uint8_t *at = own.attributes + own.attributes_size, size = strlen(text);

    at[0] = key;
    at[1] = size;
    memcpy(at + 2, text, size);
    own.attributes_size += 2 + size;
}

EXPORTED void withdraw(void)
{
    otel_thread_ctx_v1 = 0;
}
