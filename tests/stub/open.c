// SPDX-License-Identifier: Apache-2.0
// Opens libraries by the names that it is given, one after the other, and prints for each the GPU's memory in MiB that
// it sees, or the loader's words; and in the end whether libcuslice.so is loaded. Names that begin with "by:" are
// opened by a library in the folder modules/.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** words) {
    int flags = RTLD_NOW, limited = 0;
    for (int i = 1; i < count; i++) {
        if (strcmp(words[i], "--noload") == 0) {
            flags |= RTLD_NOLOAD;
            continue;
        }
        void* (*open)(const char*, int) = dlopen;
        const int other = strncmp(words[i], "by:", 3) == 0;
        if (other)
            *(void**)&open = dlsym(dlopen("$ORIGIN/modules/libstub_opener.so", RTLD_NOW), "stub_open");
        void* const library = open(words[i] + (other ? 3 : 0), flags);
        unsigned long (*total)(void) = NULL;
        if (library)
            *(void**)&total = dlsym(library, "stub_module_total");
        const char* error = library ? NULL : dlerror();
        if (total)
            printf("%lu MiB\n", total());
        else
            puts(library ? "opened" : error ? error : "not loaded");
    }
    char line[4096];
    FILE* maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof(line), maps))
        limited |= strstr(line, "/libcuslice.so") != NULL;
    puts(limited ? "limited" : "without");
    return 0;
}
