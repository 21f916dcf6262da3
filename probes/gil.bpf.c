// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// All programs on the GIL, which share their tables: waits are always seen, holds in full mode and
// in windows.
//
// A table is called by its name where it is used, which BCC allows in one text alone: so this is
// one, of these files in this order.

#include "gil/abi.bpf.h"

#include "common/configuration.bpf.h"

#include "common/kernel.bpf.h"

#include "common/registers.bpf.h"

#include "common/arithmetic.bpf.h"
#include "common/histogram.bpf.h"

#include "common/losses.bpf.h"

#include "python/code.bpf.h"

#include "gil/types.bpf.h"

#include "gil/maps.bpf.h"

#include "gil/steps.bpf.h"

#include "gil/wait_windows.bpf.h"

#include "gil/regions.bpf.h"

#include "common/span_budget.bpf.h"

#include "gil/timeline.bpf.h"

#include "python/stack.bpf.h"

#include "python/thread_state.bpf.h"

#include "gil/blame.bpf.h"

#include "gil/traces.bpf.h"

#include "gil/held_traces.bpf.h"

#include "gil/drop_requests.bpf.h"

#include "gil/waits.bpf.h"

#include "gil/yields.bpf.h"

#include "gil/holder_trace.bpf.h"

#include "gil/semaphore.bpf.h"

#include "gil/walk.bpf.h"

#include "pypy/stack.bpf.h"

#include "gil/turns.bpf.h"

#include "gil/holds.bpf.h"

#include "gil/semaphore_holds.bpf.h"

#include "gil/lifetime.bpf.h"
