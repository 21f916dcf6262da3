// What has been read of a log, as plain Python values.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "log.h"

// Whether counts over time are wanted: a kilobyte for each conflict, which who looks every few
// seconds has no use for.
enum stm_extent {
    STM_SUMS_ALONE,
    STM_WITH_SERIES,
};

// Returns a new dictionary; gilscope.stm_log.reader says what is in it. NULL with an exception set.
// Without counts over time there are empty bytes in their place.
PyObject *stm_snapshot(const struct stm_log *log, enum stm_extent extent);
