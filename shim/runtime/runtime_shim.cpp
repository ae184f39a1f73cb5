// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime/runtime_shim.h"

#include <atomic>

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice::runtime {

namespace {

constexpr size_t kCount = static_cast<size_t>(Id::count);

constexpr const char* kNames[kCount] = {
#define CUSLICE_RUNTIME(symbol, version) #symbol,
#define CUSLICE_RUNTIME_BOTH(symbol) #symbol,
#define CUSLICE_RUNTIME_FORMS(symbol) #symbol,
#define CUSLICE_RUNTIME_NEEDED(symbol) #symbol,
#include "shim/runtime/functions.def"
#undef CUSLICE_RUNTIME
#undef CUSLICE_RUNTIME_BOTH
#undef CUSLICE_RUNTIME_FORMS
#undef CUSLICE_RUNTIME_NEEDED
};

constinit std::atomic<void*> found[2][kCount]{};
constinit std::atomic<void*> handles[2]{};

// The runtime's library, which is loaded since its user has called us. RTLD_NOLOAD adds a reference that is never
// given back, so the addresses found in it stay valid.
void* handle_of(int version) {
    std::atomic<void*>& handle = handles[version == 13];
    void* known = handle.load(std::memory_order_acquire);
    if (known)
        return known;
    const char* soname = version == 13 ? "libcudart.so.13" : "libcudart.so.12";
    const SplitView* split = cuslice_split_view();
    known = split ? split->loaded(soname) : real_dlopen()(soname, RTLD_NOW | RTLD_NOLOAD);
    if (known)
        handle.store(known, std::memory_order_release);
    return known;
}

}  // namespace

const SplitView* view() {
    static constinit std::atomic<const SplitView*> opened{nullptr};
    static constinit std::atomic<bool> none{false};
    const SplitView* known = opened.load(std::memory_order_acquire);
    if (known || none.load(std::memory_order_relaxed))
        return known;
    const SplitView* split = cuslice_split_view();
    if (!split)
        none.store(true, std::memory_order_relaxed);
    else if (split->open())
        opened.store(known = split, std::memory_order_release);
    return known;
}

int loaded_version(int version) { return version == 13 && !handle_of(13) && handle_of(12) ? 12 : version; }

void* runtime_function(int version, Id id) {
    version = loaded_version(version);
    std::atomic<void*>& slot = found[version == 13][static_cast<size_t>(id)];
    void* known = slot.load(std::memory_order_acquire);
    if (known)
        return known;
    void* handle = handle_of(version);
    known = handle ? Libdl::dlsym(handle, kNames[static_cast<size_t>(id)]) : nullptr;
    slot.store(known, std::memory_order_release);
    return known;
}

}  // namespace cuslice::runtime
