// SPDX-License-Identifier: Apache-2.0
#include "stub/start.h"

#include <sys/prctl.h>
#include <sys/vfs.h>

#include "stub/text.h"
#include "stub/work.h"

// The loader's: where the kernel has put the arguments.
extern __attribute__((weak, visibility("default"))) void* __libc_stack_end;

// CUSLICE_STUB=PID HOW COMMAND/FILE: of the process that starts itself once more, and of no child of it. HOW is one
// letter; COMMAND is the last component of a path, and so without a slash; FILE is what AT_EXECFN was.
static const char mark[] = "CUSLICE_STUB=", preload[] = "LD_PRELOAD=";
enum { command_size = 16, number_size = 24, arguments_size = 4 << 20 };

bool find_start(struct start* start) {
    uintptr_t* words = __libc_stack_end;
    if (!words)
        return false;
    start->arguments = (char**)(words + 1);
    start->environment = start->arguments + *words + 1;
    char** end = start->environment;
    while (*end)
        end++;
    while (!*end)
        end++;  // the loader takes variables away from programs with more rights
    start->facts = (Elf64_auxv_t*)end;
    return true;
}

static Elf64_auxv_t* find_fact(const struct start* start, uint64_t type) {
    for (Elf64_auxv_t* one = start->facts; one->a_type != AT_NULL; one++)
        if (one->a_type == type)
            return one;
    return NULL;
}

uint64_t fact(const struct start* start, uint64_t type) {
    const Elf64_auxv_t* const found = find_fact(start, type);
    return found ? found->a_un.a_val : 0;
}

char** last_variable(const struct start* start, const char* name) {
    char** last = NULL;
    for (char** entry = start->environment; *entry; entry++)
        if (begins_with(*entry, name))
            last = entry;
    return last;
}

static void remove_entry(char** entry) {
    for (; *entry; entry++)
        entry[0] = entry[1];
}

bool is_marked(const struct start* start) { return last_variable(start, mark) != NULL; }

void remove_mark(const struct start* start) {
    for (char** entry; (entry = last_variable(start, mark));)
        remove_entry(entry);
}

static char* append_number(char* to, uint64_t number) {
    if (number >= 10)
        to = append_number(to, number / 10);
    *to++ = (char)('0' + number % 10);
    return to;
}

// "CUSLICE_STUB=PID ", with the process's own id.
static char* append_own_mark(char* to) {
    to = append_number(append(to, mark), (uint64_t)kernel(SYS_getpid, 0, 0, 0, 0, 0, 0));
    *to++ = ' ';
    return to;
}

// From HOW on; null if there is no mark of this process.
static char* find_mark(const struct start* start) {
    char own[sizeof(mark) + number_size];
    *append_own_mark(own) = '\0';
    char** const entry = last_variable(start, own);
    return entry ? *entry + length_of(own) : NULL;
}

enum how how_started(const struct start* start) {
    const char* const told = find_mark(start);
    return told && *told ? (enum how) * told : at_first;
}

static void take_first_preload(const struct start* start, const char* library) {
    char** const entry = last_variable(start, preload);
    if (!entry)
        return;
    char* const list = *entry + sizeof(preload) - 1;
    if (!begins_with(list, library))
        return;
    const char* const rest = list + length_of(library);
    if (*rest == ':')
        *append(list, rest + 1) = '\0';
    else if (!*rest)
        remove_entry(entry);
}

static void put_names_back(const struct start* start, char* command) {
    char* file = command;
    while (*file && *file != '/')
        file++;
    if (*file)
        *file++ = '\0';
    kernel(SYS_prctl, PR_SET_NAME, (long)command, 0, 0, 0, 0);
    Elf64_auxv_t* const name = find_fact(start, AT_EXECFN);
    if (name && *file)
        name->a_un.a_val = (uintptr_t)file;
}

void tidy_up(const struct start* start, const char* library) {
    char* const told = find_mark(start);
    if (told) {
        if (*told == with_library || *told == with_older)
            take_first_preload(start, library);
        if (told[0] && told[1])
            put_names_back(start, told + 2);
    }
    remove_mark(start);
}

