// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the loader has to say: the sizes of tables, and where the members of a GIL are.

// All configuration comes from the loader, so that a program never runs on a silent default.
#if !defined(MAX_TARGETS) || !defined(MAX_GILS) || !defined(MAX_THREADS) || \
    !defined(MAX_CALLER_RULES) || !defined(MAX_LOCKS) || !defined(MAX_STACKS) || \
    !defined(MAX_EDGES) || !defined(MAX_BLAMES) || !defined(NOTICE_PAGES) || \
    !defined(STACK_PAGES) || !defined(TABLE_FLAGS)
#error "the sizes of the tables must be given"
#endif
#if !defined(MAX_THREADS_OF_PROCESS) || !defined(MAX_BLAMES_OF_PROCESS) || \
    !defined(MAX_GILS_OF_PROCESS) || !defined(MAX_RETURN_SITES_OF_PROCESS) || \
    !defined(MAX_EDGES_OF_PROCESS) || !defined(MAX_STACKS_OF_PROCESS)
#error "how much of each table one process may have must be given"
#endif
#if !defined(GIL_STATE_OFFSET) || !defined(GIL_MUTEX_OFFSET)
#error "where the members of a GIL are must be given"
#endif
#define MAX_LOSSES (16 * MAX_TARGETS)
