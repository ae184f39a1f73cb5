// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "policy/base/mutex.h"
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Access of virtual contexts to each other's memory, by their numbers. Several pairs of virtual contexts can be one
// pair of real ones, which the driver is told of once. Thread-safe.
class PeerAccess {
  public:
    struct Pair {
        uint64_t from, to;
        CUcontext real_from, real_to;
    };
    // False if it is allowed already, or there is no memory. `first`: the real ones had not been told before.
    bool allow(const Pair& pair, bool* first);
    // False if it is not allowed. `last`: no other pair needs the real ones' any more.
    bool forbid(uint64_t from, uint64_t to, bool* last);
    void ended(uint64_t context);

  private:
    Pair* find(uint64_t from, uint64_t to) CUSLICE_REQUIRES(mutex_);
    // True if a pair is kept whose real contexts these are.
    bool needs_real(const Pair& pair) const CUSLICE_REQUIRES(mutex_);
    Mutex mutex_{LockRank::peer_access};
    PageVector<Pair> pairs_ CUSLICE_GUARDED_BY(mutex_);
};

extern constinit PeerAccess the_peer_access;

}  // namespace cuslice
