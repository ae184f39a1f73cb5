// SPDX-License-Identifier: Apache-2.0
#include "shim/runtime/runtime_shim.h"

#include <atomic>
#include <iterator>

#include "virtual_gpu/driver/libdl.h"
#include "virtual_gpu/driver/real_dlopen.h"

namespace cuslice::runtime {

namespace {

constexpr size_t kCount = static_cast<size_t>(Id::count);

constexpr const char* kNames[kCount] = {
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) #symbol,
#define CUSLICE_RUNTIME_NEEDED(symbol) #symbol,
#include "shim/runtime/functions.def"
#undef CUSLICE_RUNTIME
#undef CUSLICE_RUNTIME_NEEDED
};

constexpr int kOldest = 11, kNewest = 13;
constexpr const char* kSonames[] = {"libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"};

constinit std::atomic<void*> found[std::size(kSonames)][kCount]{};
constinit std::atomic<void*> handles[std::size(kSonames)]{};

// The runtime's library, which is loaded since its user has called us. RTLD_NOLOAD adds a reference that is never
// given back, so the addresses found in it stay valid.
void* handle_of(int version) {
    std::atomic<void*>& handle = handles[version - kOldest];
    void* known = handle.load(std::memory_order_acquire);
    if (known)
        return known;
    const char* soname = kSonames[version - kOldest];
    const SplitView* split = cuslice_split_view();
    known = split ? split->loaded(soname) : real_dlopen()(soname, RTLD_NOW | RTLD_NOLOAD);
    if (known)
        handle.store(known, std::memory_order_release);
    return known;
}

// Before 11.3 a runtime took the driver's exported functions, which are the program's view of the GPUs: there is
// nothing to exchange. cudaGetDriverEntryPoint came with cuGetProcAddress.
bool steps_aside(const SplitView& split) {
    void* const handle = handle_of(kOldest);
    if (!handle || Libdl::dlsym(handle, "cudaGetDriverEntryPoint"))
        return false;
    split.say_too_old(Libdl::dlsym(handle, "cudaGetDevice"));
    return true;
}

}  // namespace

const SplitView* view() {
    static constinit std::atomic<const SplitView*> opened{nullptr};
    static constinit std::atomic<bool> none{false};
    const SplitView* known = opened.load(std::memory_order_acquire);
    if (known || none.load(std::memory_order_relaxed))
        return known;
    const SplitView* split = cuslice_split_view();
    if (!split || steps_aside(*split))
        none.store(true, std::memory_order_relaxed);
    else if (split->open())
        opened.store(known = split, std::memory_order_release);
    return known;
}

int loaded_version(int version) {
    if (handle_of(version))
        return version;
    for (int other = kNewest; other >= kOldest; other--)
        if (handle_of(other))
            return other;
    return version;
}

void* runtime_function(int version, Id id) {
    version = loaded_version(version);
    std::atomic<void*>& slot = found[version - kOldest][static_cast<size_t>(id)];
    void* known = slot.load(std::memory_order_acquire);
    if (known)
        return known;
    void* handle = handle_of(version);
    known = handle ? Libdl::dlsym(handle, kNames[static_cast<size_t>(id)]) : nullptr;
    slot.store(known, std::memory_order_release);
    return known;
}

}  // namespace cuslice::runtime
