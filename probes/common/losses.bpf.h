// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What was lost, by process and reason: nothing that goes uncounted does so in silence.

struct lost_key {
    u32 tgid;
    u32 reason;
};

BPF_F_TABLE("hash", struct lost_key, u64, lost_events, ENTRIES(lost_events), TABLE_FLAGS);

static __always_inline void lose(u32 tgid, u32 reason)
{
    struct lost_key key = {.tgid = tgid, .reason = reason};
    u64 zero = 0;
    u64 *count = lost_events.lookup_or_try_init(&key, &zero);

    if (count)
        __sync_fetch_and_add(count, 1);
}
