// Prints how many slots are looked at in the longest search for a thread, for numbers that somebody
// has chosen so that their lowest bits are the same.

#include <stdio.h>

#include "threads.c"

#define STEP 16384
#define NEIGHBOURS 8
#define CHOSEN 4000

int main(void)
{
    struct stm_threads threads = {.secret = UINT64_C(0x123456789abcdef)};
    uint32_t longest = 0;
    bool is_first;

    for (uint32_t at = 0; at < CHOSEN; at++) {
        uint32_t number = 1 + at / NEIGHBOURS * STEP + at % NEIGHBOURS;
        struct stm_thread *thread = stm_threads_get(&threads, number, &is_first);
        if (!thread)
            return 1;
        // So that it stays.
        thread->is_in_transaction = true;
    }
    for (uint32_t at = 0; at < threads.slot_count; at++) {
        const struct stm_thread *thread = &threads.slots[at];
        if (!thread->is_used)
            continue;
        uint32_t home = slot_of(&threads, thread->number, threads.slot_count);
        uint32_t length = 1 + ((at - home) & (threads.slot_count - 1));
        if (length > longest)
            longest = length;
    }
    printf("%u threads, longest search %u\n", threads.used, longest);
    stm_threads_free(&threads);
    return 0;
}
