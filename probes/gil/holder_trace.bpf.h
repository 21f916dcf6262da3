// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Reads which request the holder of a lock serves, where that is published.
//
// By another thread, whose wait has timed out, for a drop that is about to be slow; and by the
// holder, when a long hold is over. Both have the lock's mutex, so the thread state that
// `last_holder` leads to is alive and stays the holder's. It may run meanwhile and begin another
// request, so what is read counts only if it is the same once more.

static __always_inline int is_same_request(const struct context *one, const struct context *other)
{
    return one->trace[0] == other->trace[0] && one->trace[1] == other->trace[1] &&
           one->span == other->span && one->attributes_size == other->attributes_size;
}

// Jumped to with thread->noting_cond, and with thread->long_hold_ns if it is about a hold.
int note_holders_trace(struct pt_regs *ctx)
{
    u64 ids = current_ids();
    u32 tgid = ids >> 32, tid = ids;
    struct thread *thread = threads.lookup(&tid);
    struct target *target = targets.lookup(&tgid);
    struct context_place *place = contexts.lookup(&tgid);
    struct python *python = pythons.lookup(&tgid);
    struct settings *common = current_settings();
    struct context context = {}, again = {};
    struct gil_state state = {};
    u64 descriptor = 0, record = 0;

    if (!thread || !target || !common)
        return 0;
    struct gil_key key = {.cond = thread->noting_cond, .tgid = tgid};
    u64 hold_ns = thread->long_hold_ns;

    if (place && python && !read_gil(target, key.cond, &state) && state.last_holder &&
        !read_u64(&descriptor, state.last_holder + python->thread_id))
        record = published(descriptor, place, &context);
    if (record) {
        struct held_trace_key trace_key = {
            .trace_begin = context.trace[0],
            .trace_end = context.trace[1],
            .tgid = tgid,
            .kind = hold_ns ? LONG_HOLD : SLOW_DROP,
            .generation = common->generation,
        };
        struct held_trace *trace = held_trace_at(&trace_key);

        if (trace && place->route_key)
            note_route(trace->route, record, context.attributes_size, place->route_key);
        if (trace &&
            (published(descriptor, place, &again) != record || !is_same_request(&context, &again)))
            trace->route[0] = 0;
        else if (trace && hold_ns)
            count_in_held_trace(trace, hold_ns, thread->released_ns, context.span, key.cond);
        else if (trace) {
            struct drop_request *pending = drop_requests.lookup(&key);

            if (pending) {
                pending->span = context.span;
                pending->trace = trace_key;
            }
        }
    }
    thread->long_hold_ns = 0;
    struct blame *blame = blames.lookup(&tid);

    if (!hold_ns && blame && blame->tgid == tgid && wants_stack(blame))
        next_program.call(ctx, WALK_STACK);
    return 0;
}
