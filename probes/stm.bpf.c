// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
//
// Software transactions, of RPython programs such as PyPy-STM, and of GCC's libitm.
//
// All of these are probes on the entries of functions. What begins a transaction returns a second
// time when the transaction is tried again, and what ends or aborts one may never return: a probe
// on a return would kill the program.

#include "stm.bpf.h"

#include "stm_rpython.bpf.c"

#include "stm_libitm.bpf.c"

#include "stm_life.bpf.c"
