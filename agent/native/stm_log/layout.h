// How records lie in an STM log, and whether bytes can be records at all.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "events.h"

#define STM_HEADER_BYTES 16
// In all layouts the thread of a record is in the four bytes in front of this one.
#define STM_THREAD_END 12
// The longest head with two markers of a length that fits its byte.
#define STM_LARGEST_RECORD (19 + 2 * 255)

enum stm_layout {
    // 2014-10-04 only.
    STM_L7A,
    STM_L7,
    STM_L8,
};

struct stm_record {
    uint64_t time_ns;
    // Markers point into the bytes that were given.
    const uint8_t *marker1;
    const uint8_t *marker2;
    uint32_t thread;
    // 0: none.
    uint32_t other_thread;
    uint32_t size;
    uint8_t number;
    uint8_t length1;
    uint8_t length2;
};

enum stm_parse {
    STM_PARSED,
    // What is there is the beginning of a record, as far as one can tell.
    STM_CUT,
    STM_IMPOSSIBLE,
};

#define STM_NS_PER_S UINT64_C(1000000000)
// Thread numbers count up from 1. A process that makes a thread a millisecond takes hours to come
// here, and bytes that are no number rarely stay below.
#define STM_LARGEST_THREAD (1u << 24)
// The buffers of stmgc: 128 bytes in C7, 160 in C8.
#define STM_LONGEST_C7_MARKER 128
#define STM_LONGEST_C8_MARKER 160

// Where the fields of a record are that are not in the same place in all layouts.
struct stm_shape {
    const char *name;
    uint8_t head;
    uint8_t event;
    uint8_t longest_marker;
    bool has_other_thread;
    bool has_second_marker;
};

static const struct stm_shape stm_shapes[] = {
    [STM_L7A] = {.name = "L7a",
                 .head = 15,
                 .event = 12,
                 .longest_marker = STM_LONGEST_C7_MARKER,
                 .has_second_marker = true},
    [STM_L7] = {.name = "L7",
                .head = 19,
                .event = 16,
                .longest_marker = STM_LONGEST_C7_MARKER,
                .has_other_thread = true,
                .has_second_marker = true},
    [STM_L8] = {.name = "L8", .head = 14, .event = 12, .longest_marker = STM_LONGEST_C8_MARKER},
};

static inline uint32_t stm_read_u32(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

// Reads the record at *bytes*. STM_CUT leaves what the head says in *record* where the head is
// whole, and its size is then greater than *length*; without a whole head the size is 0.
__attribute__((always_inline)) static inline enum stm_parse
stm_parse(enum stm_layout layout, const uint8_t *bytes, size_t length, struct stm_record *record)
{
    // Where the layout is a constant, so is all of this.
    const struct stm_shape shape = stm_shapes[layout];

    record->size = 0;
    if (length < shape.head)
        return STM_CUT;
    uint32_t nanoseconds = stm_read_u32(bytes + 4);
    uint8_t length1 = bytes[shape.event + 1];
    uint8_t length2 = shape.has_second_marker ? bytes[shape.event + 2] : 0;
    record->time_ns = stm_read_u32(bytes) * STM_NS_PER_S + nanoseconds;
    record->thread = stm_read_u32(bytes + 8);
    record->other_thread = shape.has_other_thread ? stm_read_u32(bytes + 12) : 0;
    record->number = bytes[shape.event];
    record->length1 = length1;
    record->length2 = length2;
    record->marker1 = bytes + shape.head;
    record->marker2 = bytes + shape.head + length1;
    if (nanoseconds >= STM_NS_PER_S || record->thread - 1 >= STM_LARGEST_THREAD ||
        record->other_thread > STM_LARGEST_THREAD || record->number >= STM_EVENT_NUMBERS ||
        length1 > shape.longest_marker || length2 > shape.longest_marker)
        return STM_IMPOSSIBLE;
    record->size = (uint32_t)shape.head + length1 + length2;
    return record->size <= length ? STM_PARSED : STM_CUT;
}

// Whether markers of the record have one of the forms that are known.
bool stm_has_known_markers(const struct stm_record *record);

#define STM_RUN_NEEDS_MORE SIZE_MAX

// How sure to be of a run: by heads alone, or also by the forms of its markers.
enum stm_trust {
    STM_HEADS,
    STM_HEADS_AND_MARKERS,
};

// Returns how many records follow each other from *bytes* on, at most *wanted*, or 0 if something
// else does. At the end of the log (*is_end*) fewer than *wanted* are no objection; elsewhere
// STM_RUN_NEEDS_MORE asks for more bytes.
size_t stm_run(enum stm_layout layout, enum stm_trust trust, const uint8_t *bytes, size_t length,
               bool is_end, size_t wanted);
