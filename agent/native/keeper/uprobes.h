// SPDX-License-Identifier: Apache-2.0
#ifndef GILSCOPE_KEEPER_UPROBES_H
#define GILSCOPE_KEEPER_UPROBES_H

#include <stdint.h>

struct place {
    int program_fd;
    int file_fd;
    int32_t pid;       // 0: all processes that map the file
    int32_t perf_type; // -1: a link for all offsets; otherwise a perf event for each
    uint64_t cookie;
    const uint64_t *offsets;
    uint64_t count;
};

// Run a program at all offsets of a file in one process. Stores the descriptors that hold it there
// in *fds*, which has room for as many as there are offsets, and returns how many they are. After a
// failure, with errno set, returns -1 less those that had been opened before.
int open_uprobes(const struct place *place, int *fds);

// Let the window in *slot* of a table end at *now_ns*, unless it has ended already.
void end_window(int map_fd, uint32_t slot, uint32_t value_size, uint32_t until_offset,
                uint64_t now_ns);

#endif
