/* A program that loads libpython when it is told, runs contending threads for ever in it, and can
   unload it. Commands, a line each: l loads, r runs threads that end, R threads that do not, u
   unloads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *ending = "import threading\n"
                            "def work():\n"
                            "    for _ in range(2000): sum(range(2000))\n"
                            "threads = [threading.Thread(target=work) for _ in 'ab']\n"
                            "[thread.start() for thread in threads]\n"
                            "[thread.join() for thread in threads]\n";
static const char *endless = "import threading\n"
                             "def work():\n"
                             "    while True: sum(range(2000))\n"
                             "[threading.Thread(target=work, daemon=True).start() for _ in 'ab']\n";
static void *library;

int main(int count, char **arguments)
{
    char line[16];

    printf("{\"ready\": true, \"pid\": %d}\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (line[0] == 'l') {
            /* With "namespace" it is a copy beside the program's own Python. */
            library = count > 2 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW)
                                : dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
            if (!library) {
                fprintf(stderr, "%s\n", dlerror());
                return 1;
            }
            void (*begin)(int) = dlsym(library, "Py_InitializeEx");
            begin(0);
        } else if (line[0] == 'r') {
            int (*run)(const char *) = dlsym(library, "PyRun_SimpleString");
            run(ending);
        } else if (line[0] == 'R') {
            int (*run)(const char *) = dlsym(library, "PyRun_SimpleString");
            void *(*save)(void) = dlsym(library, "PyEval_SaveThread");
            run(endless);
            save();
        } else if (line[0] == 'u') {
            int (*end)(void) = dlsym(library, "Py_FinalizeEx");
            end();
            dlclose(library);
        }
        printf("{\"done\": true, \"result\": null}\n");
        fflush(stdout);
    }
    return 0;
}