static const char* text_of_mark(const struct start* start, struct work* work, enum how how) {
    const char* file = (const char*)(uintptr_t)fact(start, AT_EXECFN);
    char command[command_size + 1] = "";
    const char* const before = find_mark(start);
    if (before && before[1]) {  // started once more for another reason already: the names are the first start's
        char* const same = take_from(work, sizeof(mark) + number_size + 3 + length_of(before));
        if (!same)
            return NULL;
        char* end = append_own_mark(same);
        *end++ = (char)how;
        *append(end, before + 1) = '\0';
        return same;
    }
    if (!file)
        file = "";
    char* const text = take_from(work, sizeof(mark) + number_size + 4 + command_size + length_of(file));
    if (!text)
        return NULL;
    kernel(SYS_prctl, PR_GET_NAME, (long)command, 0, 0, 0, 0);
    char* end = append_own_mark(text);
    *end++ = (char)how;
    *end++ = ' ';
    end = append(end, command);
    *end++ = '/';
    *append(end, file) = '\0';
    return text;
}

static const char* text_of_variable(struct work* work, const struct variable* variable) {
    char* const text = take_from(work, length_of(variable->name) + length_of(variable->value) + 1);
    if (text)
        *append(append(text, variable->name), variable->value) = '\0';
    return text;
}

// With the changed variable where it was, or at the end, and once only.
static const char** make_environment(const struct start* start, struct work* work, enum how how,
                                     const struct variable* changed) {
    size_t count = 0;
    for (char** entry = start->environment; *entry; entry++)
        count++;
    const char** const made = take_from(work, (count + 3) * sizeof(char*));
    const char* const told = text_of_mark(start, work, how);
    const char* const text = changed->value ? text_of_variable(work, changed) : NULL;
    if (!made || !told || (changed->value && !text))
        return NULL;
    char** const place = last_variable(start, changed->name);
    size_t next = 0;
    for (char** entry = start->environment; *entry; entry++) {
        if (begins_with(*entry, mark))
            continue;
        if (!begins_with(*entry, changed->name))
            made[next++] = *entry;
        else if (entry == place && text)
            made[next++] = text;
    }
    if (!place && text)
        made[next++] = text;
    made[next++] = told;
    made[next] = NULL;
    return made;
}

// The loader, started as a program, takes its own arguments away from the program's.
static char** arguments_to_start(const struct start* start, struct work* work) {
    if (fact(start, AT_BASE))
        return start->arguments;
    const long file = open_file("/proc/self/cmdline");
    char* const text = take_from(work, arguments_size / 2);
    char** const words = take_from(work, arguments_size / 2);
    if (file < 0 || !text || !words)
        return NULL;
    char *last = text, *const end = text + arguments_size / 2 - 1;
    for (long got = 1; got > 0 && last<end; last += got> 0 ? got : 0)
        got = read_file(file, last, (size_t)(end - last));
    close_file(file);
    if (last >= end)
        return NULL;
    *last = '\0';
    size_t count = 0;
    for (char* word = text; word < last; word += length_of(word) + 1) {
        if (count + 1 >= arguments_size / 2 / sizeof(char*))
            return NULL;
        words[count++] = word;
    }
    words[count] = NULL;
    return words;
}

// The user who chose the program's name can have exchanged the file behind it. The link in procfs leads to the file
// that runs, whatever has become of its name; elsewhere the link would be anybody's.
static bool is_in_procfs(const char* path) {
    enum { procfs = 0x9fa0 };
    struct statfs about;
    return kernel(SYS_statfs, (long)path, (long)&about, 0, 0, 0, 0) == 0 && about.f_type == procfs;
}

void start_again(const struct start* start, enum how how, const struct variable* changed) {
    size_t size = 64 << 10;
    for (char** entry = start->environment; *entry; entry++)
        size += sizeof(char*);
    size += changed->value ? length_of(changed->value) : 0;
    const char* const before = find_mark(start);
    size += before ? length_of(before) : 0;
    if (!fact(start, AT_BASE))
        size += arguments_size;
    struct work work;
    if (fact(start, AT_SECURE) || !is_in_procfs("/proc/self") || !take_work(&work, size))
        return;
    const char** const environment = make_environment(start, &work, how, changed);
    char** const arguments = arguments_to_start(start, &work);
    if (environment && arguments)
        kernel(SYS_execve, (long)"/proc/self/exe", (long)arguments, (long)environment, 0, 0, 0);
    give_back_work(&work);
}

_Noreturn void end_program(void) {
    kernel(SYS_exit_group, 127, 0, 0, 0, 0, 0);
    for (;;)
        __builtin_trap();
}
