// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// What threads of CPython 3.13 and later wait for besides the GIL: locks of objects, locks of the
// program, and stops of the world.
//
// All of these are probes on the contended path: at the calls of libc's semaphores, which no thread
// reaches that need not wait, and where a mutex that is taken is tried for a while.

#include "locks/abi.bpf.h"

#include "common/configuration.bpf.h"

#include "common/kernel.bpf.h"

#include "common/losses.bpf.h"

#include "python/code.bpf.h"

#include "locks/types.bpf.h"

#include "locks/maps.bpf.h"

#include "common/window.bpf.h"

#include "locks/threads.bpf.h"

#include "locks/stack.bpf.h"

#include "locks/kinds.bpf.h"

#include "locks/holders.bpf.h"

#include "common/span_budget.bpf.h"

#include "locks/timeline.bpf.h"

#include "locks/stops.bpf.h"

#include "locks/waits.bpf.h"

#include "locks/lifetime.bpf.h"
