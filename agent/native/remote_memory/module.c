// The Python module gilscope.process._remote_memory: reads the memory of another process.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>

#include "remote.h"

#define ON_STACK 4096

static PyObject *failed(void)
{
    return PyErr_SetFromErrno(PyExc_OSError);
}

static PyObject *read_remote(PyObject *Py_UNUSED(module), PyObject *args)
{
    unsigned long long address;
    char buffer[ON_STACK];
    struct remote remote;
    Py_ssize_t size;
    ssize_t count;

    if (!PyArg_ParseTuple(args, "iiiKn", &remote.pid, &remote.tid, &remote.memory, &address, &size))
        return NULL;
    if (size < 0) {
        errno = EINVAL;
        return failed();
    }
    PyObject *large = size > ON_STACK ? PyBytes_FromStringAndSize(NULL, size) : NULL;
    if (size > ON_STACK && !large)
        return NULL;
    char *content = large ? PyBytes_AsString(large) : buffer;
    Py_BEGIN_ALLOW_THREADS;
    count = size ? remote_read(&remote, address, content, (size_t)size) : 0;
    Py_END_ALLOW_THREADS;
    if (count < 0) {
        failed();
        Py_XDECREF(large);
        return NULL;
    }
    if (!large)
        large = PyBytes_FromStringAndSize(buffer, size);
    return large ? Py_BuildValue("Ni", large, (int)remote.tid) : NULL;
}

static PyMethodDef functions[] = {
    {"read", read_remote, METH_VARARGS, "Return bytes of a process, and the thread they came by."},
    {0},
};

static PyModuleDef_Slot module_slots[] = {
    {0},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gilscope.process._remote_memory",
    .m_doc = "Reads the memory of another process without locking it.",
    .m_methods = functions,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__remote_memory(void)
{
    return PyModuleDef_Init(&module_definition);
}
