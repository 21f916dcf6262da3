// What has been read of a log, as plain Python values.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "log.h"

// Returns a new dictionary; gilscope.stm.log says what is in it. NULL with an exception set.
PyObject *stm_snapshot(const struct stm_log *log);
