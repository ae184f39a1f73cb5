// SPDX-License-Identifier: Apache-2.0
#include "stub/look_ahead.h"

#include "stub/library_file.h"
#include "stub/search.h"

enum { most_files = 256, most_names = 4096, work_size = 1 << 20 };

// One of the files that the loader would map, in the order in which they are looked at.
struct found {
    struct wanting who;
    struct library_file library;
    struct found* next;
};

struct look {
    struct work work;
    struct search search;
    struct found *first, *last;
    size_t files, names;
    bool unknown;  // something that the loader may find could not be read
};

static bool take(void* argument, const char* path, const struct wanting* by) {
    struct look* look = argument;
    char* const before = look->work.next;
    struct found* const found = take_from(&look->work, sizeof(*found));
    const bool has_room = found && look->files < most_files;
    const enum reading_result read = has_room ? read_library_file(path, &look->work, &found->library) : library_unknown;
    look->unknown |= read == library_unknown || (read == library_read && found->library.incomplete);
    if (read != library_read) {
        look->work.next = before;
        return false;
    }
    found->who = (struct wanting){path, found->library.rpath, found->library.runpath, by};
    found->next = NULL;
    *(look->last ? &look->last->next : &look->first) = found;
    look->last = found;
    look->files++;
    return true;
}

// Once under a name, the loader takes it for whoever else needs that name.
static bool was_wanted(const struct look* look, const struct found* by, size_t index) {
    for (const struct found* one = look->first;; one = one->next) {
        const size_t count = one == by ? index : one->library.needs_count;
        for (size_t i = 0; i < count; i++)
            if (one->library.needs[i] && equal(one->library.needs[i], by->library.needs[index]))
                return true;
        if (one == by)
            return false;
    }
}

static enum leads look_at_needs(struct look* look, const struct found* by) {
    const char** const needs = by->library.needs;
    const size_t count = by->library.needs_count;
    enum leads most = leads_nowhere;
    for (size_t i = 0; i < count; i++) {
        const enum leads leads = leads_by_name(needs[i]);
        if (leads > most)
            most = leads;
    }
    look->names += count;
    look->unknown |= look->names > most_names;
    if (most == leads_to_driver || look->names > most_names)
        return most;
    leave_out_loaded(needs, count);
    for (size_t i = 0; i < count; i++)
        if (needs[i] && leads_by_name(needs[i]) == leads_nowhere && !was_wanted(look, by, i))
            search_library(&look->search, &(struct wish){needs[i], &by->who, take, look});
    return most;
}

enum leads look_ahead(const char* name, const void* caller, dlopen_function dlopen) {
    const char* unless_loaded = name;
    leave_out_loaded(&unless_loaded, 1);
    struct look look = {.files = 0};
    if (!unless_loaded)
        return leads_nowhere;
    if (!take_work(&look.work, work_size))
        return leads_unknown;
    begin_search(&look.search, &look.work, caller, dlopen);
    search_library(&look.search, &(struct wish){name, &look.search.caller, take, &look});
    enum leads most = leads_nowhere;
    for (const struct found* one = look.first; one && most != leads_to_driver; one = one->next) {
        const enum leads leads = look_at_needs(&look, one);
        if (leads > most)
            most = leads;
    }
    const bool unknown = look.unknown || look.search.unknown || look.search.cache.unknown;
    end_search(&look.search);
    give_back_work(&look.work);
    return unknown && most < leads_unknown ? leads_unknown : most;
}
