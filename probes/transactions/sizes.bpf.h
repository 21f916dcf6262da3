// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the loader has to say: the sizes of tables.

#if !defined(MAX_TARGETS) || !defined(MAX_THREADS) || !defined(MAX_REASONS) || \
    !defined(MAX_REASONS_OF_PROCESS) || !defined(TABLE_FLAGS) || !defined(NOTICE_PAGES)
#error "the sizes of the tables must be given"
#endif
#define MAX_LOSSES (8 * MAX_TARGETS)
