// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/guest/stage/stage.h"

namespace {

constexpr const char* kNames[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) #symbol,
#include "virtual_gpu/driver/functions.def"
};
constexpr size_t kCount = sizeof kNames / sizeof *kNames;

int missing() { return 36; }  // CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) void* stage_slots[kCount] = {};

// Resolves a call through an empty slot.
__attribute__((visibility("hidden"))) void* stage_resolve(unsigned index) {
    if (!stage_slots[0])
        guest::lead_on("libcuda.so.1.1", kNames, stage_slots, kCount);
    return stage_slots[index] ? stage_slots[index] : reinterpret_cast<void*>(&missing);
}
}

[[gnu::constructor]] static void start() {
    if (guest::leads_early())
        guest::lead_on("libcuda.so.1.1", kNames, stage_slots, kCount);
}
