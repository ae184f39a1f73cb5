// SPDX-License-Identifier: Apache-2.0
// Programs that are linked to the driver or to NVML: the loader has mapped them before the stub is asked anything. Such
// a program is started once more, with libcuslice.so in LD_PRELOAD, where the loader takes it for the driver as it does
// under `cuslice run`. That happens while the loader relocates the stub, so before any constructor of the program and
// its libraries has run, and whatever their relocations are like. In the program that is started then, the environment
// is put back. So is a program started once more that would find the C library's dlopen before the stub's.
//
// Nothing is believed: the user has chosen the program's name, its environment and what the loader was told to preload.
// The library is there if it was loaded from its own path, which only root can write to. A program that can't have it
// is started once more with no GPU in CUDA_VISIBLE_DEVICES, or ends. One with more rights than its user is never
// started once more: it would run what its user makes of its name by then, or of its environment.
#include "stub/kernel.h"
#include "stub/library.h"
#include "stub/start.h"
#include "stub/text.h"
#include "stub/work.h"

// Signs, without a system call, that the driver or NVML is there, or a dlopen before the stub's.
#define ELSEWHERE __attribute__((weak, visibility("default")))
ELSEWHERE int cuInit(unsigned);
ELSEWHERE int nvmlInit_v2(void);
extern __attribute__((visibility("default"))) void* dlopen(const char*, int);
extern __attribute__((visibility("hidden"))) void* cuslice_stub_dlopen(const char*, int);

static const char preload[] = "LD_PRELOAD=", visible[] = "CUDA_VISIBLE_DEVICES=";
#define SO_ENDED "this program, which is linked to CUDA, is ended"

// From where the program's functions come, where it is linked to them; null where it isn't. It may have functions of
// these names itself: they are no driver's.
struct linkage {
    const char *driver, *nvml;
};
static struct linkage look_at_linkage(void) {
    return (struct linkage){linked_to("cuInit", "libcuda.so"), linked_to("nvmlInit_v2", "libnvidia-ml.so")};
}

static bool is_at(const char* object, const char* library) { return object && equal(object, library); }

static bool library_is_first(const struct linkage* linkage, const char* library) {
    const bool driver = !linkage->driver || is_at(linkage->driver, library);
    const bool nvml = !linkage->nvml || is_at(linkage->nvml, library);
    return driver && nvml && is_at(first_to_export(CUSLICE_ENTRANCE_NAME), library);
}

static bool sees_no_gpu(const struct start* start) {
    bool none = false;
    for (char** entry = start->environment; *entry; entry++) {
        if (!begins_with(*entry, visible))
            continue;
        if (!equal(*entry, visible))
            return false;
        none = true;
    }
    return none;
}

static void start_with_library(const struct start* start, const char* library) {
    char** const before = last_variable(start, preload);
    const char* const old = before ? *before + sizeof(preload) - 1 : NULL;
    struct work work;
    if (!take_work(&work, length_of(library) + (old ? length_of(old) : 0) + 2))
        return;
    char* end = append(work.start, library);
    if (old)
        end = append(append(end, ":"), old);
    *end = '\0';
    start_again(start, with_library, &(struct variable){preload, work.start});
    give_back_work(&work);
}

// Null for a library that a program can be started with.
static const char* fault_of(const char* library) {
    if (*library != '/')
        return "has no path";
    for (const char* c = library; *c; c++)
        if (*c == ':' || *c == ' ' || *c == '$')
            return "has a path that LD_PRELOAD can't carry";
    return library_fault(library);
}

static _Noreturn void refuse(const char* library, const char* why) {
    say_refused(library, why, SO_ENDED, true);
    end_program();
}

// The reason is looked for anew in each start: a mark that somebody forged has none.
static void hide_gpus(const struct start* start, const char* library, const char* fault) {
    const bool older = !fault && is_at(first_to_export("cuslice_marker"), library);
    const enum how how = how_started(start), hidden = fault ? without_gpus : with_older;
    if (!fault && !older)
        refuse(library, "cannot be loaded");
    if (how == hidden && sees_no_gpu(start))
        return;
    if (how == hidden)
        refuse(library, "cannot be had");
    say_refused(library, fault ? fault : "is older than libcuslice-preload.so", SO_NO_CUDA, true);
    start_again(start, hidden, &(struct variable){visible, ""});
    end_program();
}

