// Programs that are linked to the driver or to NVML: the loader has mapped them before the stub is asked anything. Such
// a program is started once more, with libcuslice.so in LD_PRELOAD, where the loader takes it for the driver as it does
// under `cuslice run`. That happens while the loader relocates the stub, so before any constructor of the program and
// its libraries has run, and whatever their relocations are like. In the program that is started then, the environment
// is put back.
//
// A program that can't have the library (it has more rights than its user, so that the loader heeds no LD_PRELOAD, or
// the library is broken) is started once more with no GPU in CUDA_VISIBLE_DEVICES.
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "stub/kernel.h"
#include "stub/library.h"
#include "stub/text.h"

// What tells without a system call that the driver, NVML or libcuslice.so is there.
#define ELSEWHERE __attribute__((weak, visibility("default")))
ELSEWHERE int cuInit(unsigned);
ELSEWHERE int nvmlInit_v2(void);
ELSEWHERE const char* cuslice_marker(void);
ELSEWHERE dlopen_function CUSLICE_ENTRANCE(dlopen_function);
// The loader's: where the kernel has put the arguments.
extern ELSEWHERE void* __libc_stack_end;

// CUSLICE_STUB=PID HOW COMMAND: of the process that starts itself once more, and of no child of it. HOW is one letter.
static const char mark[] = "CUSLICE_STUB=", preload[] = "LD_PRELOAD=", visible[] = "CUDA_VISIBLE_DEVICES=";
enum { with_library = 'l', without_gpus = 'n', command_size = 16 };

struct start {
    char** arguments;
    char** environment;
    const Elf64_auxv_t* facts;
};

static struct start start_of_process(void) {
    uintptr_t* words = __libc_stack_end;
    struct start start = {(char**)(words + 1), (char**)(words + 1 + *words + 1), NULL};
    char** end = start.environment;
    while (*end) end++;
    while (!*end) end++;  // the loader takes variables away from programs with more rights
    start.facts = (const Elf64_auxv_t*)end;
    return start;
}

static uint64_t fact(const struct start* start, uint64_t type) {
    for (const Elf64_auxv_t* one = start->facts; one->a_type != AT_NULL; one++)
        if (one->a_type == type) return one->a_un.a_val;
    return 0;
}

static char** find_variable(char** environment, const char* name) {
    while (*environment && !begins_with(*environment, name)) environment++;
    return *environment ? environment : NULL;
}

static void remove_entry(char** entry) {
    for (; *entry; entry++) entry[0] = entry[1];
}

static char* append_number(char* to, uint64_t number) {
    if (number >= 10) to = append_number(to, number / 10);
    *to++ = (char)('0' + number % 10);
    return to;
}

// How this process was started once more, or 0. Takes the traces away: the mark, our place in LD_PRELOAD, and the name
// that the kernel gave the process after the file.
static int take_mark(const struct start* start) {
    char own[sizeof(mark) + 24];
    char** entry = find_variable(start->environment, mark);
    *append(append_number(append(own, mark), (uint64_t)kernel(SYS_getpid, 0, 0, 0, 0, 0, 0)), " ") = '\0';
    if (!entry || !begins_with(*entry, own)) return 0;
    const char* told = *entry + length_of(own);
    const int how = *told;
    if (how && told[1]) kernel(SYS_prctl, PR_SET_NAME, (long)(told + 2), 0, 0, 0, 0);
    remove_entry(entry);
    char** preloaded = find_variable(start->environment, preload);
    if (how != with_library || !preloaded) return how;
    char* list = *preloaded + sizeof(preload) - 1;
    const char* rest = list;
    while (*rest && *rest != ':') rest++;
    if (*rest)
        *append(list, rest + 1) = '\0';
    else
        remove_entry(preloaded);
    return how;
}

// The file that the kernel has started. A script's name is that of no program, and where the loader was started as a
// program it is the loader.
static const char* file_to_start(const struct start* start) {
    static const char own[] = "/proc/self/exe";
    const char* name = (const char*)(uintptr_t)fact(start, AT_EXECFN);
    struct stat self, named;
    if (kernel(SYS_newfstatat, AT_FDCWD, (long)own, (long)&self, 0, 0, 0) != 0)
        return name && library_fault(name) == NULL ? name : NULL;  // there is no /proc
    const bool same = name && kernel(SYS_newfstatat, AT_FDCWD, (long)name, (long)&named, 0, 0, 0) == 0 &&
                      named.st_dev == self.st_dev && named.st_ino == self.st_ino;
    return same ? name : own;
}

