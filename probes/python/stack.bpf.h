// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Python stacks: of the thread that runs the program, and of the one that holds the GIL.
//
// The first does not change while it is read. The second runs on another CPU meanwhile: it cannot
// release the GIL while its mutex is held here, but it calls and returns. A chain of frames is
// taken for true only if it ends where a thread's first frame is; frames at its inner end that were
// other ones when they were read again are left out. User space checks that each is a code
// object's.

#define MAX_STEPS 48  // frames, with those between that C code has put there
#define WALK_NS 20000 // a walk that takes longer was interrupted
#define MAX_WALKS 5
#define OWNER_GENERATOR 1
// What is counted while frames are read is kept in the thread's record: of a number in a register
// the verifier follows every value by itself.
#define ID_OF_READ_STACK (1ULL << 63)

// The verifier wants to see the bound at each use, where the compiler knows better and drops it.
static __always_inline u32 place_in_stack(u32 place)
{
    asm volatile("" : "+r"(place));
    return place & (STACK_DEPTH - 1);
}

// The masks below keep offsets inside the copy of a frame, which the verifier cannot know.
static __always_inline u64 frame_u64(const struct blame *blame, u32 offset)
{
    return *(const u64 *)&blame->frame[offset & (MAX_FRAME_SIZE - 8)];
}

static __always_inline u32 frame_u32(const struct blame *blame, u32 offset)
{
    return *(const u32 *)&blame->frame[offset & (MAX_FRAME_SIZE - 4)];
}

static __always_inline int read_frame(struct blame *blame, const struct python *python, u64 address)
{
    return read_user(blame->frame, python->frame_size & (MAX_FRAME_SIZE - 1),
                     (void *)(address + python->frame_begin));
}

static __always_inline u64 frame_code(const struct blame *blame, const struct python *python)
{
    return frame_u64(blame, python->frame_code) & ~(u64)REFERENCE_FLAGS;
}

static __always_inline u32 frame_instruction(const struct blame *blame, const struct python *python)
{
    if (!python->instruction_is_pointer)
        return frame_u32(blame, python->frame_instruction);
    return frame_u64(blame, python->frame_instruction) - frame_code(blame, python);
}

static __always_inline u32 frame_owner(const struct blame *blame, const struct python *python)
{
    return python->frame_owner ? blame->frame[python->frame_owner & (MAX_FRAME_SIZE - 1)] : 0;
}

static __always_inline int innermost_frame(u64 *address, const struct python *python, u64 tstate)
{
    if (read_u64(address, tstate + python->tstate_frame))
        return -1;
    if (python->has_cframe && read_u64(address, *address + python->cframe_frame))
        return -1;
    return 0;
}

enum walk {
    WALK_DONE,
    WALK_NO_PYTHON,
    WALK_GENERATOR, // the chain ends in a generator, which is about to be entered or has been left
    WALK_FAULT,     // unreadable
    WALK_TORN,      // the chain does not lead to a thread's first frame
    WALK_CHANGED,   // it is another one by now
};

static __always_inline enum walk walk_once(struct blame *blame, const struct python *python,
                                           u64 tstate)
{
    struct stack *stack = &blame->stack;
    u64 address = 0;
    u32 root = 0, owner = 0;

    blame->walk_began_ns = now_ns();
    stack->state = STACK_WHOLE;
    stack->depth = 0;
    if (innermost_frame(&address, python, tstate))
        return WALK_FAULT;
    if (!address)
        return WALK_NO_PYTHON;
    blame->innermost = address;
#pragma clang loop unroll(disable)
    for (int step = 0; step < MAX_STEPS; step++) {
        if (!address) {
            if (owner == OWNER_GENERATOR && stack->depth) {
                stack->state = STACK_CUT;
                return WALK_GENERATOR;
            }
            if (!(python->frame_root_marks >> (root & 31) & 1))
                return WALK_TORN;
            return stack->depth ? WALK_DONE : WALK_NO_PYTHON;
        }
        if (stack->depth >= STACK_DEPTH)
            break;
        if (read_frame(blame, python, address))
            return WALK_FAULT;
        u64 caller = frame_u64(blame, python->frame_previous);

        root = blame->frame[python->frame_root & (MAX_FRAME_SIZE - 1)];
        owner = frame_owner(blame, python);
        if (owner < OWNER_WITHOUT_CODE) {
            u64 code = frame_code(blame, python);
            u32 at = place_in_stack(stack->depth);

            if (!code)
                return WALK_TORN;
            blame->addresses[at] = address;
            stack->codes[at] = code;
            stack->instructions[at] = frame_instruction(blame, python);
            stack->depth++;
        }
        address = caller;
    }
    stack->state = STACK_CUT;
    return stack->depth ? WALK_DONE : WALK_TORN;
}

