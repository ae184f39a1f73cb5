// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/newer_captures.h"

#include <atomic>
#include <cstring>

#include "shim/entry.h"

namespace cuslice {

namespace {

constexpr unsigned kStubs = 16;  // newer_captures.S has as many, of so many bytes each
constexpr size_t kStubBytes = 16;

constinit std::atomic<void*> real_functions[kStubs]{};

}  // namespace

extern "C" {
extern __attribute__((visibility("hidden"))) const char cuslice_newer_capture_stubs[];

__attribute__((visibility("hidden"))) void* cuslice_newer_capture(unsigned index, CUstream stream) {
    if (meets_watched_work())
        process().caches().captures().may_begin(stream, CaptureTracker::By::unknown);
    return real_functions[index].load(std::memory_order_acquire);
}
}

bool begins_capture(const char* name) {
    constexpr char kBegin[] = "cuStreamBegin";
    return name && std::strncmp(name, kBegin, sizeof kBegin - 1) == 0 && std::strstr(name, "apture");
}

void* newer_capture(void* real) {
    for (unsigned i = 0; i < kStubs; i++) {
        void* there = nullptr;
        if (real_functions[i].compare_exchange_strong(there, real, std::memory_order_acq_rel) || there == real)
            return const_cast<char*>(cuslice_newer_capture_stubs) + i * kStubBytes;
    }
    return nullptr;
}

}  // namespace cuslice
