// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The Python stack of a thread: of the one that runs the program, which nobody changes meanwhile,
// or of another one.

#define MAX_STEPS 16 // frames, with those between that C code has put there

static __always_inline int read_frames(struct stack *stack, const struct python *python, u64 tstate)
{
    u64 frame = 0;

    stack->depth = 0;
    if (read_u64(&frame, tstate + python->tstate_frame))
        return -1;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MAX_STEPS; step++) {
        u64 begin = frame + python->frame_begin, code = 0, instruction = 0;
        u32 at = stack->depth;
        u8 owner = 0;

        if (!frame || at >= STACK_DEPTH)
            break;
        asm volatile("" : "+r"(at));
        at &= STACK_DEPTH - 1;
        if (read_user(&owner, sizeof(owner), (void *)(begin + python->frame_owner)) ||
            read_u64(&code, begin + python->frame_code) ||
            read_u64(&instruction, begin + python->frame_instruction) ||
            read_u64(&frame, begin + python->frame_previous))
            return -1;
        if (owner >= OWNER_WITHOUT_CODE)
            continue;
        code &= ~(u64)REFERENCE_FLAGS;
        stack->codes[at] = code;
        stack->instructions[at] = instruction - code;
        stack->depth++;
    }
    stack->is_cut = frame != 0;
    return 0;
}

// Reads the stack of *tstate*, and returns its id; 0: it is not known.
static __always_inline u64 read_stack(struct work *work, u32 tgid, const struct python *python,
                                      u64 tstate)
{
    struct stack *stack = &work->stack;
    u64 id;

    if (!tstate || read_frames(stack, python, tstate) || !stack->depth)
        return 0;
    id = mixed(stack->depth, stack->is_cut);
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        if (at >= stack->depth)
            break;
        if (code_identity(&stack->identities[at], work->pointers, python, stack->codes[at]))
            return 0;
        id = mixed(mixed(id, stack->codes[at]), stack->instructions[at]);
        id = mixed(id, stack->identities[at]);
    }
    return id;
}

// Keeps the stack that was read under its id. Of those that count in *kept* there is room for so
// many of a process: they are what may be left out.
static __always_inline int keep_stack(struct work *work, u32 tgid, u64 id, u64 *kept)
{
    struct stack_key key = {.id = id, .tgid = tgid};

    if (stacks.lookup(&key))
        return 1;
    if (kept && *kept >= MOST_HOLDERS)
        return 0;
    if (stacks.update(&key, &work->stack)) {
        lose(tgid, LOST_TABLE_FULL);
        return 0;
    }
    if (kept)
        __sync_fetch_and_add(kept, 1);
    return 1;
}

// The id of the thread's own stack, under which its frames are in `stacks`; 0: it is not known.
static __always_inline u64 own_stack(struct work *work, const struct thread *thread,
                                     const struct python *python)
{
    u64 id = read_stack(work, thread->tgid, python, thread->tstate);

    return id && keep_stack(work, thread->tgid, id, 0) ? id : 0;
}

// Where the thread stands, at a place that is to be told.
static __always_inline u64 place(struct thread *thread, const struct python *python, u32 tid)
{
    struct work *work = own_work(tid);
    u64 stack = work ? own_stack(work, thread, python) : 0;

    if (!stack)
        lose(thread->tgid, LOST_STACK_UNKNOWN);
    return stack;
}
