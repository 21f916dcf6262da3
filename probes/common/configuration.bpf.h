// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What the loader has to say. All configuration comes from there, so that a program never runs on a
// silent default: what is missing is a name that the compiler does not know.

// How many entries *table* has, or pages where it is a ring.
#define ENTRIES(table) ENTRIES_OF_##table

// What differs from one machine or run to the next: a u64 that does not change once the programs
// are loaded.
//
// Where they are compiled ahead of that (COMPILED_AHEAD), *name* is the number of the parameter,
// and stands in an instruction whose value the loader replaces. So it costs an instruction that
// loads a number; the kernel knows the number, and takes out what is never reached with it.
#ifdef COMPILED_AHEAD
#define PARAMETER_MARK 0x67696c5300000000ULL
#define PARAMETER(name) \
    ({ \
        u64 value_of_parameter; \
        asm("%0 = %1 ll" : "=r"(value_of_parameter) : "i"(PARAMETER_MARK | (name))); \
        value_of_parameter; \
    })
#else
#define PARAMETER(name) ((u64)(name))
#endif
