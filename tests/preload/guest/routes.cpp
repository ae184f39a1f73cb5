// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/routes.h"

#include <dlfcn.h>

#include <functional>

namespace guest {
namespace {

using Find = std::function<void*(const char* symbol, const char* name, int version, bool per_thread)>;

void take_all(Driver& driver, const Find& find) {
#define GUEST_FUNCTION(symbol, name, version) \
    driver.symbol = reinterpret_cast<decltype(driver.symbol)>(find(#symbol, #name, version, false));
#include "tests/preload/guest/functions.def"
    driver.cuMemAllocAsync_ptsz = reinterpret_cast<decltype(driver.cuMemAllocAsync_ptsz)>(
        find("cuMemAllocAsync_ptsz", "cuMemAllocAsync", 11020, true));
    driver.cuMemFreeAsync_ptsz = reinterpret_cast<decltype(driver.cuMemFreeAsync_ptsz)>(
        find("cuMemFreeAsync_ptsz", "cuMemFreeAsync", 11020, true));
}

using LookUpV1 = decltype(&::cuGetProcAddress);
using LookUpV2 = decltype(&::cuGetProcAddress_v2);

cuuint64_t flags(bool per_thread) {
    return per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
}

Find by_v1(LookUpV1 look_up) {
    return [=](const char*, const char* name, int version, bool per_thread) {
        void* found = nullptr;
        look_up(name, &found, version, flags(per_thread));
        return found;
    };
}

Find by_v2(LookUpV2 look_up, bool always_per_thread = false) {
    return [=](const char*, const char* name, int version, bool per_thread) {
        void* found = nullptr;
        look_up(name, &found, version, flags(per_thread || always_per_thread), nullptr);
        return found;
    };
}

Find by_symbol(void* handle) {
    return [=](const char* symbol, const char*, int, bool) { return dlsym(handle, symbol); };
}

#ifdef GUEST_LINKED
void* linked(const char* symbol, const char*, int, bool) {
    const std::string wanted = symbol;
#define GUEST_FUNCTION(name, base, version) \
    if (wanted == #name)                    \
        return reinterpret_cast<void*>(&::name);
#include "tests/preload/guest/functions.def"
    if (wanted == "cuMemAllocAsync_ptsz")
        return reinterpret_cast<void*>(&::cuMemAllocAsync_ptsz);
    return reinterpret_cast<void*>(&::cuMemFreeAsync_ptsz);
}
#endif

bool open(const std::string& file, int mode, void*& handle, std::string& why) {
    handle = dlopen(file.c_str(), mode);
    if (!handle)
        why = dlerror();
    return handle != nullptr;
}

}  // namespace

bool fill(Driver& driver, const std::string& route, std::string& why) {
    void* handle = nullptr;
#ifdef GUEST_LINKED
    take_all(driver, linked);
    return true;
#endif
    if (route.rfind("dlopen=", 0) == 0) {
        if (!open(route.substr(7), RTLD_NOW, handle, why))
            return false;
        take_all(driver, by_symbol(handle));
        return true;
    }
    if (route.rfind("dlmopen=", 0) == 0 || route.rfind("base-dlmopen=", 0) == 0) {
        const bool base = route[0] == 'b';
        handle = dlmopen(base ? LM_ID_BASE : LM_ID_NEWLM, route.substr(route.find('=') + 1).c_str(), RTLD_NOW);
        if (!handle)
            return why = dlerror(), false;
        take_all(driver, by_symbol(handle));
        return true;
    }
    if (route.rfind("deepbind=", 0) == 0) {
        if (!open(route.substr(9), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND, handle, why))
            return false;
        const auto fill_inside =
            reinterpret_cast<bool (*)(Driver&, const std::string&, std::string&)>(dlsym(handle, "guest_fill"));
        return fill_inside(driver, "linked", why);
    }
    if (route.rfind("module=", 0) == 0 || route.rfind("deepmodule=", 0) == 0) {
        const size_t begin = route.find('=') + 1, comma = route.find(',');
        const int scope = route[0] == 'd' ? RTLD_DEEPBIND : 0;
        if (!open(route.substr(begin, comma - begin), RTLD_NOW | RTLD_LOCAL | scope, handle, why))
            return false;
        const auto fill_inside =
            reinterpret_cast<bool (*)(Driver&, const std::string&, std::string&)>(dlsym(handle, "guest_fill"));
        return fill_inside(driver, route.substr(comma + 1), why);
    }
    if (!open("libcuda.so.1", RTLD_NOW, handle, why))
        return false;
    const auto v1 = reinterpret_cast<LookUpV1>(dlsym(handle, "cuGetProcAddress"));
    const auto v2 = reinterpret_cast<LookUpV2>(dlsym(handle, "cuGetProcAddress_v2"));
    if (route == "v1") {
        take_all(driver, by_v1(v1));
    } else if (route == "v2") {
        take_all(driver, by_v2(v2));
    } else if (route == "flag2") {
        take_all(driver, by_v2(v2, true));
    } else if (route == "nested") {
        const auto once = reinterpret_cast<LookUpV1>(by_v1(v1)(nullptr, "cuGetProcAddress", 11030, false));
        take_all(driver, by_v2(reinterpret_cast<LookUpV2>(by_v1(once)(nullptr, "cuGetProcAddress", 12000, false))));
    } else {
        why = "there is no route " + route;
        return false;
    }
    return true;
}

}  // namespace guest

#if defined(GUEST_LINKED) || defined(GUEST_MODULE)
extern "C" __attribute__((visibility("default"))) bool guest_fill(guest::Driver& driver, const std::string& route,
                                                                  std::string& why) {
    return guest::fill(driver, route, why);
}
#endif
