// SPDX-License-Identifier: Apache-2.0
// NVML: every form of its initialisation, again after it failed, in several threads at once and in a forked child.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

DECLARE(int, nvmlInit, void);
DECLARE(int, nvmlInit_v2, void);
DECLARE(int, nvmlInitWithFlags, unsigned);
DECLARE(int, nvmlShutdown, void);
DECLARE(const char*, nvmlErrorString, int);
DECLARE(int, nvmlSystemGetDriverVersion, char*, unsigned);
DECLARE(int, nvmlSystemGetNVMLVersion, char*, unsigned);
DECLARE(int, nvmlDeviceGetCount, unsigned*);
DECLARE(int, nvmlDeviceGetCount_v2, unsigned*);
DECLARE(int, nvmlDeviceGetHandleByIndex_v2, unsigned, void**);
DECLARE(int, nvmlDeviceGetHandleByUUID, const char*, void**);
DECLARE(int, nvmlDeviceGetMemoryInfo, void*, unsigned long long*);
DECLARE(int, nvmlDeviceGetComputeRunningProcesses, void*, unsigned*, void*);

static void show_all(void) {
    unsigned count = 77;
    void* device = NULL;
    unsigned long long memory[3] = {0};
    char text[96] = "";
    SHOW(nvmlDeviceGetCount_v2, &count);
    SHOW(nvmlInit_v2);
    SHOW(nvmlInitWithFlags, 0);
    SHOW(nvmlInitWithFlags, 1);
    SHOW(nvmlInit);
    for (int status = 0; status <= 30; ++status)
        printf("%d: %s\n", status, CALL(nvmlErrorString, status));
    SHOW(nvmlSystemGetDriverVersion, text, sizeof text);
    SHOW(nvmlSystemGetNVMLVersion, text, sizeof text);
    printf("text \"%s\"\n", text);
    SHOW(nvmlDeviceGetCount, &count);
    SHOW(nvmlDeviceGetHandleByIndex_v2, 0, &device);
    SHOW(nvmlDeviceGetHandleByUUID, "GPU-00000000-0000-0000-0000-000000000000", &device);
    SHOW(nvmlDeviceGetMemoryInfo, device, memory);
    SHOW(nvmlDeviceGetComputeRunningProcesses, device, &count, NULL);
    SHOW(nvmlShutdown);
}

static void* initialise(void* failures) {
    for (int i = 0; i < 5; ++i)
        *(int*)failures += CALL(nvmlInit_v2) != 0;
    return NULL;
}

int main(void) {
    show_all();
    pthread_t threads[4];
    int failures[4] = {0};
    for (int i = 0; i < 4; ++i)
        pthread_create(&threads[i], NULL, initialise, &failures[i]);
    for (int i = 0; i < 4; ++i)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i)
        printf("thread %d: nvmlInit_v2 failed %d times of 5\n", i, failures[i]);
    fflush(stdout);
    if (fork() == 0) {
        show_all();
        _exit(7);
    }
    int status = 0;
    wait(&status);
    printf("forked child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
