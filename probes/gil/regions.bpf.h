// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What each thread of a process has waited so far, and held, where that process can read it: it has
// mapped the places of its threads, and of nobody else's, and can write to none of them. Whoever
// has not asked for that has no places.
//
//   place = the first free one of REGION_TRIES in a row, which begin where the thread's number says
//
// A thread writes its own place alone, and so reads there what is as old as its last wait. It takes
// one at the end of its first wait, or of its first hold where these are seen: until then it has
// neither waited nor given the GIL back. Who reads in Python has it; since when, the head says.

#define REGION_FLAGS (1 << 10) // BPF_F_MMAPABLE

struct region_owner_key {
    u32 tgid;
    u32 index;
};

// What every process' places are like.
BPF_F_TABLE("array", u32, struct region_place, region_prototype, REGION_PLACES, REGION_FLAGS);
// Filled by user space, one entry a process that has asked. The first place is the head.
BPF_HASH_OF_MAPS(region_maps, u32, "region_prototype", ENTRIES(region_maps));
// Whose a place is. Who makes the entry has it: of several threads only one can.
BPF_F_TABLE("hash", struct region_owner_key, u32, region_owners, ENTRIES(region_owners),
            TABLE_FLAGS);

// The places of a process' threads; 0: it has not asked for them, or nobody can.
static __always_inline void *places_of(u32 tgid)
{
    return PARAMETER(REGIONS) ? region_maps.lookup(&tgid) : 0;
}

static __always_inline struct region_place *place_at(void *places, u32 index)
{
    return bpf_map_lookup_elem(places, &index);
}

static __always_inline struct region_head *head_of(void *places)
{
    u32 zero = 0;

    return bpf_map_lookup_elem(places, &zero);
}

static __always_inline u32 tid_in_process(const struct region_head *head, u32 tid)
{
    return tid_in_namespace(head->namespace_device, head->namespace_inode, tid);
}

static __always_inline struct region_place *take_place(void *places, struct thread *thread, u32 tid)
{
    struct region_head *head = head_of(places);

    if (!head)
        return 0;
    u32 own_tid = tid_in_process(head, tid);
    struct region_owner_key key = {.tgid = thread->tgid, .index = 1 + own_tid % REGION_HOMES};

#pragma unroll
    for (int tries = 0; tries < REGION_TRIES; tries++, key.index++) {
        if (!own_tid || region_owners.insert(&key, &tid))
            continue;
        struct region_place *place = place_at(places, key.index);

        if (!place)
            break; // never: there are so many
        thread->region_place = key.index;
        place->wait_ns = place->waits = place->held_ns = 0;
        place->owner = tid;
        place->tid = own_tid;
        return place;
    }
    __sync_fetch_and_add(&head->unplaced, 1);
    return 0;
}

// The place of a thread that has one in these; 0: it has none.
static __always_inline struct region_place *own_place(void *places, const struct thread *thread,
                                                      u32 tid)
{
    struct region_place *place = place_at(places, thread->region_place);

    return place && thread->region_place && place->owner == tid ? place : 0;
}

static __always_inline struct region_place *own_or_new_place(void *places, struct thread *thread,
                                                             u32 tid)
{
    struct region_place *place = own_place(places, thread, tid);

    return place ? place : take_place(places, thread, tid);
}

// The thread that runs this has waited *ns*.
static __always_inline void count_for_region(struct thread *thread, u32 tid, u64 ns)
{
    void *places = places_of(thread->tgid);

    if (!places)
        return;
    struct region_place *place = own_or_new_place(places, thread, tid);

    if (!place)
        return;
    BEGIN_CHANGE(place);
    place->wait_ns += ns;
    place->waits++;
    END_CHANGE(place);
}

// The thread that runs this has acquired the first lock of its process. That of another interpreter
// is not told of.
static __always_inline void begin_hold_for_region(u32 tgid, u32 tid, u64 now)
{
    void *places = places_of(tgid);
    struct region_head *head = places ? head_of(places) : 0;

    if (!head || !head->tells_holds)
        return;
    head->held_since_ns = now;
    head->holder = tid_in_process(head, tid);
}

// The thread that runs this releases a lock that it has held for *ns*.
static __always_inline void end_hold_for_region(struct thread *thread, u32 tid, u64 ns)
{
    void *places = places_of(thread->tgid);
    struct region_head *head = places ? head_of(places) : 0;

    if (!head || !head->tells_holds)
        return;
    struct region_place *place = own_or_new_place(places, thread, tid);

    if (!place)
        return;
    BEGIN_CHANGE(place);
    place->held_ns += ns;
    END_CHANGE(place);
    if (head->holder == place->tid)
        head->holder = 0;
}

// The thread that runs this ends: its place is another's, who may have its number.
static __always_inline void leave_place(struct thread *thread, u32 tid)
{
    void *places = places_of(thread->tgid);

    if (!places)
        return;
    struct region_place *place = own_place(places, thread, tid);
    struct region_owner_key key = {.tgid = thread->tgid, .index = thread->region_place};

    thread->region_place = 0;
    if (!place)
        return;
    place->tid = place->owner = 0;
    region_owners.delete(&key);
}
