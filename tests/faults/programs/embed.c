/* A program that begins and ends Python again and again, as embedders do: 40 rounds of threads that
   contend. With an argument it says so and waits for a line before the first. */
#include <Python.h>
#include <stdio.h>

static const char *round_of_contention = "import threading\n"
                                         "def work():\n"
                                         "    for _ in range(200): sum(range(2000))\n"
                                         "threads = [threading.Thread(target=work) for _ in 'ab']\n"
                                         "[thread.start() for thread in threads]\n"
                                         "[thread.join() for thread in threads]\n";

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 40;
    char line[8];

    printf("{\"ready\": true, \"pid\": %d}\n", getpid());
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        return 1;
    for (int number = 0; number < rounds; number++) {
        Py_InitializeEx(0);
        PyRun_SimpleString(round_of_contention);
        Py_FinalizeEx();
    }
    printf("{\"done\": true, \"result\": %d}\n", rounds);
    fflush(stdout);
    fgets(line, sizeof(line), stdin);
    return 0;
}
