// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// The tables and the ring that the programs share with user space, and with one another.

// Filled by user space, one entry a traced process; an exec takes the first of them away.
BPF_F_TABLE("hash", u32, struct target, targets, ENTRIES(targets), TABLE_FLAGS);
BPF_F_TABLE("hash", u32, struct totals, totals, ENTRIES(totals), TABLE_FLAGS);
BPF_F_TABLE("hash", struct transaction_key, struct transaction, transactions, ENTRIES(transactions),
            TABLE_FLAGS);
// One entry a thread that has ended a transaction, kept until user space has counted a dead one.
BPF_F_TABLE("hash", u32, struct thread, threads, ENTRIES(threads), TABLE_FLAGS);
BPF_F_TABLE("hash", struct reason_key, u64, reasons, ENTRIES(reasons), TABLE_FLAGS);

// struct notice
BPF_RINGBUF_OUTPUT(notices, ENTRIES(notices));
