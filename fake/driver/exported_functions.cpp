// SPDX-License-Identifier: Apache-2.0
// Every function of functions.def, weak: those that no entry_*.cpp defines answer CUDA_ERROR_NOT_SUPPORTED and say
// their name once. And the table of all their addresses. NVIDIA's header is not included here: a function without a
// definition elsewhere needs no signature, since all of them return a CUresult and the caller cleans up its arguments.

#include "fake/driver/exported_functions.h"

#include "fake/driver/unsupported.h"

#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) \
    extern "C" __attribute__((weak, visibility("default"))) int symbol();   \
    extern "C" int symbol() {                                               \
        static std::atomic<bool> said{false};                               \
        return cuslice::fake::log_unsupported(#symbol, said);               \
    }
#include "virtual_gpu/driver/functions.def"

namespace cuslice::fake {
namespace {

constexpr bool legacy = false, per_thread = true;

const Exported all[] = {
#define CUSLICE_FUNCTION(symbol, name, version, stream, route, split, turn) \
    {#symbol, #name, version, stream, reinterpret_cast<void*>(&::symbol)},
#include "virtual_gpu/driver/functions.def"
};

}  // namespace

std::span<const Exported> exported_functions() { return all; }

bool is_driver_function(const std::string& name) {
    for (const Exported& row : exported_functions()) {
        if (name == row.symbol || name == row.name)
            return true;
    }
    return false;
}

}  // namespace cuslice::fake
