// SPDX-License-Identifier: Apache-2.0
// A program that takes memory until it is refused, in one process or in two at once:  context PROCESSES
//
// It runs on the fake driver beside a genuine NVML, which fails to start there. What was really taken stands in the
// fake's books.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlock = 64 << 20, kMax = 64 };

static void* open_or_end(const char* name) {
    void* library = dlopen(name, RTLD_NOW);
    if (library != NULL)
        return library;
    printf("%s\n", dlerror());
    exit(1);
}

// ISO C converts no object pointer to one to a function, POSIX does: hence the mark.
#define FIND(library, name, ...) int (*name)(__VA_ARGS__) = __extension__(int (*)(__VA_ARGS__)) dlsym(library, #name)

// Waits until every process has come to the same place: each closes its end, and reads until the last has.
static void meet(int* ends) {
    char nothing;
    close(ends[1]);
    while (read(ends[0], &nothing, 1) > 0) {
    }
}

// Three places to meet at. Without NVML cuslice knows a context's size by how much less memory is free after it was
// made, so one process after the other makes its own while nobody takes anything; and all hold what they got before one
// frees.
enum Place { kFirstContext, kContexts, kFilled, kPlaces };
static int places[kPlaces][2];

static void take(int is_first, int shared) {
    void* management = open_or_end("libnvidia-ml.so.1");
    void* driver = open_or_end("libcuda.so.1");
    FIND(management, nvmlInit_v2, void);
    FIND(driver, cuInit, unsigned);
    FIND(driver, cuDeviceGetCount, int*);
    FIND(driver, cuDevicePrimaryCtxRetain, void**, int);
    FIND(driver, cuCtxSetCurrent, void*);
    FIND(driver, cuMemGetInfo_v2, size_t*, size_t*);
    FIND(driver, cuMemAlloc_v2, unsigned long long*, size_t);
    FIND(driver, cuMemFree_v2, unsigned long long);

    int count = 0;
    void* context = NULL;
    size_t free_bytes = 0;
    size_t total = 0;
    unsigned long long blocks[kMax];
    int taken = 0;
    int status = 0;
    printf("nvmlInit_v2 %d\n", nvmlInit_v2());
    printf("cuInit %d\n", cuInit(0));
    status = cuDeviceGetCount(&count);
    printf("cuDeviceGetCount %d: %d\n", status, count);
    if (!is_first)
        meet(places[kFirstContext]);
    status = cuDevicePrimaryCtxRetain(&context, 0);
    printf("context %d %d\n", status, cuCtxSetCurrent(context));
    status = cuMemGetInfo_v2(&free_bytes, &total);
    printf("cuMemGetInfo %d, total %zu MiB\n", status, total >> 20);
    fflush(stdout);
    if (is_first)
        meet(places[kFirstContext]);
    meet(places[kContexts]);
    while (taken < kMax && (status = cuMemAlloc_v2(&blocks[taken], kBlock)) == 0)
        ++taken;
    meet(places[kFilled]);
    printf("blocks: %s, then %d\n", taken == kMax ? "all" : "not all", status);
    // Two processes know their contexts' sizes roughly: one may have taken what the other would keep free for the
    // driver.
    if (!shared)
        printf("one freed %d, ", cuMemFree_v2(blocks[0]));
    if (!shared)
        printf("and taken again %d\n", cuMemAlloc_v2(&blocks[0], kBlock));
    printf("nvmlInit_v2 %d\n", nvmlInit_v2());
    fflush(stdout);
}

int main(int count, char** words) {
    int order[2];
    const int processes = count > 1 ? atoi(words[1]) : 1;
    if (pipe(order) != 0)
        return 1;
    for (int i = 0; i < kPlaces; ++i)
        if (pipe(places[i]) != 0)
            return 1;
    if (processes == 2 && fork() == 0) {
        dup2(order[1], STDOUT_FILENO);
        take(1, 1);
        _exit(0);
    }
    close(order[1]);
    take(0, processes == 2);
    char text[4096];
    for (ssize_t size; (size = read(order[0], text, sizeof text)) > 0;)
        fwrite(text, 1, (size_t)size, stdout);
    while (wait(NULL) > 0) {
    }
    return 0;
}
