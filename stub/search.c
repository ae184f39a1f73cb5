// SPDX-License-Identifier: Apache-2.0
#include "stub/search.h"

#include "stub/text.h"

void begin_search(struct search* search, struct work* work, const void* caller, dlopen_function dlopen) {
    *search = (struct search){.work = work, .dlopen = dlopen, .cache.path = "/etc/ld.so.cache"};
    describe_object(NULL, &search->program);
    describe_object(caller, &search->caller);
    if (*search->caller.path)
        search->caller.by = &search->program;
}

void end_search(struct search* search) { forget_cache(&search->cache); }

// The loader tells the folders of an object in one list: its RPATH, LD_LIBRARY_PATH, its RUNPATH, the loader's own. The
// stub has nothing but its own folder as RUNPATH, so its list shows where the loader's own begin. For programs with
// more rights than their user neither LD_LIBRARY_PATH nor that RUNPATH counts: then all of them are the loader's own.
static void list_folders(struct search* search) {
    typedef int (*dlinfo_function)(void*, int, void*);
    const dlinfo_function ask = (dlinfo_function)find_function("dlinfo");
    const char* own = own_path();
    void* const stub = ask && own ? search->dlopen(own, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    Dl_serinfo size;
    if (!stub || ask(stub, RTLD_DI_SERINFOSIZE, &size) != 0)
        return;
    Dl_serinfo* const list = take_from(search->work, size.dls_size);
    search->unknown |= !list;
    if (!list)
        return;
    list->dls_size = size.dls_size;
    list->dls_cnt = size.dls_cnt;
    if (ask(stub, RTLD_DI_SERINFO, list) != 0)
        return;
    search->folders = list->dls_serpath;
    search->folder_count = list->dls_cnt;
    const size_t length = (size_t)(last_component(own) - own) - 1;
    for (size_t i = list->dls_cnt; i-- > 0 && search->own_from == 0;) {
        const char* const folder = list->dls_serpath[i].dls_name;
        if (length_of(folder) == length && begins_with(own, folder))
            search->own_from = i + 1;
    }
}

// Prepares a search once there is something to look for: lists the folders and finds the program's path.
static void prepare(struct search* search) {
    enum { longest = 4096 };
    search->prepared = true;
    list_folders(search);
    if (*search->program.path)
        return;
    char* const path = take_from(search->work, longest);
    const long length =
        path ? kernel(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, longest - 1, 0, 0) : -ENOMEM;
    search->unknown |= length < 0 && !is_nothing(length);
    if (length <= 0)
        return;
    path[length] = '\0';
    if (!*search->caller.path)
        search->caller.path = path;
    search->program.path = path;
}

// A path that is being written, at the beginning of the free working memory.
struct writing {
    char *next, *end;
    bool is_full, is_known;
};

static void write_text(struct writing* writing, const char* text, size_t size) {
    writing->is_full |= size > (size_t)(writing->end - writing->next);
    for (size_t i = 0; i < size && !writing->is_full; i++)
        *writing->next++ = text[i];
}

// With the folder of `origin` for $ORIGIN. Other such words are not known here.
static void write_expanded(struct writing* writing, const char* text, size_t size, const struct wanting* origin) {
    static const char *const plain = "$ORIGIN", *const braced = "${ORIGIN}";
    const char *const end = text + size, *const file = last_component(origin->path);
    while (text < end) {
        const char* const word = begins_with(text, plain) ? plain : begins_with(text, braced) ? braced : NULL;
        if (!word) {
            writing->is_known &= *text != '$';
            write_text(writing, text++, 1);
            continue;
        }
        if (file == origin->path)
            write_text(writing, ".", 1);
        write_text(writing, origin->path, (size_t)(file - origin->path));
        text += length_of(word);
    }
}

// The wish's name is added, if `folder` isn't that name itself.
static bool take_at(struct search* search, const struct wish* wish, const char* folder, size_t size,
                    const struct wanting* origin) {
    struct work* const work = search->work;
    char* const path = work->next;
    struct writing writing = {path, work->end, false, true};
    write_expanded(&writing, folder, size, origin);
    if (folder != wish->name && size > 0)
        write_text(&writing, "/", 1);
    if (folder != wish->name)
        write_text(&writing, wish->name, length_of(wish->name));
    write_text(&writing, "", 1);
    search->unknown |= writing.is_full;
    if (writing.is_full || !writing.is_known)
        return false;
    work->next = writing.next;
    const bool taken = wish->take(wish->argument, path, wish->by);
    if (!taken)
        work->next = path;
    return taken;
}

static bool take_in_list(struct search* search, const struct wish* wish, const char* list,
                         const struct wanting* origin) {
    while (list) {
        const char* end = list;
        while (*end && *end != ':')
            end++;
        if (take_at(search, wish, list, (size_t)(end - list), origin))
            return true;
        list = *end ? end + 1 : NULL;
    }
    return false;
}

static bool take_in_folders(struct search* search, const struct wish* wish, size_t from, size_t to) {
    for (; from < to; from++) {
        const char* const folder = search->folders[from].dls_name;
        if (take_at(search, wish, folder, length_of(folder), wish->by))
            return true;
    }
    return false;
}

static bool take_in_cache(struct search* search, const struct wish* wish) {
    bool taken = false;
    size_t place = 0;
    for (const char* path; (path = next_in_cache(&search->cache, wish->name, &place));)
        taken |= wish->take(wish->argument, path, wish->by);
    return taken;
}

bool search_library(struct search* search, const struct wish* wish) {
    const struct wanting* const by = wish->by;
    bool path = false, expanded = false;
    for (const char* c = wish->name; *c; c++)
        path |= *c == '/', expanded |= *c == '$';
    if (!search->prepared && (!path || expanded))
        prepare(search);
    if (path)
        return take_at(search, wish, wish->name, length_of(wish->name), by);
    for (const struct wanting* one = by->runpath ? NULL : by; one; one = one->by)
        if (take_in_list(search, wish, one->rpath, one))
            return true;
    return take_in_folders(search, wish, 0, search->own_from) || take_in_list(search, wish, by->runpath, by) ||
           take_in_cache(search, wish) || take_in_folders(search, wish, search->own_from, search->folder_count);
}
