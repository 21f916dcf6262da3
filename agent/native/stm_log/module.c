// The Python module gilscope.stm_log._stm_log: a log that is fed with bytes and asked for its sums.
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct log_object {
    PyObject_HEAD struct stm_log log;
    struct stm_scale *scales;
    // While it works without the interpreter's lock.
    bool is_busy;
};

static bool parse_table(const char *name, enum stm_table_id *table)
{
    *table = STM_TABLES;
    if (!name)
        return true;
    for (int id = 0; id < STM_TABLES; id++) {
        if (strcmp(name, stm_table((enum stm_table_id)id)->name) == 0) {
            *table = (enum stm_table_id)id;
            return true;
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no table of events %s", name);
    return false;
}

static bool parse_semantics(const char *name, int *semantics)
{
    *semantics = -1;
    if (!name)
        return true;
    if (name[0] == 'S' && name[1] >= '0' && name[1] <= '2' && !name[2]) {
        *semantics = STM_S0 + name[1] - '0';
        return true;
    }
    PyErr_Format(PyExc_ValueError, "there are no semantics %s", name);
    return false;
}

static bool parse_scale(PyObject *item, struct stm_scale *scale)
{
    unsigned long long origin_ns, total_ns;
    unsigned int cells;

    if (!PyArg_ParseTuple(item, "KKI", &origin_ns, &total_ns, &cells))
        return false;
    if (!cells || cells > STM_BINS) {
        PyErr_Format(PyExc_ValueError, "a scale has 1 to %d cells", STM_BINS);
        return false;
    }
    *scale = (struct stm_scale){
        .origin_ns = origin_ns,
        .total_ns = total_ns,
        .cells = cells,
        .has_origin = true,
    };
    return true;
}

static bool parse_scales(PyObject *sequence, struct stm_scale **scales, size_t *count)
{
    *scales = NULL;
    *count = 0;
    if (!sequence)
        return true;
    Py_ssize_t length = PyTuple_Size(sequence);
    if (length < 0)
        return false;
    *scales = calloc((size_t)length + 1, sizeof(**scales));
    if (!*scales) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t at = 0; at < length; at++) {
        if (!parse_scale(PyTuple_GetItem(sequence, at), &(*scales)[at])) {
            free(*scales);
            return false;
        }
    }
    *count = (size_t)length;
    return true;
}

static bool draw_secret(uint64_t *secret)
{
    // Before the kernel has any randomness there are no logs either.
    if (getrandom(secret, sizeof(*secret), GRND_NONBLOCK) == sizeof(*secret))
        return true;
    PyErr_SetFromErrno(PyExc_OSError);
    return false;
}

static PyObject *new_log(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"table", "semantics", "original", "scales", NULL};
    const char *table = NULL, *semantics = NULL;
    PyObject *sequence = NULL;
    int is_original = 0;
    struct stm_options options = {0};
    struct stm_scale *scales;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$zzpO!", names, &table, &semantics,
                                     &is_original, &PyTuple_Type, &sequence))
        return NULL;
    if (!draw_secret(&options.secret) || !parse_table(table, &options.table) ||
        !parse_semantics(semantics, &options.semantics) ||
        !parse_scales(sequence, &scales, &options.scale_count))
        return NULL;
    options.rules = is_original ? STM_ORIGINAL : STM_CORRECTED;
    options.scales = scales;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct log_object *self = (struct log_object *)allocate(type, 0);
    if (!self) {
        free(scales);
        return NULL;
    }
    self->scales = scales;
    if (!stm_log_init(&self->log, &options)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void dealloc_log(PyObject *object)
{
    struct log_object *self = (struct log_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    stm_log_free(&self->log);
    free(self->scales);
    release(self);
    Py_DECREF(type);
}

static bool is_free(const struct log_object *self)
{
    if (self->is_busy)
        PyErr_SetString(PyExc_RuntimeError, "the log is in use by another thread");
    return !self->is_busy;
}

static PyObject *feed(struct log_object *self, PyObject *data)
{
    Py_buffer view;

    if (!is_free(self))
        return NULL;
    if (self->log.has_ended) {
        PyErr_SetString(PyExc_ValueError, "the log has ended");
        return NULL;
    }
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE))
        return NULL;
    self->is_busy = true;
    PyThreadState *state = PyEval_SaveThread();
    bool done = stm_log_feed(&self->log, view.buf, (size_t)view.len);
    PyEval_RestoreThread(state);
    self->is_busy = false;
    PyBuffer_Release(&view);
    if (!done)
        return PyErr_NoMemory();
    return PyBool_FromLong(self->log.state != STM_NOT_A_LOG);
}

static PyObject *finish(struct log_object *self, PyObject *Py_UNUSED(ignored))
{
    if (!is_free(self))
        return NULL;
    if (!stm_log_finish(&self->log))
        return PyErr_NoMemory();
    return Py_NewRef(Py_None);
}

static PyObject *snapshot(struct log_object *self, PyObject *Py_UNUSED(ignored))
{
    return is_free(self) ? stm_snapshot(&self->log, STM_WITH_SERIES) : NULL;
}

static PyObject *sums(struct log_object *self, PyObject *Py_UNUSED(ignored))
{
    return is_free(self) ? stm_snapshot(&self->log, STM_SUMS_ALONE) : NULL;
}

static PyMethodDef log_methods[] = {
    {"feed", (PyCFunction)feed, METH_O, "Take the next bytes of the log; false: it is none."},
    {"finish", (PyCFunction)finish, METH_NOARGS, "Say that nothing follows."},
    {"snapshot", (PyCFunction)snapshot, METH_NOARGS, "Return all that is known so far."},
    {"sums", (PyCFunction)sums, METH_NOARGS, "Return the same without counts over time."},
    {0},
};

static PyType_Slot log_slots[] = {
    {Py_tp_doc, "An STM log that is read piece by piece."},
    {Py_tp_new, new_log},
    {Py_tp_dealloc, dealloc_log},
    {Py_tp_methods, log_methods},
    {0},
};

static PyType_Spec log_spec = {
    .name = "gilscope.stm_log._stm_log.Log",
    .basicsize = sizeof(struct log_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = log_slots,
};

static PyObject *table_names(void)
{
    PyObject *names = PyTuple_New(STM_TABLES);

    for (int id = 0; names && id < STM_TABLES; id++) {
        PyObject *name = PyUnicode_FromString(stm_table((enum stm_table_id)id)->name);
        if (!name || PyTuple_SetItem(names, id, name))
            Py_CLEAR(names);
    }
    return names;
}

static int fill_module(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &log_spec, NULL);
    PyObject *names = type ? table_names() : NULL;
    int failed = !names || PyModule_AddObjectRef(module, "Log", type) ||
                 PyModule_AddObjectRef(module, "TABLES", names) ||
                 PyModule_AddIntConstant(module, "MOST_ENTRIES", STM_MOST_ENTRIES) ||
                 PyModule_AddIntConstant(module, "MOST_PARTS", STM_MOST_PARTS);

    Py_XDECREF(names);
    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gilscope.stm_log._stm_log",
    .m_doc = "Reads STM logs and adds them up.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__stm_log(void)
{
    return PyModuleDef_Init(&module_definition);
}
