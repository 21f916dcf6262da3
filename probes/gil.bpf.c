// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// All programs on the GIL, which share their tables: waits are always seen, holds in full mode.

#include "gil.bpf.h"

#include "gil_timeline.bpf.c"

#include "gil_stack.bpf.c"

#include "gil_thread.bpf.c"

#include "gil_blame.bpf.c"

#include "gil_wait.bpf.c"

#include "gil_walk.bpf.c"

#include "gil_hold.bpf.c"

#include "gil_life.bpf.c"
