// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What processors do differently with the address that a function returns to, and with the result
// of an atomic exchange. BCC defines bpf_target_* and the other registers.

#if defined(bpf_target_arm64)

// A call leaves it in a register.
static __always_inline int return_address_at_entry(struct pt_regs *ctx, u64 *address)
{
    *address = PT_REGS_RET(ctx);
    return 0;
}

// On the stack it may be signed, above what addresses of processes have.
static __always_inline u64 without_signature(u64 address)
{
    return address & ((1ULL << 48) - 1);
}

// Nothing looks for semaphores there.
#define SEMAPHORE_REGISTER(ctx) 0

static __always_inline int is_exchanged(struct pt_regs *ctx)
{
    return 0;
}

#else

#define ZERO_FLAG 0x40

// Where the functions of glibc's on semaphores keep the address of theirs, rbx.
#define SEMAPHORE_REGISTER(ctx) ((ctx)->bx)

// Whether the `lock cmpxchg` before has written.
static __always_inline int is_exchanged(struct pt_regs *ctx)
{
    return (ctx->flags & ZERO_FLAG) != 0;
}

// A call leaves it on the stack.
static __always_inline int return_address_at_entry(struct pt_regs *ctx, u64 *address)
{
    return read_user(address, sizeof(*address), (void *)PT_REGS_SP(ctx));
}

static __always_inline u64 without_signature(u64 address)
{
    return address;
}

#endif