// Whether the thread still is where it was when the walk began.
static __always_inline int is_still_there(struct blame *blame, const struct python *python,
                                          u64 tstate)
{
    struct stack *stack = &blame->stack;
    u64 address = 0;

    // A program that calls the same function again and again may be caught in it twice, with its
    // caller further on in between; not four times in turn.
#pragma clang loop unroll(disable)
    for (int turn = 0; turn < 2; turn++) {
        if (stack->depth > 1 && (read_frame(blame, python, blame->addresses[1]) ||
                                 frame_instruction(blame, python) != stack->instructions[1]))
            return 0;
        if (innermost_frame(&address, python, tstate) || address != blame->innermost)
            return 0;
    }
    if (now_ns() - blame->walk_began_ns > WALK_NS)
        return 0;
    return !read_frame(blame, python, blame->addresses[0]) &&
           frame_code(blame, python) == stack->codes[0];
}

// Whether this walk has come by the same frames as the last one.
static __always_inline int is_same_walk(const struct blame *blame)
{
    const struct stack *stack = &blame->stack;

    if (stack->depth != blame->last_depth)
        return 0;
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        if (at >= stack->depth)
            break;
        u32 place = place_in_stack(at);

        if (blame->addresses[place] != blame->last_addresses[place] ||
            stack->codes[place] != blame->last_codes[place] ||
            (at && stack->instructions[place] != blame->last_instructions[place]))
            return 0;
    }
    return 1;
}

// Whether both walks are whole, and of the same thread: its first frame stays as long as it runs.
// One that has ended elsewhere was led astray, by memory that another frame uses by now.
static __always_inline int begins_like_last(const struct blame *blame)
{
    u32 here = place_in_stack(blame->stack.depth - 1);
    u32 there = place_in_stack(blame->last_depth - 1);

    return blame->last_depth && blame->stack.depth && blame->last_state == STACK_WHOLE &&
           blame->addresses[here] == blame->last_addresses[there] &&
           blame->stack.codes[here] == blame->last_codes[there];
}

static __always_inline void remember_walk(struct blame *blame)
{
    __builtin_memcpy(blame->last_addresses, blame->addresses, sizeof(blame->addresses));
    __builtin_memcpy(blame->last_codes, blame->stack.codes, sizeof(blame->stack.codes));
    __builtin_memcpy(blame->last_instructions, blame->stack.instructions,
                     sizeof(blame->stack.instructions));
    blame->last_depth = blame->stack.depth;
    blame->last_state = blame->stack.state;
}

// Leaves of the stack only those frames that are the same in the last walk: an inner frame that was
// left meanwhile may stand where another one has come to stand since, and then leads into it.
static __always_inline void keep_common(struct blame *blame)
{
    struct stack *stack = &blame->stack;
    u64 outermost = blame->last_addresses[place_in_stack(blame->last_depth - 1)];
    u64 own_outermost = blame->addresses[place_in_stack(stack->depth - 1)];

    blame->here = stack->depth;
    blame->there = blame->last_depth;
    // Stored each time, so that the loop has no branches and ends with a jump to its beginning:
    // kernels before 6.7 take no loop that is run on into. Bounds are read again, as below.
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        // Two that were cut off may not end at the same one.
        u32 is_here = (at < READ_ONCE_U32(stack->depth)) & (blame->addresses[at] == outermost);
        u32 is_there =
            (at < READ_ONCE_U32(blame->last_depth)) & (blame->last_addresses[at] == own_outermost);

        blame->here = is_here ? at + 1 : READ_ONCE_U32(blame->here);
        blame->there = is_there ? at + 1 : READ_ONCE_U32(blame->there);
    }
    blame->common = 0;
#pragma clang loop unroll(disable)
    for (u32 step = 0; step < STACK_DEPTH; step++) {
        u32 here = place_in_stack(READ_ONCE_U32(blame->here) - 1 - step);
        u32 there = place_in_stack(READ_ONCE_U32(blame->there) - 1 - step);

        if (step >= READ_ONCE_U32(blame->here) || step >= READ_ONCE_U32(blame->there) ||
            blame->addresses[here] != blame->last_addresses[there] ||
            stack->codes[here] != blame->last_codes[there])
            break;
        // The innermost frame of both is the first to be left: its caller may have gone on before
        // it was read, both times.
        if (step + 1 == READ_ONCE_U32(blame->here) && step + 1 == READ_ONCE_U32(blame->there))
            break;
        blame->common = step + 1;
        // It has gone on since: whatever it has called is another call.
        if (stack->instructions[here] != blame->last_instructions[there])
            break;
    }
    // Read again: of the copy that the loop has compared, the verifier would follow every bound.
    u32 first = READ_ONCE_U32(blame->here) - READ_ONCE_U32(blame->common);

