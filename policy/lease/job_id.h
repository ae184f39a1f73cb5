// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

#include "config/hash.h"

// The number by which the lease knows a job.
namespace cuslice::lease {

/// A hash of the name of a program's outermost job (SharingPlan): all processes that it starts, and the launcher's
/// commands, find the same. Never 0, which is nobody's. Pure.
constexpr uint64_t job_id(std::string_view name) {
    const uint64_t hash = hash_of(name);
    return hash == 0 ? 1 : hash;
}

}  // namespace cuslice::lease
