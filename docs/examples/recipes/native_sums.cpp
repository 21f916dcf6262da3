// Sums in C++ that keep the GIL all the while.

#include <pybind11/pybind11.h>

long summed(long steps)
{
    long value = 0;

    for (long step = 0; step < steps; step++)
        value = (value * 31 + step) % 9973;
    return value;
}

PYBIND11_MODULE(native_sums, module)
{
    module.def("summed", &summed);
}
