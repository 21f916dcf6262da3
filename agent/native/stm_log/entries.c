#include "entries.h"

#include <stdlib.h>
#include <string.h>

#include "hash.h"

#define FIRST_CAPACITY 16

void stm_entries_init(struct stm_entries *entries, uint32_t *room, uint64_t secret)
{
    *entries = (struct stm_entries){.room = room, .secret = secret};
    for (int event = 0; event < STM_EVENTS; event++)
        entries->rest[event] = STM_NO_ENTRY;
}

void stm_entries_free(struct stm_entries *entries)
{
    for (uint32_t number = 0; number < entries->count; number++)
        free(entries->list[number]);
    free(entries->list);
    free(entries->slots);
}

// Returns the value of a key with the *length* bytes that come next in it.
static uint64_t add_bytes(uint64_t hash, uint64_t secret, const uint8_t *bytes, size_t length)
{
    uint64_t digit;
    size_t at = 0;

    // A word is read at once, and the byte that is too much for a digit once more.
    for (; length - at >= sizeof(digit); at += STM_HASH_DIGIT_BYTES) {
        memcpy(&digit, bytes + at, sizeof(digit));
        hash = stm_hash_add(hash, secret, digit & STM_HASH_DIGIT);
    }
    digit = 0;
    for (size_t shift = 0; at < length; at++, shift += 8)
        digit |= (uint64_t)bytes[at] << shift;
    return stm_hash_add(hash, secret, digit);
}

static uint32_t hash_of(const struct stm_entries *entries, const struct stm_key *key)
{
    // With the lengths, so that text cannot move from one marker to the other.
    uint64_t kind = key->event | (uint64_t)key->length1 << 8 | (uint64_t)key->length2 << 16;
    uint64_t hash = stm_hash_add(0, entries->secret, kind);

    hash = add_bytes(hash, entries->secret, key->marker1, key->length1);
    return stm_hash_end(add_bytes(hash, entries->secret, key->marker2, key->length2));
}

static struct stm_key key_of(const struct stm_entry *entry)
{
    return (struct stm_key){
        .marker1 = entry->markers,
        .marker2 = entry->markers + entry->length1,
        .event = entry->event,
        .length1 = entry->length1,
        .length2 = entry->length2,
    };
}

static bool is_same(const struct stm_key *one, const struct stm_key *other)
{
    return one->event == other->event && one->length1 == other->length1 &&
           one->length2 == other->length2 &&
           memcmp(one->marker1, other->marker1, one->length1) == 0 &&
           memcmp(one->marker2, other->marker2, one->length2) == 0;
}

// Returns the slot that has *key*, or the free one where it belongs.
static uint32_t *find_slot(const struct stm_entries *entries, const struct stm_key *key)
{
    uint32_t mask = entries->slot_count - 1;

    for (uint32_t at = hash_of(entries, key) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &entries->slots[at];
        if (*slot == STM_NO_ENTRY)
            return slot;
        struct stm_key own = key_of(entries->list[*slot]);
        if (is_same(&own, key))
            return slot;
    }
}

static bool grow(struct stm_entries *entries)
{
    uint32_t capacity = entries->capacity ? 2 * entries->capacity : FIRST_CAPACITY;
    struct stm_entry **list = realloc(entries->list, capacity * sizeof(*list));
    if (!list)
        return false;
    entries->list = list;
    // Four slots for each: half of them stay free with a margin, and searches stay short.
    uint32_t *slots = malloc(4 * capacity * sizeof(*slots));
    if (!slots)
        return false;
    memset(slots, 0xff, 4 * capacity * sizeof(*slots));
    free(entries->slots);
    entries->slots = slots;
    entries->slot_count = 4 * capacity;
    entries->capacity = capacity;
    for (uint32_t number = 0; number < entries->count; number++) {
        struct stm_key key = key_of(list[number]);
        // The rests are found by their kinds.
        if (!list[number]->is_rest)
            *find_slot(entries, &key) = number;
    }
    return true;
}

// Returns the number of a new entry, which no slot knows yet.
static uint32_t add(struct stm_entries *entries, const struct stm_key *key)
{
    if (entries->count == entries->capacity && !grow(entries))
        return STM_NO_ENTRY;
    struct stm_entry *entry = calloc(1, sizeof(*entry) + key->length1 + key->length2);
    if (!entry)
        return STM_NO_ENTRY;
    entry->event = key->event;
    entry->length1 = key->length1;
    entry->length2 = key->length2;
    if (key->length1)
        memcpy(entry->markers, key->marker1, key->length1);
    if (key->length2)
        memcpy(entry->markers + key->length1, key->marker2, key->length2);
    entries->list[entries->count] = entry;
    return entries->count++;
}

static uint32_t rest_of(struct stm_entries *entries, uint8_t event)
{
    if (entries->rest[event] == STM_NO_ENTRY) {
        uint32_t number = add(entries, &(struct stm_key){.event = event});
        if (number != STM_NO_ENTRY)
            entries->list[number]->is_rest = true;
        entries->rest[event] = number;
    }
    return entries->rest[event];
}

uint32_t stm_entries_get(struct stm_entries *entries, const struct stm_key *key)
{
    if (!entries->slot_count && !grow(entries))
        return STM_NO_ENTRY;
    uint32_t found = *find_slot(entries, key);
    if (found != STM_NO_ENTRY)
        return found;
    if (!*entries->room)
        return rest_of(entries, key->event);
    uint32_t number = add(entries, key);
    if (number != STM_NO_ENTRY) {
        // Not before: to add one may move the slots.
        *find_slot(entries, key) = number;
        --*entries->room;
    }
    return number;
}
