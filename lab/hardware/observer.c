// SPDX-License-Identifier: Apache-2.0
/* Which modules ask the driver for cuGetProcAddress? An auditor of the dynamic loader (LD_AUDIT, rtld-audit(7)): it is
 * told of every symbol that is bound, dlsym included, with the module that asks and the one that answers. Appends a
 * line `name <tab> asking module <tab> answering module` to the file in CHECK_OBSERVER. Changes nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned la_version(unsigned version) { return version < LAV_CURRENT ? version : LAV_CURRENT; }

EXPORT unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
    (void)space;
    *cookie = (uintptr_t)map;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

static const char* file_of(const uintptr_t* cookie) {
    const char* path = ((const struct link_map*)*cookie)->l_name;
    const char* slash = strrchr(path, '/');
    return slash ? slash + 1 : *path ? path : "the program";
}

EXPORT uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned index, uintptr_t* from, uintptr_t* to, unsigned* flags,
                              const char* name) {
    (void)index;
    (void)flags;
    const char* path = getenv("CHECK_OBSERVER");
    if (path && strncmp(name, "cuGetProcAddress", 16) == 0) {
        char line[512];
        const int length = snprintf(line, sizeof line, "%s\t%s\t%s\n", name, file_of(from), file_of(to));
        const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        if (file >= 0 && length > 0 && (size_t)length < sizeof line && write(file, line, (size_t)length) < 0)
            _exit(1);
        if (file >= 0)
            close(file);
    }
    return symbol->st_value;
}
