// SPDX-License-Identifier: Apache-2.0
// The driver: what every program asks first, from a second thread and in a forked child as well.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

DECLARE(int, cuInit, unsigned);
DECLARE(int, cuDriverGetVersion, int*);
DECLARE(int, cuDeviceGetCount, int*);
DECLARE(int, cuDeviceGet, int*, int);
DECLARE(int, cuDeviceGetName, char*, int, int);
DECLARE(int, cuDeviceTotalMem_v2, size_t*, int);
DECLARE(int, cuDevicePrimaryCtxRetain, void**, int);
DECLARE(int, cuCtxGetCurrent, void**);
DECLARE(int, cuMemGetInfo_v2, size_t*, size_t*);
DECLARE(int, cuMemAlloc_v2, unsigned long long*, size_t);
DECLARE(int, cuGetProcAddress, const char*, void**, int, unsigned long long);
DECLARE(int, cuGetErrorName, int, const char**);

static void show_all(void) {
    int number = -1;
    size_t free_bytes = 0;
    size_t total = 0;
    void* context = NULL;
    char text[64] = "";
    unsigned long long address = 0;
    SHOW(cuInit, 0);
    SHOW(cuDriverGetVersion, &number);
    printf("version %d\n", number);
    SHOW(cuDeviceGetCount, &number);
    SHOW(cuDeviceGet, &number, 0);
    SHOW(cuDeviceGetName, text, sizeof text, 0);
    SHOW(cuDeviceTotalMem_v2, &total, 0);
    SHOW(cuDevicePrimaryCtxRetain, &context, 0);
    SHOW(cuCtxGetCurrent, &context);
    SHOW(cuMemGetInfo_v2, &free_bytes, &total);
    SHOW(cuMemAlloc_v2, &address, 1 << 20);
    printf("left alone: %d\n", free_bytes == 0 && total == 0 && context == NULL && text[0] == '\0' && address == 0);
}

static void* in_thread(void* nothing) {
    show_all();
    return nothing;
}

int main(void) {
    const char* name = NULL;
    void* function = NULL;
    SHOW(cuGetErrorName, 100, &name);
    printf("%s\n", name);
    SHOW(cuGetProcAddress, "cuMemAlloc", &function, 11030, 0);
    show_all();
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    if (fork() == 0) {
        show_all();
        _exit(7);
    }
    int status = 0;
    wait(&status);
    printf("forked child: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}