// The loader, started as a program, takes its own arguments away from the program's.
static char** arguments_to_start(const struct start* start, char* memory, char* end) {
    if (fact(start, AT_BASE)) return start->arguments;
    const long file = open_file("/proc/self/cmdline");
    char** words = (char**)memory;
    char *text = memory + (end - memory) / 2, *last = text;
    for (long got = 1; file >= 0 && got > 0 && last<end - 1; last += got> 0 ? got : 0)
        got = read_file(file, last, (size_t)(end - 1 - last));
    if (file < 0 || last >= end - 1) return NULL;
    close_file(file);
    *last = '\0';
    size_t count = 0;
    for (char* word = text; word < last; word += length_of(word) + 1) {
        if ((char*)(words + count + 2) > text) return NULL;
        words[count++] = word;
    }
    words[count] = NULL;
    return words;
}

static char* start_again(const struct start* start, int how, const char* library) {
    size_t count = 0;
    for (char** entry = start->environment; *entry; entry++) count++;
    char** old = find_variable(start->environment, how == with_library ? preload : visible);
    const size_t words = (count + 3) * sizeof(char*), arguments = 4 << 20;
    const size_t size = words + (old ? length_of(*old) : 0) + length_of(library) + arguments + 4096;
    char* memory = (char*)kernel(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((intptr_t)memory < 0 && (intptr_t)memory > -4096) return "has no memory";
    char** environment = (char**)(memory + arguments);
    char *text = (char*)(environment + count + 3), *changed = text;
    if (how == with_library) {
        text = append(append(text, preload), library);
        if (old) text = append(append(text, ":"), *old + sizeof(preload) - 1);
    } else {
        text = append(text, visible);
    }
    *text++ = '\0';
    char* told = text;
    text = append_number(append(text, mark), (uint64_t)kernel(SYS_getpid, 0, 0, 0, 0, 0, 0));
    *text++ = ' ';
    *text++ = (char)how;
    *text++ = ' ';
    kernel(SYS_prctl, PR_GET_NAME, (long)text, 0, 0, 0, 0);
    size_t next = 0;
    for (char** entry = start->environment; *entry; entry++) environment[next++] = entry == old ? changed : *entry;
    if (!old) environment[next++] = changed;
    environment[next++] = told;
    environment[next] = NULL;
    const char* file = file_to_start(start);
    char** words_of_program = arguments_to_start(start, memory, memory + arguments);
    if (file && words_of_program) kernel(SYS_execve, (long)file, (long)words_of_program, (long)environment, 0, 0, 0);
    kernel(SYS_munmap, (long)memory, (long)size, 0, 0, 0, 0);
    return "cannot be had, as the program cannot be started once more";
}

static void refuse(const struct start* start, const char* library, const char* why) {
    if (!cuInit) return;  // NVML allocates nothing
    say_refused(library, why, true);
    start_again(start, without_gpus, library);
    kernel(SYS_exit_group, 127, 0, 0, 0, 0, 0);
}

static void look_at_program(void) {
    if ((!cuInit && !nvmlInit_v2) || !__libc_stack_end) return;
    const struct start start = start_of_process();
    const int how = take_mark(&start);
    if (how == without_gpus || (how == 0 && cuslice_marker) || CUSLICE_ENTRANCE) return;
    char path[1024] = "libcuslice.so";
    const char* why = library_path(path, sizeof(path)) ? library_fault(path) : "has no path";
    for (const char* c = path; *c && !why; c++)
        if (*c == ':' || *c == ' ' || *c == '$') why = "has a path that LD_PRELOAD can't carry";
    if (!why && fact(&start, AT_SECURE)) why = "comes into no program that has more rights than its user";
    if (!why && how == with_library) why = cuslice_marker ? "is older than libcuslice-preload.so" : "cannot be loaded";
    if (!why) why = start_again(&start, with_library, path);
    refuse(&start, path, why);
}

// The loader asks this as it relocates the stub, for the address of a function that nobody calls. On aarch64 it asks
// twice, as linkers leave two relocations there; the mark is gone then.
static void nothing(void) {}
static void (*asked_by_loader(void))(void) {
    static bool looked;
    if (!looked) {
        looked = true;
        look_at_program();
    }
    return nothing;
}
__attribute__((visibility("hidden"))) void cuslice_stub_start(void) __attribute__((ifunc("asked_by_loader")));
void (*const volatile cuslice_stub_keeps)(void) = cuslice_stub_start;
