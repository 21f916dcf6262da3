#include "snapshot.h"

#include <string.h>

static const char *const states[] = {
    [STM_IN_HEADER] = "header", [STM_IN_LAYOUT] = "layout",         [STM_IN_RECORDS] = "records",
    [STM_IN_GAP] = "gap",       [STM_NOT_A_LOG] = "not an STM log",
};

static const char *const semantics[] = {[STM_S0] = "S0", [STM_S1] = "S1", [STM_S2] = "S2"};

// Sets *name* to *value*, which is taken over; NULL stands for a failure to make it.
static bool put(PyObject *dictionary, const char *name, PyObject *value)
{
    if (!value)
        return false;
    int failed = PyDict_SetItemString(dictionary, name, value);
    Py_DECREF(value);
    return !failed;
}

static bool put_number(PyObject *dictionary, const char *name, uint64_t value)
{
    return put(dictionary, name, PyLong_FromUnsignedLongLong(value));
}

static PyObject *gap(const struct stm_gap *gap)
{
    return Py_BuildValue("KKK", (unsigned long long)gap->offset, (unsigned long long)gap->nul_bytes,
                         (unsigned long long)gap->bytes);
}

static PyObject *event_counts(const struct stm_table *table, const uint64_t *counts)
{
    PyObject *found = PyDict_New();
    char unknown[32];

    for (int number = 0; found && number < STM_EVENT_NUMBERS; number++) {
        if (!counts[number])
            continue;
        const char *name = stm_event_name((enum stm_event)table->events[number]);
        if (table->events[number] == STM_UNKNOWN_EVENT) {
            PyOS_snprintf(unknown, sizeof(unknown), "%s_%d", name, number);
            name = unknown;
        }
        if (!put_number(found, name, counts[number]))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *waits(const struct stm_totals *totals)
{
    PyObject *found = PyDict_New();

    for (int event = 0; found && event < STM_EVENTS; event++) {
        if (!totals->waits[event])
            continue;
        PyObject *wait = Py_BuildValue("KK", (unsigned long long)totals->wait_ns[event],
                                       (unsigned long long)totals->waits[event]);
        if (!put(found, stm_event_name((enum stm_event)event), wait))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *numbers(const uint64_t *values, size_t count)
{
    PyObject *found = PyTuple_New((Py_ssize_t)count);

    for (size_t at = 0; found && at < count; at++) {
        PyObject *value = PyLong_FromUnsignedLongLong(values[at]);
        if (!value || PyTuple_SetItem(found, (Py_ssize_t)at, value))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *totals(const struct stm_account *account)
{
    const struct stm_totals *sums = &account->totals;
    const struct {
        const char *name;
        uint64_t value;
    } plain[] = {
        {"committed_ns", sums->committed_ns},
        {"aborted_ns", sums->aborted_ns},
        {"paused_ns", sums->paused_ns},
        {"cpu_ns", sums->cpu_ns},
        {"commits", sums->commits},
        {"aborts", sums->aborts},
        {"minor_gc_ns", sums->minor_gc_ns},
        {"major_gc_ns", sums->major_gc_ns},
        {"detached_ns", sums->detached_ns},
        {"paused_outside_ns", sums->paused_outside_ns},
        {"unfinished_ns", stm_account_unfinished_ns(account)},
        {"unexplained_ns", sums->unexplained_ns},
        {"unexplained", sums->unexplained},
        {"unlogged_commit_ns", sums->unlogged_commit_ns},
        {"unlogged_commits", sums->unlogged_commits},
    };
    PyObject *found = PyDict_New();
    bool done = found != NULL;

    for (size_t at = 0; done && at < sizeof(plain) / sizeof(plain[0]); at++)
        done = put_number(found, plain[at].name, plain[at].value);
    done = done && put(found, "waits", waits(sums)) &&
           put(found, "committed_slots", numbers(sums->committed_slots, STM_SLOTS)) &&
           put(found, "aborted_slots", numbers(sums->aborted_slots, STM_SLOTS));
    if (!done)
        Py_CLEAR(found);
    return found;
}

static PyObject *series(const struct stm_series *series, const struct stm_scale *scale,
                        enum stm_extent extent)
{
    if (extent == STM_SUMS_ALONE)
        return PyBytes_FromStringAndSize(NULL, 0);
    struct stm_series aligned = *series;
    if (!scale->cells)
        stm_series_align(&aligned, scale);
    return PyBytes_FromStringAndSize((const char *)aligned.bins, sizeof(aligned.bins));
}

static PyObject *entry(const struct stm_entry *entry, const struct stm_scale *scale,
                       enum stm_extent extent)
{
    const char *first = (const char *)entry->markers;
    PyObject *bins = series(&entry->series, scale, extent);

    if (!bins)
        return NULL;
    return Py_BuildValue("(sy#y#KKKON)", stm_event_name((enum stm_event)entry->event), first,
                         (Py_ssize_t)entry->length1, first + entry->length1,
                         (Py_ssize_t)entry->length2, (unsigned long long)entry->lost_ns,
                         (unsigned long long)entry->paused_ns, (unsigned long long)entry->count,
                         entry->is_rest ? Py_True : Py_False, bins);
}

static PyObject *entries(const struct stm_account *account, enum stm_extent extent)
{
    PyObject *found = PyTuple_New((Py_ssize_t)account->entries.count);

    for (uint32_t number = 0; found && number < account->entries.count; number++) {
        PyObject *one = entry(account->entries.list[number], &account->scale, extent);
        if (!one || PyTuple_SetItem(found, (Py_ssize_t)number, one))
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *part_of(const struct stm_part *part, const struct stm_account *account,
                         enum stm_table_id id, enum stm_extent extent)
{
    const struct stm_table *table = stm_table(id);
    PyObject *found = PyDict_New();

    if (!found)
        return NULL;
    bool done = put_number(found, "offset", part->offset) && put(found, "gap", gap(&part->gap)) &&
                put(found, "table", PyUnicode_FromString(table->name)) &&
                put(found, "semantics", PyUnicode_FromString(semantics[account->semantics])) &&
                put_number(found, "records", part->records) &&
                put(found, "counts", event_counts(table, part->counts)) &&
                put(found, "with_marker", event_counts(table, part->markers)) &&
                put_number(found, "threads", account->threads.seen) &&
                put_number(found, "first_ns", part->first_ns) &&
                put_number(found, "last_ns", part->last_ns) &&
                put_number(found, "oldest_ns", part->oldest_ns) &&
                put_number(found, "newest_ns", part->newest_ns) &&
                put_number(found, "charged_until_ns", account->last_ns) &&
                put_number(found, "backward_steps", part->backward_steps) &&
                put(found, "totals", totals(account)) &&
                put(found, "entries", entries(account, extent)) &&
                put_number(found, "origin_ns", account->scale.origin_ns) &&
                put_number(found, "bin_shift", account->scale.shift) &&
                put(found, "commits", series(&account->commits, &account->scale, extent)) &&
                put(found, "aborts", series(&account->aborts, &account->scale, extent));
    if (!done)
        Py_CLEAR(found);
    return found;
}

static PyObject *parts(const struct stm_log *log, enum stm_extent extent)
{
    PyObject *found = PyTuple_New((Py_ssize_t)log->part_count);

    for (size_t number = 0; found && number < log->part_count; number++) {
        enum stm_table_id table;
        struct stm_account *account = stm_part_account(log, log->parts[number], &table);
        if (!account) {
            Py_DECREF(found);
            return PyErr_NoMemory();
        }
        PyObject *one = part_of(log->parts[number], account, table, extent);
        stm_part_account_done(log->parts[number], account);
        if (!one || PyTuple_SetItem(found, (Py_ssize_t)number, one))
            Py_CLEAR(found);
    }
    return found;
}

PyObject *stm_snapshot(const struct stm_log *log, enum stm_extent extent)
{
    bool has_layout = log->part_count != 0;
    PyObject *found = PyDict_New();

    if (!found)
        return NULL;
    const char *layout = has_layout ? stm_shapes[log->layout].name : "";
    bool done = put(found, "state", PyUnicode_FromString(states[log->state])) &&
                put(found, "layout", PyUnicode_FromString(layout)) &&
                put_number(found, "bytes", log->offset + log->pending_bytes) &&
                put_number(found, "cut_tail_bytes", log->pending_bytes) &&
                put(found, "gap", gap(&log->gap)) && put(found, "parts", parts(log, extent));
    if (!done)
        Py_CLEAR(found);
    return found;
}
