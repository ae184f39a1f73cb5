// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/stage/stage.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace guest {

bool leads_early() {
    const char* const when = std::getenv("GUEST_STAGE");
    return when && std::strcmp(when, "early") == 0;
}

void lead_on(const char* file, const char* const* names, void** slots, size_t count) {
    if (const char* fake = std::getenv("GUEST_FAKE"))
        setenv("CUSLICE_FAKE", fake, 1);
    const char *const store = std::getenv("GUEST_STORE"), *const prefix = std::getenv("GUEST_PREFIX");
    char path[4096];
    std::snprintf(path, sizeof path, "%s/%s%s", store ? store : "", prefix ? prefix : "", file);
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "stage: %s\n", dlerror());
        std::abort();
    }
    for (size_t i = 0; i < count; ++i)
        slots[i] = dlsym(library, names[i]);
}

}  // namespace guest
