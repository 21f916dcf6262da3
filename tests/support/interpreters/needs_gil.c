// An extension module that does not say that it can do without a GIL: a free-threaded CPython
// switches its GIL on when it imports it. Made without that Python's headers.
#include <stddef.h>

#define IMMORTAL (0xffffffffUL << 32 | 1 << 2) // static: flags, and the count of references

struct module_def { // PyModuleDef of a free-threaded build, where an object's head is 32 bytes
    size_t head[4], base[3];
    const char *name, *doc;
    size_t size;
    void *rest[5];
};

void *PyModule_Create2(struct module_def *module, int api_version);

void *PyInit_needs_gil(void)
{
    static struct module_def module = {.head = {0, IMMORTAL}, .name = "needs_gil"};

    return PyModule_Create2(&module, 1013);
}
