// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/driver/real_dlopen.h"

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/loaded_object.h"

namespace cuslice {

namespace {

constexpr char kHere = 0;

constinit DlopenFunction found = nullptr;  // the same value whoever writes it; orders as in libdl.cpp

}  // namespace

constinit const void* const kOwnPlace = &kHere;

void* next_function(const char* name) {
    // Not by dlsym(RTLD_NEXT): if another library stands before dlsym, the next one is counted from there, and may be
    // our own. Nor that of another copy of ours, which would hand us itself as the driver.
    void *next = nullptr, *any = nullptr;
    bool past = false;
    any_object([&](const LoadedObject& object) {
        if (object.holds(kOwnPlace)) {
            past = true;
            return false;
        }
        void* const symbol = object.find(kMarker) ? nullptr : object.find(name);
        if (!any)
            any = symbol;
        next = past ? symbol : nullptr;
        return next != nullptr;
    });
    return next ? next : any;
}

DlopenFunction real_dlopen() {
    DlopenFunction known = __atomic_load_n(&found, __ATOMIC_ACQUIRE);
    if (known)
        return known;
    Libdl::load();
    known = reinterpret_cast<DlopenFunction>(next_function("dlopen"));
    __atomic_store_n(&found, known, __ATOMIC_RELEASE);
    return known;
}

void set_real_dlopen(DlopenFunction function) { __atomic_store_n(&found, function, __ATOMIC_RELEASE); }

}  // namespace cuslice
