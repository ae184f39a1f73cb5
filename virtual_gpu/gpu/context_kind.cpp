// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/context_kind.h"

#include <unistd.h>

#include <string_view>

#include "config/text.h"

namespace cuslice {

namespace {

constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;

uint64_t mixed(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * kSeed;
    return hash ^ hash >> 29;
}

uint64_t hash_of(std::string_view text) {
    uint64_t hash = kSeed;
    for (const char character : text)
        hash = mixed(hash, static_cast<unsigned char>(character));
    return hash;
}

// Such as CUDA_MODULE_LOADING and CUDA_DEVICE_MAX_CONNECTIONS. One that makes no difference costs a context that is
// made before it is refused; one that is left out would cost a context that would have fit.
bool may_change_contexts(std::string_view line) {
    constexpr std::string_view kHarmless[] = {"CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "CUDA_CACHE_"};
    for (const std::string_view prefix : kHarmless)
        if (starts_with(line, prefix))
            return false;
    return starts_with(line, "CUDA_") || starts_with(line, "CUDBG_");
}

// NVIDIA's default for CUDA_MPS_PIPE_DIRECTORY, which is hashed with the others.
bool has_mps() { return ::access("/tmp/nvidia-mps/control", F_OK) == 0; }

uint64_t never_0(uint64_t hash) { return hash ? hash : 1; }

}  // namespace

// A sum, as their order makes no difference.
uint64_t context_kind(const char* const* environment) {
    uint64_t sum = has_mps();
    for (const char* const* line = environment; *line; line++)
        if (may_change_contexts(*line))
            sum += hash_of(*line);
    return never_0(mixed(kSeed, sum));
}

uint64_t context_kind(uint64_t of_process, unsigned flags, int cuda_version) {
    return never_0(mixed(mixed(of_process, flags), static_cast<uint64_t>(cuda_version)));
}

}  // namespace cuslice
