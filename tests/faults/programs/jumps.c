/* Takes and drops the GIL at different depths of the stack, and leaves some of them by longjmp. */
#include <Python.h>
#include <setjmp.h>

static int deeper(int depth, jmp_buf *way_out)
{
    volatile char pad[64 + 16 * (depth % 7)];
    pad[0] = (char)depth;
    PyThreadState *state = PyEval_SaveThread();
    PyEval_RestoreThread(state);
    if (depth == 0)
        longjmp(*way_out, 1);
    return deeper(depth - 1, way_out) + pad[0];
}

void jump(int times)
{
    for (int number = 0; number < times; number++) {
        jmp_buf way_out;
        if (!setjmp(way_out))
            deeper(number % 23, &way_out);
    }
}
