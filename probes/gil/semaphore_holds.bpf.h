// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Holds of a GIL that is a semaphore of glibc's: that of CPython 2.7. What a hold is, is told in
// holds.bpf.h.
//
// Sites, all in the C library, and on instructions that the kernel emulates: in sem_wait and in its
// slow path the jump on whether the semaphore was taken, and in sem_post the jump before it is
// given back. So a record is never written by two threads at a time: one that has the semaphore,
// or is about to give it back, is alone. All semaphores of the process come there; the lock's is
// known by its address.

// Whether the semaphore at *address* is the lock of *first*, which may not be known yet: it is made
// with the first thread.
static __always_inline int is_first_lock(struct lock *first, u64 address)
{
    u32 tgid = first->tgid;

    if (first->cond)
        return first->cond == address;
    struct semaphore *semaphore = semaphores.lookup(&tgid);

    if (!semaphore || !is_lock(semaphore, address))
        return 0;
    first->cond = address;
    return 1;
}

// The jump behind `lock cmpxchg` in sem_wait and in its slow path, with the semaphore's address in
// SEMAPHORE_REGISTER.
int on_semaphore_acquire(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u32 slot = current_slot(ctx);
    struct window *window = windows.lookup(&slot);
    struct lock *first = locks.lookup(&slot);

    if (!window || !first || has_stopped())
        return 0;
    if (is_exchanged(ctx) && is_first_lock(first, SEMAPHORE_REGISTER(ctx))) {
        take_lock(first, first, window, now);
    } else {
        // Other semaphores use up the window, too.
        __sync_fetch_and_add(&first->traps, 1);
        open_until(first, window, now);
    }
    return 0;
}

// The jump in sem_post(semaphore) that is left behind before the semaphore is given back; it is
// come to once more where another thread has changed the semaphore meanwhile.
int on_semaphore_release(struct pt_regs *ctx)
{
    u64 now = now_ns();
    u32 slot = current_slot(ctx);
    struct window *window = windows.lookup(&slot);
    struct lock *first = locks.lookup(&slot);

    if (!window || !first || has_stopped())
        return 0;
    __sync_fetch_and_add(&first->traps, 1);
    if (is_first_lock(first, PT_REGS_PARM1(ctx)))
        release_lock(first, window, now);
    return 0;
}
