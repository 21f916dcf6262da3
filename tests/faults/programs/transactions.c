/* A program without any Python that makes small transactions with GCC's libitm, for ever. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static long total;

static void *work(void *unused)
{
    for (;;)
        __transaction_atomic
        {
            total++;
        }
}

int main(void)
{
    pthread_t thread;
    char line[8];

    pthread_create(&thread, 0, work, 0);
    printf("{\"ready\": true, \"pid\": %d}\n", getpid());
    fflush(stdout);
    fgets(line, sizeof(line), stdin);
    return 0;
}
