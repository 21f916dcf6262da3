// Prints how many slots are looked at in the longest search for an entry, for markers that somebody
// has chosen: each pair of words may have two bits changed that take back what each other does to a
// hash of multiplications and shifts, from whatever it begins.

#include <stdio.h>

#include "entries.c"

#define PAIRS 10
#define WORD sizeof(uint64_t)

static void flip(uint8_t *bytes, uint64_t bits)
{
    uint64_t word;

    memcpy(&word, bytes, WORD);
    word ^= bits;
    memcpy(bytes, &word, WORD);
}

int main(void)
{
    uint32_t room = UINT32_MAX, longest = 0;
    struct stm_entries entries;

    stm_entries_init(&entries, &room, UINT64_C(0x123456789abcdef));
    for (uint32_t choice = 0; choice < 1 << PAIRS; choice++) {
        uint8_t marker[PAIRS * 2 * WORD] = "File \"app.py\", line 1, in f";
        struct stm_key key = {.marker1 = marker, .marker2 = marker, .length1 = sizeof(marker)};
        for (int pair = 0; pair < PAIRS; pair++) {
            if (!(choice >> pair & 1))
                continue;
            flip(marker + 2 * pair * WORD, UINT64_C(1) << 63);
            flip(marker + (2 * pair + 1) * WORD, UINT64_C(1) << 63 | UINT64_C(1) << 31);
        }
        if (stm_entries_get(&entries, &key) != choice)
            return 1;
    }
    for (uint32_t at = 0; at < entries.slot_count; at++) {
        if (entries.slots[at] == STM_NO_ENTRY)
            continue;
        struct stm_key key = key_of(entries.list[entries.slots[at]]);
        uint32_t home = hash_of(&entries, &key) & (entries.slot_count - 1);
        uint32_t length = 1 + ((at - home) & (entries.slot_count - 1));
        if (length > longest)
            longest = length;
    }
    printf("%u entries, longest search %u\n", entries.count, longest);
    stm_entries_free(&entries);
    return 0;
}
