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

// Returns the id of the stack of *tstate*, under which its frames are in `stacks`; 0: it is not
// known.
static __always_inline u64 stack_of(struct work *work, u32 tgid, const struct python *python,
                                    u64 tstate)
{
    struct stack *stack = &work->stack;
    struct stack_key key = {.tgid = tgid};

    if (!tstate || read_frames(stack, python, tstate) || !stack->depth)
        return 0;
    key.id = mixed(stack->depth, stack->is_cut);
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        if (at >= stack->depth)
            break;
        if (code_identity(&stack->identities[at], work->pointers, python, stack->codes[at]))
            return 0;
        key.id = mixed(mixed(key.id, stack->codes[at]), stack->instructions[at]);
        key.id = mixed(key.id, stack->identities[at]);
    }
    if (!stacks.lookup(&key) && stacks.update(&key, stack)) {
        lose(tgid, LOST_TABLE_FULL);
        return 0;
    }
    return key.id;
}

// Where the thread stands, at a place that is to be told.
static __always_inline u64 place(struct thread *thread, const struct python *python, u32 tid)
{
    struct work *work = own_work(tid);
    u64 stack = work ? stack_of(work, thread->tgid, python, thread->tstate) : 0;

    if (!stack)
        lose(thread->tgid, LOST_STACK_UNKNOWN);
    return stack;
}
