// The Python module gilscope.gil.tracing._lock_sampler: a sampler whose thread does not hold the
// GIL.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>

#include "sampler.h"

struct sampler_object {
    PyObject_HEAD struct lock_sampler sampler;
};

static PyObject *new_sampler(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"seed", "locked_offset", "cpu_share", "enough_samples", NULL};
    unsigned long long seed;
    long locked_offset;
    double cpu_share, enough_samples = INFINITY;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "Kld|d", names, &seed, &locked_offset,
                                     &cpu_share, &enough_samples))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct sampler_object *self = (struct sampler_object *)allocate(type, 0);
    if (self &&
        !lock_sampler_init(&self->sampler, seed, locked_offset, cpu_share, enough_samples)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void dealloc_sampler(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    // Nobody is in `run`, which has a reference.
    lock_sampler_free(&((struct sampler_object *)object)->sampler);
    release(object);
    Py_DECREF(type);
}

// Returns the sampler with its mutex held.
static struct lock_sampler *enter(struct sampler_object *self)
{
    struct lock_sampler *sampler = &self->sampler;

    if (pthread_mutex_trylock(&sampler->mutex)) {
        Py_BEGIN_ALLOW_THREADS;
        pthread_mutex_lock(&sampler->mutex);
        Py_END_ALLOW_THREADS;
    }
    return sampler;
}

static void leave(struct lock_sampler *sampler)
{
    pthread_mutex_unlock(&sampler->mutex);
}

static PyObject *add(struct sampler_object *self, PyObject *args)
{
    unsigned long long cond, open_since_ns;
    long long at_ns, covered_ns;
    struct remote remote;
    struct held_word word = self->sampler.word;
    Py_ssize_t size = (Py_ssize_t)word.size;
    unsigned long long value = word.value;
    int is_held_if_equal = word.is_held_if_equal;

    if (!PyArg_ParseTuple(args, "iKiiL(LK)|(lnKp)", &remote.pid, &cond, &remote.tid, &remote.memory,
                          &at_ns, &covered_ns, &open_since_ns, &word.offset, &size, &value,
                          &is_held_if_equal))
        return NULL;
    if (size < 1 || size > (Py_ssize_t)sizeof(word.value)) {
        PyErr_SetString(PyExc_ValueError, "a word has 1 to 8 bytes");
        return NULL;
    }
    word.size = (size_t)size;
    word.value = value;
    word.is_held_if_equal = is_held_if_equal;
    struct lock_sampler *sampler = enter(self);
    bool is_added = lock_sampler_add(sampler, &remote, cond, word,
                                     (struct held_coverage){covered_ns, open_since_ns}, at_ns);
    leave(sampler);
    return is_added ? Py_NewRef(Py_None) : PyErr_NoMemory();
}

static PyObject *cover(struct sampler_object *self, PyObject *args)
{
    unsigned long long open_since_ns;
    long long covered_ns;
    int pid;

    if (!PyArg_ParseTuple(args, "i(LK)", &pid, &covered_ns, &open_since_ns))
        return NULL;
    struct lock_sampler *sampler = enter(self);
    lock_sampler_cover(sampler, pid, (struct held_coverage){covered_ns, open_since_ns});
    leave(sampler);
    return Py_NewRef(Py_None);
}

static PyObject *drop(struct sampler_object *self, PyObject *args)
{
    int pid;

    if (!PyArg_ParseTuple(args, "i", &pid))
        return NULL;
    struct lock_sampler *sampler = enter(self);
    lock_sampler_drop(sampler, pid);
    leave(sampler);
    return Py_NewRef(Py_None);
}

static PyObject *sample_process(struct sampler_object *self, PyObject *args)
{
    long long at_ns;
    int pid;

    if (!PyArg_ParseTuple(args, "iL", &pid, &at_ns))
        return NULL;
    // Reading memory may take long where the process is changing its mappings.
    Py_BEGIN_ALLOW_THREADS;
    pthread_mutex_lock(&self->sampler.mutex);
    lock_sampler_sample(&self->sampler, pid, at_ns);
    pthread_mutex_unlock(&self->sampler.mutex);
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

static PyObject *figures(struct sampler_object *self, PyObject *args)
{
    struct held_estimate estimate;
    unsigned long long cond;
    int pid;

    if (!PyArg_ParseTuple(args, "iK", &pid, &cond))
        return NULL;
    struct lock_sampler *sampler = enter(self);
    const struct held_lock *lock = lock_sampler_find(sampler, pid, cond);
    if (lock)
        estimate = lock->estimate;
    leave(sampler);
    if (!lock) {
        PyErr_SetObject(PyExc_KeyError, args);
        return NULL;
    }
    return Py_BuildValue("LLLL", (long long)estimate.held_ns, (long long)estimate.sampled_ns,
                         (long long)estimate.unobserved_ns, (long long)estimate.samples);
}

static PyObject *next_gap_ns(struct sampler_object *self, PyObject *Py_UNUSED(ignored))
{
    struct lock_sampler *sampler = enter(self);
    int64_t gap_ns = lock_sampler_next_gap_ns(sampler);

    leave(sampler);
    return PyLong_FromLongLong(gap_ns);
}

static PyObject *reading(struct sampler_object *self, PyObject *Py_UNUSED(ignored))
{
    struct lock_sampler *sampler = enter(self);
    const struct held_memory *memory = __atomic_load_n(&sampler->reading, __ATOMIC_ACQUIRE);
    int pid = memory ? memory->remote.pid : 0;
    bool is_dropped = memory && memory->is_dropped;
    unsigned long long reads = __atomic_load_n(&sampler->reads, __ATOMIC_RELAXED);

    leave(sampler);
    return Py_BuildValue("iKO", pid, reads, is_dropped ? Py_True : Py_False);
}

static PyObject *run(struct sampler_object *self, PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS;
    lock_sampler_run(&self->sampler);
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

static PyObject *close_sampler(struct sampler_object *self, PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS;
    lock_sampler_close(&self->sampler);
    Py_END_ALLOW_THREADS;
    return Py_NewRef(Py_None);
}

static PyObject *get_cpu_ns(struct sampler_object *self, void *Py_UNUSED(closure))
{
    struct lock_sampler *sampler = enter(self);
    int64_t cpu_ns = sampler->cpu_ns;

    leave(sampler);
    return PyLong_FromLongLong(cpu_ns);
}

static PyObject *get_mean_gap_ns(struct sampler_object *self, void *Py_UNUSED(closure))
{
    struct lock_sampler *sampler = enter(self);
    double gap_ns = lock_sampler_mean_gap_ns(sampler);

    leave(sampler);
    return PyFloat_FromDouble(gap_ns);
}

static PyObject *mean_gap_ns(PyObject *Py_UNUSED(module), PyObject *args)
{
    double cost_ns, cpu_share;
    Py_ssize_t locks;

    if (!PyArg_ParseTuple(args, "ddn", &cost_ns, &cpu_share, &locks))
        return NULL;
    return PyFloat_FromDouble(held_mean_gap_ns(cost_ns, cpu_share, locks));
}

static PyMethodDef sampler_methods[] = {
    {"add", (PyCFunction)add, METH_VARARGS, "Sample a lock from now on."},
    {"cover", (PyCFunction)cover, METH_VARARGS, "Say what windows have covered of a process."},
    {"drop", (PyCFunction)drop, METH_VARARGS, "Forget the locks of a process."},
    {"sample", (PyCFunction)sample_process, METH_VARARGS, "Sample the locks of a process now."},
    {"figures", (PyCFunction)figures, METH_VARARGS, "Return what is known of a lock."},
    {"reading", (PyCFunction)reading, METH_NOARGS,
     "Return whose memory is read, which read that is, and whether it is dropped."},
    {"next_gap_ns", (PyCFunction)next_gap_ns, METH_NOARGS, "Draw how long to sleep."},
    {"run", (PyCFunction)run, METH_NOARGS, "Sample everything until it is closed."},
    {"close", (PyCFunction)close_sampler, METH_NOARGS, "End the run."},
    {0},
};

static PyGetSetDef sampler_attributes[] = {
    {"cpu_ns", (getter)get_cpu_ns, NULL, "The CPU time that the run has used.", NULL},
    {"mean_gap_ns", (getter)get_mean_gap_ns, NULL, "How far apart wake-ups are.", NULL},
    {0},
};

static PyType_Slot sampler_slots[] = {
    {Py_tp_doc, "Samples locks at random times."},
    {Py_tp_new, new_sampler},
    {Py_tp_dealloc, dealloc_sampler},
    {Py_tp_methods, sampler_methods},
    {Py_tp_getset, sampler_attributes},
    {0},
};

static PyType_Spec sampler_spec = {
    .name = "gilscope.gil.tracing._lock_sampler.Sampler",
    .basicsize = sizeof(struct sampler_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = sampler_slots,
};

static PyMethodDef functions[] = {
    {"mean_gap_ns", mean_gap_ns, METH_VARARGS, "Return how far apart wake-ups of a cost are."},
    {0},
};

static int fill_module(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &sampler_spec, NULL);
    int failed = !type || PyModule_AddObjectRef(module, "Sampler", type);

    Py_XDECREF(type);
    return failed ? -1 : 0;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gilscope.gil.tracing._lock_sampler",
    .m_doc = "Estimates how long locks are held.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__lock_sampler(void)
{
    return PyModuleDef_Init(&module_definition);
}
