// SPDX-License-Identifier: Apache-2.0
// A program without CUDA, which opens libraries with a static runtime of their own and prints what they see.
//   opener open|deepbind|fork|threads|again|gone LIBRARY... [FILE]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 8, kTimes = 300 };

typedef void Describe(char* into, size_t size);

static void* open_library(const char* path, int flags) {
    void* library = dlopen(path, flags);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    return library;
}

static void describe(void* library, char* text, size_t size) {
    Describe* own = NULL;
    if (library)
        *(void**)&own = dlsym(library, "describe");
    if (own)
        own(text, size);
}

static void print(void* library) {
    char text[256] = "no library";
    describe(library, text, sizeof text);
    printf("%s\n", text);
    fflush(stdout);
}

static pthread_barrier_t all_there;

static void* open_at_once(void* path) {
    pthread_barrier_wait(&all_there);
    void* library = open_library(path, RTLD_NOW);
    static char texts[kThreads][256];
    static int next;
    char* text = texts[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)];
    describe(library, text, sizeof texts[0]);
    return text;
}

static void open_in_threads(char* path) {
    pthread_t threads[kThreads];
    void* first = NULL;
    int same = 0;
    pthread_barrier_init(&all_there, NULL, kThreads);
    for (int i = 0; i < kThreads; i++)
        pthread_create(&threads[i], NULL, open_at_once, path);
    for (int i = 0; i < kThreads; i++) {
        void* text = NULL;
        pthread_join(threads[i], &text);
        first = first ? first : text;
        same += strcmp(first, text) == 0;
    }
    printf("%d times %s\n", same, (char*)first);
}

static int mappings(void) {
    FILE* maps = fopen("/proc/self/maps", "r");
    int lines = 0;
    for (int c; maps && (c = getc(maps)) != EOF;)
        lines += c == '\n';
    if (maps)
        fclose(maps);
    return lines;
}

// The second opening leaves behind what stays for good; later ones nothing.
static void open_again(const char* path) {
    int after_first = 0;
    for (int i = 0; i < kTimes; i++) {
        void* library = open_library(path, RTLD_NOW);
        if (i == 0 || i == kTimes - 1)
            print(library);
        if (library)
            dlclose(library);
        if (i == 1)
            after_first = mappings();
    }
    printf("mappings: %d more\n", mappings() - after_first);
}

int main(int count, char** words) {
    const char* how = count > 2 ? words[1] : "";
    if (strcmp(how, "threads") == 0) {
        open_in_threads(words[2]);
    } else if (strcmp(how, "again") == 0) {
        open_again(words[2]);
    } else if (strcmp(how, "gone") == 0) {
        void* library = open_library(words[2], RTLD_NOW);
        unlink(words[3]);
        print(library);
        print(library);
    } else {
        const int flags = strcmp(how, "deepbind") == 0 ? RTLD_NOW | RTLD_DEEPBIND : RTLD_LAZY;
        void* libraries[8] = {NULL};
        for (int i = 2; i < count && i < 10; i++)
            libraries[i - 2] = open_library(words[i], flags);
        if (strcmp(how, "fork") == 0 && fork() != 0)
            wait(NULL);
        for (int i = 2; i < count && i < 10; i++)
            print(libraries[i - 2]);
    }
    return 0;
}
