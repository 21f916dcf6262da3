// Makes the executable of a frozen application an ordinary Python: its main() is that of Python.
// Where that has been left out of it, scripts and `-c` are run, with all options but `-m`.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define BESIDE_SCRIPT "import sys, os; sys.path.insert(0, os.path.dirname(sys.argv[0]))"
#define CONFIG_SIZE 4096 // more than any PyConfig

typedef int program(int, char **, char **);
typedef int starter(program *, int, char **, program *, void (*)(void), void (*)(void), void *);

struct status { // PyStatus
    int type;
    const char *function, *message;
    int exit_code;
};

#define PYTHON(type, name) type (*name)() = (type (*)())dlsym(RTLD_DEFAULT, #name)

static int run(int argc, char **argv, char **environment)
{
    PYTHON(void, PyConfig_InitPythonConfig);
    PYTHON(struct status, PyConfig_SetBytesArgv);
    PYTHON(struct status, Py_InitializeFromConfig);
    PYTHON(int, PyRun_SimpleStringFlags);
    PYTHON(int, PyRun_SimpleFileExFlags);
    PYTHON(int, Py_FinalizeEx);
    char config[CONFIG_SIZE] __attribute__((aligned(16)));
    int at = 1, failed;

    (void)environment;
    PyConfig_InitPythonConfig(config);
    struct status status = PyConfig_SetBytesArgv(config, (long)argc, argv);
    if (!status.type)
        status = Py_InitializeFromConfig(config);
    if (status.type) {
        fprintf(stderr, "%s\n", status.message ? status.message : "Python does not start");
        return 1;
    }
    while (at < argc && argv[at][0] == '-' && strcmp(argv[at], "-c"))
        at += !strcmp(argv[at], "-X") || !strcmp(argv[at], "-W") ? 2 : 1;
    if (at >= argc)
        return 2;
    if (!strcmp(argv[at], "-c"))
        failed = PyRun_SimpleStringFlags(argv[at + 1], NULL);
    else
        failed = PyRun_SimpleStringFlags(BESIDE_SCRIPT, NULL) ||
                 PyRun_SimpleFileExFlags(fopen(argv[at], "r"), argv[at], 1, NULL);
    return Py_FinalizeEx() || failed;
}

int __libc_start_main(program *own, int argc, char **argv, program *init, void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    starter *start = (starter *)dlsym(RTLD_NEXT, "__libc_start_main");
    program *python = (program *)dlsym(RTLD_DEFAULT, "Py_BytesMain");

    if (!python && dlsym(RTLD_DEFAULT, "Py_InitializeFromConfig"))
        python = run;
    return start(python ? python : own, argc, argv, init, fini, rtld_fini, stack_end);
}
