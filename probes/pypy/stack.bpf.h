// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// PyPy stacks: of the thread that runs the program, and of the one that holds the GIL.
//
// PyPy keeps a chain of nodes for its own profiler, whether that runs or not: one for each function
// that is interpreted, with a number of its code that is never used again, and one for each entry
// into code that the JIT has made, with where on the stack that returns to. Nodes lie on the C
// stack, so that the garbage collector moves none. Frames, which it does move, are read beside
// them, for the instruction: each is believed if its code has the number of the node.

#define THREADS_SEARCHED 256
#define NO_INSTRUCTION 0xffffffff

enum node_kind {
    NODE_CODE = 1, // value: the code's number
    NODE_BLACKHOLE,
    NODE_JITTED, // value: an address on the stack, the return address lies below it
    NODE_TRACING,
    NODE_GC,
};

struct node {
    u64 next;
    u64 value;
    u64 kind;
};

// The kind of a node and what it is about, as one number: user space takes it apart.
#define NODE_KIND_BITS 3

static __always_inline u64 noted_node(const struct node *node)
{
    return node->value << NODE_KIND_BITS | node->kind;
}

// The frame that the reference at *address* leads to, 0 for one that exists in registers only.
static __always_inline u64 frame_at(const struct pypy *pypy, u64 address)
{
    u32 type = 0;
    u64 frame = address;

    if (!frame || read_user(&type, sizeof(type), (void *)frame))
        return 0;
    if (type == pypy->virtual_type && (read_u64(&frame, frame + pypy->virtual_forced) || !frame ||
                                       read_user(&type, sizeof(type), (void *)frame)))
        return 0;
    return type == pypy->frame_type || type == pypy->other_frame_type ? frame : 0;
}

// Gives the instruction of the frame that is believed to be that of code *number*, and continues
// with the frame of its caller.
static __always_inline u32 instruction_of(const struct pypy *pypy, u64 *frame, u64 number)
{
    u64 code = 0, known = 0, instruction = 0, caller = 0;

    if (!*frame)
        return NO_INSTRUCTION;
    if (read_u64(&code, *frame + pypy->frame_code) || read_u64(&known, code + pypy->code_number) ||
        known != number || read_u64(&instruction, *frame + pypy->frame_instruction) ||
        read_u64(&caller, *frame + pypy->frame_caller)) {
        *frame = 0;
        return NO_INSTRUCTION;
    }
    *frame = frame_at(pypy, caller);
    return instruction;
}

static __always_inline int walk_nodes(struct blame *blame, const struct pypy *pypy, u64 thread)
{
    struct stack *stack = &blame->stack;
    struct node node = {};
    u64 address = 0, context = 0, frame = 0;

    stack->state = STACK_WHOLE;
    stack->depth = 0;
    if (read_u64(&address, thread + pypy->thread_stack))
        return -1;
    if (!read_u64(&context, thread + pypy->thread_context) && context &&
        !read_u64(&frame, context + pypy->context_frame))
        frame = frame_at(pypy, frame);
#pragma clang loop unroll(disable)
    for (u32 step = 0; step < STACK_DEPTH; step++) {
        u32 at = place_in_stack(step);

        if (!address)
            return 0;
        if (read_user(&node, sizeof(node), (void *)address) || node.kind < NODE_CODE ||
            node.kind > NODE_GC)
            return -1;
        stack->instructions[at] = NO_INSTRUCTION;
        if (node.kind == NODE_CODE)
            stack->instructions[at] = instruction_of(pypy, &frame, node.value);
        if (node.kind == NODE_JITTED && read_u64(&node.value, node.value - sizeof(u64)))
            return -1;
        stack->codes[at] = noted_node(&node);
        stack->identities[at] = 0;
        stack->depth = step + 1;
        address = node.next;
    }
    if (address)
        stack->state = STACK_CUT;
    return 0;
}

// Reads the stack of the thread whose structure is at *thread*, and gives it its id.
static __always_inline u64 pypy_stack(struct blame *blame, const struct pypy *pypy,
                                      const struct python *python, u64 thread)
{
    struct stack *stack = &blame->stack;

    if (walk_nodes(blame, pypy, thread)) {
        lose(blame->tgid, LOST_STACK_TORN);
        return STACK_UNKNOWN;
    }
    if (!stack->depth)
        return STACK_NO_PYTHON;
    stack->id = mixed(stack->depth, stack->state);
#pragma clang loop unroll(disable)
    for (u32 at = 0; at < STACK_DEPTH; at++) {
        u32 place = place_in_stack(at);

        if (at >= stack->depth)
            break;
        stack->id = mixed(mixed(stack->id, stack->codes[place]), stack->instructions[place]);
    }
    stack->id |= ID_OF_READ_STACK;
    return sent_stack(blame, python);
}

static __always_inline int is_pypy_thread(const struct pypy *pypy, u64 thread, u32 tid)
{
    u64 ident = 0;
    u32 kernel_id = 0;

    return !read_u64(&ident, thread + pypy->thread_ident) &&
           !read_user(&kernel_id, sizeof(kernel_id), (void *)(ident + pypy->descriptor_tid)) &&
           kernel_id == tid;
}

// The structure of the thread *tid*, as its own namespace calls it; or 0.
static __always_inline u64 pypy_thread(struct blame *blame, const struct pypy *pypy, u32 tid)
{
    u64 thread = pypy->threads;

    if (blame->tstate && is_pypy_thread(pypy, blame->tstate, tid))
        return blame->tstate;
    blame->tstate = 0;
#pragma clang loop unroll(disable)
    for (int step = 0; step < THREADS_SEARCHED; step++) {
        if (read_u64(&thread, thread + pypy->thread_next) || !thread || thread == pypy->threads)
            return 0;
        if (is_pypy_thread(pypy, thread, tid)) {
            blame->tstate = thread;
            return thread;
        }
    }
    return 0;
}