#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        u32 to = place_in_stack(at), from = place_in_stack(at + first);

        if (at >= blame->common)
            break;
        stack->codes[to] = stack->codes[from];
        stack->instructions[to] = stack->instructions[from];
    }
    stack->depth = blame->common;
    stack->state = STACK_TORN;
}

// Gives the stack its id. Where a program drops code all the time, another function may stand at
// the same addresses in the next instant, so no id is taken for known before this.
static __always_inline int identify(struct blame *blame, const struct python *python)
{
    struct stack *stack = &blame->stack;

    stack->id = mixed(stack->depth, stack->state);
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        u32 place = place_in_stack(at);

        if (at >= stack->depth)
            break;
        if (code_identity(&stack->identities[place], blame->pointers, python, stack->codes[place]))
            return -1;
        stack->id = mixed(mixed(stack->id, stack->codes[place]), stack->instructions[place]);
        stack->id = mixed(stack->id, stack->identities[place]);
    }
    stack->id |= ID_OF_READ_STACK;
    return 0;
}

// The id of the stack that was read and has one; it is sent to user space unless that has been
// done.
static __always_inline u64 sent_stack(struct blame *blame, const struct python *python)
{
    struct stack *stack = &blame->stack;
    u32 tgid = blame->tgid;
    u8 sent = 1;

    struct stack_key key = {.id = stack->id, .tgid = tgid, .attachment = python->attachment};

    if (sent_stacks.lookup(&key))
        return key.id;
    stack->tgid = tgid;
    // A program that makes new functions all the time must not fill the ring alone.
    if (!is_within_quota(tgid, QUOTA_STACKS, PARAMETER(MAX_STACKS_OF_PROCESS)) ||
        stacks.ringbuf_output(stack, sizeof(*stack), 0)) {
        lose(tgid, LOST_STACK_UNSENT);
    } else {
        use_quota(tgid, QUOTA_STACKS, 1);
        sent_stacks.update(&key, &sent);
    }
    return key.id;
}

static __always_inline u64 noted_stack(struct blame *blame, const struct python *python)
{
    if (identify(blame, python)) {
        lose(blame->tgid, LOST_STACK_TORN);
        return STACK_UNKNOWN;
    }
    return sent_stack(blame, python);
}

// One walk along the frames of a thread, which *may_run* meanwhile. Whether that will do; if not,
// it is remembered for the next one.
static __always_inline int walk_will_do(struct blame *blame, const struct python *python,
                                        int may_run)
{
    u64 tstate = blame->walked_tstate;
    enum walk walk = walk_once(blame, python, tstate);

    blame->walk = walk;
    if (!may_run || walk == WALK_NO_PYTHON)
        return 1;
    // Whoever has lost the CPU just then stays there. What a generator calls keeps it from being
    // left, so it is the innermost frame itself; the others have gone on since.
    if (walk == WALK_GENERATOR && blame->stack.depth == 1 && is_still_there(blame, python, tstate))
        return 1;
    if (walk == WALK_GENERATOR)
        blame->walk = WALK_TORN;
    if (walk != WALK_DONE)
        return 0;
    if (is_same_walk(blame) && is_still_there(blame, python, tstate))
        return 1;
    // The thread moves on all the time. What two walks have in common will do.
    blame->walk =
        blame->stack.state == STACK_WHOLE && begins_like_last(blame) ? WALK_CHANGED : WALK_TORN;
    if (blame->walk == WALK_CHANGED && blame->walks >= MAX_WALKS / 2)
        return 1;
    // What lacks its outer end, and then its inner one too, would say too little.
    if (blame->walks + 1 < MAX_WALKS)
        remember_walk(blame);
    return 0;
}

// The id of the stack that the last walk has come by.
static __always_inline u64 walked_stack(struct blame *blame, const struct python *python)
{
    if (blame->walk == WALK_NO_PYTHON)
        return STACK_NO_PYTHON;
    if (blame->walk == WALK_CHANGED)
        keep_common(blame);
    if (blame->walk == WALK_FAULT || blame->walk == WALK_TORN || !blame->stack.depth) {
        lose(blame->tgid, LOST_STACK_TORN);
        return STACK_UNKNOWN;
    }
    return noted_stack(blame, python);
}
