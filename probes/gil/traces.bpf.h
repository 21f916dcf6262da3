// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Which request a wait was of, where the process publishes that for readers outside of it: the
// thread context of OpenTelemetry (OTEP 4947).
//
//   otel_thread_ctx_v1   a variable of each thread: a pointer to its record, or NULL
//   record               the ids of trace and span, whether they are valid now, and attributes:
//                        the number of each one's name, its size, and its text
//
// A thread reads its own variable when its wait has ended, on the contended path alone. It has
// changed nothing there since, so what it reads is of one piece.

#define BLOCKS_AT 8    // from a thread's descriptor to the table of its blocks (x86-64)
#define IS_PUBLISHED 1 // the value of `valid`: others are reserved
#define NO_BLOCK (~0ULL)
#define ATTRIBUTES_AT 28
#define MOST_ATTRIBUTES 16

// What the record begins with.
struct context {
    u64 trace[2]; // in the order of its bytes
    u64 span;
    u8 valid;
    u8 reserved;
    u16 attributes_size;
    u32 padding;
};

// The address of the thread's variable, 0 if it has none yet. Modules that are loaded later keep
// theirs in blocks of their own, which a thread is given when it uses them first.
static __always_inline u64 context_variable(const struct context_place *place, u64 descriptor)
{
    u64 blocks = 0, length = 0, block = 0;

    if (!place->module)
        return descriptor + place->offset;
    if (read_u64(&blocks, descriptor + BLOCKS_AT) ||
        read_u64(&length, blocks + (s64)place->length_at) || place->module > length ||
        read_u64(&block, blocks + (u64)place->module * place->entry_size))
        return 0;
    return block && block != NO_BLOCK ? block + place->offset : 0;
}

// The descriptor of the thread that runs this, as its thread state names it; 0: not known yet.
static __always_inline u64 own_descriptor(struct thread *thread, u32 tid)
{
    u32 tgid = thread->tgid;
    struct blame *blame = blames.lookup(&tid);
    struct python *python = pythons.lookup(&tgid);
    u64 descriptor = 0;

    if (thread->descriptor || !blame || !python || blame->tgid != tgid || !blame->tstate)
        return thread->descriptor;
    // Others may have its memory by now.
    if (!is_of_thread(python, blame->tstate, own_tid(python, tid)) ||
        read_u64(&descriptor, blame->tstate + python->thread_id))
        return 0;
    thread->descriptor = descriptor;
    return descriptor;
}

// The address of the record that the thread with *descriptor* publishes, read into *context*; 0: it
// is in no trace.
static __always_inline u64 published(u64 descriptor, const struct context_place *place,
                                     struct context *context)
{
    u64 variable = descriptor ? context_variable(place, descriptor) : 0;
    u64 record = 0;

    if (!variable || read_u64(&record, variable) || !record ||
        read_user(context, ATTRIBUTES_AT, (void *)record) || context->valid != IS_PUBLISHED ||
        !(context->trace[0] || context->trace[1]))
        return 0;
    return record;
}

// Notes the route of the request, if the *record* has it: where it is there twice, the last counts.
static __always_inline void note_route(u8 *route, u64 record, u32 size, u32 route_key)
{
    u32 at = 0, found_at = 0, found_size = 0;
    struct {
        u8 key;
        u8 size;
    } attribute;

#pragma clang loop unroll(disable)
    for (int number = 0; number < MOST_ATTRIBUTES; number++) {
        if (at + sizeof(attribute) > size ||
            read_user(&attribute, sizeof(attribute), (void *)(record + ATTRIBUTES_AT + at)))
            break;
        at += sizeof(attribute);
        if (at + attribute.size > size)
            break;
        if (attribute.key + 1 == route_key) {
            found_at = at;
            found_size = attribute.size;
        }
        at += attribute.size;
    }
    if (!found_size)
        return;
    if (found_size >= LONGEST_ROUTE)
        found_size = LONGEST_ROUTE - 1;
    // What is compared may be a copy of what is used, for all that the verifier knows.
    asm volatile("" : "+r"(found_size));
    found_size &= LONGEST_ROUTE - 1;
    if (!read_user(route, found_size, (void *)(record + ATTRIBUTES_AT + found_at)))
        route[found_size] = 0;
}

// The thread that runs this has waited *ns*.
static __always_inline void count_for_trace(struct thread *thread, u32 tid, u64 ns, u64 ended_ns,
                                            u32 cause)
{
    u32 tgid = thread->tgid;
    struct context_place *place = contexts.lookup(&tgid);
    struct settings *common = current_settings();
    struct context context = {};
    u64 record = 0;

    if (place && common)
        record = published(own_descriptor(thread, tid), place, &context);
    if (!record)
        return;
    struct trace_key key = {
        .trace_begin = context.trace[0],
        .trace_end = context.trace[1],
        .tgid = tgid,
        .generation = common->generation,
    };
    struct trace *trace = traces.lookup(&key);

    if (!trace) {
        u32 zero = 0;
        struct trace *empty = empty_trace.lookup(&zero);

        if (!empty || !is_within_quota(tgid, QUOTA_TRACES, PARAMETER(MAX_TRACES_OF_PROCESS))) {
            lose(tgid, LOST_TRACE);
            return;
        }
        if (!traces.insert(&key, empty))
            use_quota(tgid, QUOTA_TRACES, 1);
        trace = traces.lookup(&key);
        if (!trace) {
            lose(tgid, LOST_TRACE);
            return;
        }
    }
    __sync_fetch_and_add(&trace->wait_ns, ns);
    __sync_fetch_and_add(&trace->waits, 1);
    if (place->route_key)
        note_route(trace->route, record, context.attributes_size, place->route_key);
    if (ns <= trace->longest_ns)
        return;
    // Waits for one lock end one after the other.
    struct blame *blame = blames.lookup(&tid);

    trace->longest_ns = ns;
    trace->longest_ended_ns = ended_ns;
    trace->longest_span = context.span;
    trace->longest_cond = thread->cond;
    trace->longest_cause = cause;
    trace->longest_holder = blame && blame->tgid == tgid ? blame->first_holder : STACK_UNKNOWN;
}
