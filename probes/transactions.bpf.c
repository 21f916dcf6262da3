// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Software transactions, of RPython programs such as PyPy-STM, and of GCC's libitm.
//
// All of these are probes on the entries of functions. What begins a transaction returns a second
// time when the transaction is tried again, and what ends or aborts one may never return: a probe
// on a return would kill the program.

#include "transactions/abi.bpf.h"

#include "common/configuration.bpf.h"

#include "common/kernel.bpf.h"

#include "common/arithmetic.bpf.h"
#include "common/histogram.bpf.h"

#include "common/losses.bpf.h"

#include "transactions/types.bpf.h"

#include "transactions/maps.bpf.h"

#include "common/window.bpf.h"

#include "transactions/steps.bpf.h"

#include "transactions/rpython.bpf.h"

#include "transactions/libitm.bpf.h"

#include "transactions/lifetime.bpf.h"
