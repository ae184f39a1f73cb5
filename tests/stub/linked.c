// SPDX-License-Identifier: Apache-2.0
// A program that is linked to the driver, and calls it from a constructor already. It prints what it sees: the GPU's
// memory then and in main(), its words, its names for the kernel, and its environment.
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

int cuInit(unsigned flags);
int cuDeviceTotalMem_v2(size_t* bytes, int device);
extern char** environ;

static int early;
static size_t early_total;

static int total_of(size_t* bytes) {
    const int result = cuInit(0);
    return result != 0 ? result : cuDeviceTotalMem_v2(bytes, 0);
}

__attribute__((constructor)) static void before_main(void) { early = total_of(&early_total); }

int main(int count, char** words) {
    size_t bytes = 0;
    char name[16] = "";
    const int late = total_of(&bytes);
    prctl(PR_GET_NAME, name);
    printf("constructor %d %zu\nmain %d %zu\nname %s\n", early, early_total >> 20, late, bytes >> 20, name);
    printf("file %s\n", (const char*)getauxval(AT_EXECFN));
    for (int i = 0; i < count; i++)
        printf("word %s\n", words[i]);
    for (char** entry = environ; *entry; entry++)
        printf("variable %s\n", *entry);
    return 0;
}
