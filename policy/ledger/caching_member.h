// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cuslice::ledger {

/// Another process of an account that has a cache. How much of what it holds is unused it alone knows for certain, and
/// it alone can give that back.
struct CachingMember {
    uint64_t bytes = 0;  // that it holds; 0: there is none
    int32_t pid = 0;
    bool is_here = false;  // the pid is one of this process's pid namespace
    bool is_stopped = false;
    char command[48] = "";
};

}  // namespace cuslice::ledger
