// SPDX-License-Identifier: Apache-2.0
//
// What the agent asks of the keeper and what it is told, over a socket of whole messages
// (SOCK_SEQPACKET). ``gilscope.bpf.uprobes.keeper`` writes the same by hand.
#ifndef GILSCOPE_KEEPER_MESSAGES_H
#define GILSCOPE_KEEPER_MESSAGES_H

#include <stdint.h>

enum {
    MAX_OFFSETS = 4096, // in one request
    EVERY_PROCESS = 0,
};

enum request_kind {
    REQUEST_SETUP, // comes first; with the descriptor of the table of windows, if there is one
    REQUEST_OPEN,  // with the descriptors of the program and of the file
    REQUEST_CLOSE,
    REQUEST_BEAT, // the agent is alive, as any other request says too
};

struct request {
    uint32_t kind;
    uint32_t number; // OPEN: of the group that is to be made; CLOSE: of this request
    union {
        struct {
            uint32_t lease_ms;     // silence after which windows are closed
            uint32_t value_size;   // of the table of windows; 0: there is none
            uint32_t until_offset; // of the end of a window, in it
            uint32_t padding;
        } setup;
        struct {
            int32_t pid;       // EVERY_PROCESS: all that map the file
            int32_t perf_type; // of uprobe events; -1: links are to be made
            uint32_t is_window;
            uint32_t padding;
            uint64_t cookie; // with a window: its slot
        } open;
    };
    uint64_t count;
    uint64_t items[]; // OPEN: offsets in the file, bytes; CLOSE: numbers of groups
};

enum reply_kind {
    REPLY_READY, // comes first, by itself; with an error the keeper ends
    REPLY_OPENED,
    REPLY_CLOSED, // the kernel has taken out the last probe
    REPLY_LAPSED, // the agent was silent for too long, and the windows are being closed
};

struct reply {
    uint32_t kind;
    uint32_t number;
    int32_t error; // errno, or 0
};

#endif