// Returns for a program that has the library, needs none, or finds no GPU. NVML allocates nothing.
static void bring_library_in(const struct start* start, const char* library) {
    const struct linkage linkage = look_at_linkage();
    if ((!linkage.driver && !linkage.nvml) || library_is_first(&linkage, library))
        return;
    const char* const fault = fault_of(library);
    const enum how how = how_started(start);
    if (!fault && (how == at_first || how == in_order)) {
        start_with_library(start, library);
        if (linkage.driver)
            refuse(library, "cannot be had, as the program cannot be started once more");
    } else if (linkage.driver) {
        hide_gpus(start, library, fault);
    }
}

struct paths {
    const char* paths[8];
    size_t count;
};

static struct paths find_c_libraries(const char* library) {
    struct paths found = {.count = 0};
    found.count = list_c_libraries_before_stub(library, found.paths, sizeof(found.paths) / sizeof(*found.paths));
    return found;
}

static size_t length_of_entry(const char* list) {
    size_t length = 0;
    while (list[length] && list[length] != ':' && list[length] != ' ')
        length++;
    return length;
}

// By the last component, as the loader has found some by that alone.
static bool names_one_of(const char* entry, size_t length, const struct paths* paths) {
    size_t begin = length;
    while (begin > 0 && entry[begin - 1] != '/')
        begin--;
    for (size_t i = 0; i < paths->count; i++) {
        const char* const file = last_component(paths->paths[i]);
        size_t same = 0;
        while (begin + same < length && file[same] == entry[begin + same])
            same++;
        if (begin + same == length && !file[same])
            return true;
    }
    return false;
}

// The entries of a list that name none of the paths. Null where all of them are kept, or none.
static const char* leave_out(const char* list, const struct paths* paths, char* to) {
    char* end = to;
    bool left_out = false;
    while (*list) {
        const size_t length = length_of_entry(list);
        if (names_one_of(list, length, paths)) {
            left_out = true;
        } else {
            if (end != to)
                *end++ = ':';
            for (size_t i = 0; i < length; i++)
                *end++ = list[i];
        }
        list += length;
        if (*list)
            list++;
    }
    *end = '\0';
    return left_out && end != to ? to : NULL;
}

// Where the C library stands before the stub, as LD_PRELOAD or the loader's --preload puts it there, the stub isn't
// asked for anything that the program opens. Each start leaves at least one entry of LD_PRELOAD out, so that they end.
static void put_c_library_behind(const struct start* start, const char* library) {
    const struct paths paths = find_c_libraries(library);
    char** const before = last_variable(start, preload);
    const bool listed_by_root = !before && fact(start, AT_BASE);
    if (paths.count == 0 || listed_by_root)
        return;
    if (before) {
        const char* const list = *before + sizeof(preload) - 1;
        struct work work;
        if (!take_work(&work, length_of(list) + 1))
            end_program();
        start_again(start, in_order, &(struct variable){preload, leave_out(list, &paths, work.start)});
    }
    say_refused("the C library", "is preloaded, which would hide CUDA from cuslice", "this program is ended", true);
    end_program();
}

// Nobody but root brings a library into it, and the loader heeds no other that stands before the stub.
static void look_at_privileged(const struct start* start, const char* library) {
    remove_mark(start);
    if (!linked_to("cuInit", "libcuda.so") || first_to_export(CUSLICE_ENTRANCE_NAME))
        return;
    refuse(library, "comes into no program that has more rights than its user");
}

// Programs may have a dlopen of their own, which calls the stub's: such a one is no C library.
static bool c_library_is_first(void) {
    void *first = (void*)dlopen, *own = (void*)cuslice_stub_dlopen;
    __asm__("" : "+r"(first), "+r"(own));  // the compiler may hold different names for different functions
    return first != own && find_c_libraries("/").count > 0;  // which is no library
}

static void look_at_program(void) {
    struct start start;
    const bool linked = cuInit || nvmlInit_v2, passed_over = c_library_is_first();
    if (!find_start(&start))
        return;
    if (!linked && !passed_over && !is_marked(&start))
        return;
    char library[1024];
    if (!library_path(library, sizeof(library)))
        *append(library, "libcuslice.so") = '\0';
    if (fact(&start, AT_SECURE)) {
        look_at_privileged(&start, library);
        return;
    }
    bring_library_in(&start, library);
    if (passed_over)
        put_c_library_behind(&start, library);
    tidy_up(&start, library);
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
