// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hints that managed memory was given, page by page of the host's. They are remembered to be told again, and change
// nothing else.

#include <set>

#include "fake/driver/addresses.h"
#include "fake/driver/cuda_api.h"

namespace cuslice::fake {

struct Hints {
    static constexpr CUmemLocation kNowhere = {CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID};
    bool read_mostly = false;
    CUmemLocation preferred = kNowhere, prefetched = kNowhere;
    std::set<int> accessed_by;  // ordinals, or CU_DEVICE_CPU
};

// Both: the range is one of the block's, which is managed memory. The driver's lock is held.

/// Changes the hints of each page that the range touches; `change` is given the place too.
void change_hints(const Found& block, Address from, size_t bytes, void (*change)(Hints& hints, CUmemLocation place),
                  CUmemLocation place);
/// The hints that all pages of the range have in common.
Hints common_hints(const Found& block, Address from, size_t bytes);

}  // namespace cuslice::fake
