// Changes the memory that the code of GCC's libitm is in.
//
// itm_changer: says `ready`; then for each line on standard input
//   fork  forks a child that waits for its parent's end, and says its process id
//   drop  gives the pages of libitm's code back, so that they come from the file again, and says 0

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static long sum;

static int drop(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long start, end;
    char line[4096], rights[8];
    int result = -1;

    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %7s", &start, &end, rights) == 3 && rights[2] == 'x' &&
            strstr(line, "libitm"))
            result = madvise((void *)start, end - start, MADV_DONTNEED);
    }
    if (maps)
        fclose(maps);
    return result;
}

static int make_child(void)
{
    int pid = fork();

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

int main(void)
{
    char line[16];

    __transaction_atomic
    {
        sum++;
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        printf("%d\n", strcmp(line, "fork\n") ? drop() : make_child());
        fflush(stdout);
    }
    return 0;
}
