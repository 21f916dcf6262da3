// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Where CPython keeps its threads, their frames and their code, and what tells one code object from
// another.

#define MAX_CODE_POINTERS 4
#define CODE_NAME 1  // its place in the row of pointers
#define BYTES_READ 2 // of a line table, in words: so much memory every bytes object has

// Where a process' Python keeps its threads and their frames.
struct python {
    u64 interpreters;     // address of the pointer to the newest interpreter
    u64 namespace_device; // of the pid namespace in which it knows its threads; 0 and 0: the
    u64 namespace_inode;  // agent's own
    u32 interpreter_next;
    u32 threads_head;
    u32 gil_pointer; // 0: all interpreters share one
    u32 gil_cond;    // from where that points to
    u32 tstate_next;
    u32 tstate_interpreter;
    u32 has_tstate_previous; // otherwise threads are listed one way only
    u32 thread_id;
    u32 native_thread_id; // 0: the thread's descriptor has it, at descriptor_tid
    u32 descriptor_tid;
    u32 tstate_frame;
    u32 cframe_frame; // with has_cframe: from where tstate_frame points to
    u32 has_cframe;
    u32 frame_begin; // what comes before is not read, and the offsets below begin here
    u32 frame_size;  // what has to be read of it
    u32 frame_previous;
    u32 frame_code;
    u32 frame_instruction;
    u32 instruction_is_pointer; // otherwise it is an int32
    u32 frame_owner;            // 0: there is none
    u32 frame_root;
    u32 frame_root_marks; // bit k: frame_root is k in the first frame of a thread
    u32 code_pointers;    // in a code object: those from file and name to line table, in a row
    u32 code_pointers_size;
    u32 str_hash;           // in a str
    u32 line_table_content; // in the bytes object of a line table
    u32 attachment;         // what an earlier one of the same number has been sent does not count
    u32 padding;
};

static __always_inline int read_u64(u64 *value, u64 address)
{
    return read_user(value, sizeof(*value), (void *)address);
}

static __always_inline u64 mixed(u64 hash, u64 value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    return hash ^ hash >> 32;
}

// What tells a code object from one that gets its memory later: where its names and its line table
// are, and some of what is in them. User space reads the names later, and checks this first.
// *pointers* is working space.
static __always_inline int code_identity(u32 *identity, u64 *pointers, const struct python *python,
                                         u64 code)
{
    u64 hash = 0, name_hash = 0, content[BYTES_READ] = {};
    u32 size = python->code_pointers_size;

    pointers[MAX_CODE_POINTERS - 1] = 0;
    if (size > MAX_CODE_POINTERS * sizeof(u64) ||
        read_user(pointers, size, (void *)(code + python->code_pointers)))
        return -1;
    for (u32 at = 0; at < MAX_CODE_POINTERS; at++)
        hash = mixed(hash, pointers[at]);
    u64 line_table = pointers[(size / sizeof(u64) - 1) & (MAX_CODE_POINTERS - 1)];

    if (read_user(content, sizeof(content), (void *)(line_table + python->line_table_content)) ||
        read_u64(&name_hash, pointers[CODE_NAME] + python->str_hash))
        return -1;
    for (u32 at = 0; at < BYTES_READ; at++)
        hash = mixed(hash, content[at]);
    *identity = mixed(hash, (u32)name_hash);
    return 0;
}
