// SPDX-License-Identifier: Apache-2.0
// A program with a static CUDA runtime: it asks the runtime what it sees, and says so.
//   program ask|fork|exec|code
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// As nvcc puts device code into a program.
__attribute__((used, section(".nv_fatbin"))) static const char device_code[] = "none";

#ifdef EARLY
static cudaError_t early;

static void* call(void* unused) {
    int count = 0;
    early = cudaGetDeviceCount(&count);
    return unused;
}

// A thread, and a call of the runtime's, before main.
__attribute__((constructor)) static void begin(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, call, NULL) == 0)
        pthread_join(thread, NULL);
}
#endif

#ifdef SECOND
int ask_library(void);
#endif

#ifdef NEWER
cudaError_t cudaNotYetInvented(const char* argument);
#endif

static void ask(void) {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    printf("%d GPUs, error %d\n", count, error);
    for (int gpu = 0; gpu < count; gpu++) {
        size_t free = 0, total = 0;
        void *fits = NULL, *too_much = NULL;
        cudaSetDevice(gpu);
        cudaMemGetInfo(&free, &total);
        const cudaError_t first = cudaMalloc(&fits, 64 << 20), second = cudaMalloc(&too_much, total);
        struct cudaPointerAttributes attributes = {0};
        cudaPointerGetAttributes(&attributes, fits);
        printf("GPU %d: %zu MiB, 64 MiB: %d on GPU %d, all: %d, free: %d\n", gpu, total >> 20, first, attributes.device,
               second, cudaFree(fits));
    }
#ifdef EARLY
    printf("before main: %d\n", early);
#endif
#ifdef NEWER
    cudaGetLastError();
    for (int i = 0; i < 2; i++) {
        const cudaError_t newer = cudaNotYetInvented("argument");
        printf("newer: %d, noted: %d\n", newer, cudaGetLastError());
    }
#endif
#ifdef SECOND
    printf("in the library: %d\n", ask_library());
#endif
    fflush(stdout);
}

// Bytes of code that aren't the file's.
static int compare(struct dl_phdr_info* info, size_t size, void* unused) {
    (void)size, (void)unused;
    const int file = open("/proc/self/exe", O_RDONLY);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        const unsigned char* memory = (const unsigned char*)(info->dlpi_addr + segment->p_vaddr);
        unsigned long changed = 0;
        for (size_t at = 0; at < segment->p_filesz; at++) {
            static unsigned char page[4096];
            if (at % sizeof page == 0 && pread(file, page, sizeof page, (off_t)(segment->p_offset + at)) <= 0)
                break;
            changed += memory[at] != page[at % sizeof page];
        }
        printf("%s of %zu bytes changed\n", changed ? "some" : "none", (size_t)segment->p_filesz);
    }
    close(file);
    return 1;
}

int main(int count, char** words) {
    const char* how = count > 1 ? words[1] : "ask";
    if (strcmp(how, "code") == 0)
        return dl_iterate_phdr(compare, NULL) != 1;
    if (strcmp(how, "ask") == 0) {
        ask();
        return 0;
    }
    const pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        return 0;
    }
    if (strcmp(how, "exec") == 0)
        execl("/proc/self/exe", words[0], "ask", (char*)NULL);
    ask();
    return 0;
}
