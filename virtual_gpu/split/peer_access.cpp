// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/peer_access.h"

namespace cuslice {

constinit PeerAccess the_peer_access;

PeerAccess::Pair* PeerAccess::find(uint64_t from, uint64_t to) {
    for (Pair& pair : pairs_)
        if (pair.from == from && pair.to == to)
            return &pair;
    return nullptr;
}

bool PeerAccess::needs_real(const Pair& pair) const {
    for (const Pair& other : pairs_)
        if (other.real_from == pair.real_from && other.real_to == pair.real_to)
            return true;
    return false;
}

bool PeerAccess::allow(const Pair& pair, bool* first) {
    LockGuard lock(mutex_);
    *first = !needs_real(pair);
    return !find(pair.from, pair.to) && pairs_.push_back(pair);
}

bool PeerAccess::forbid(uint64_t from, uint64_t to, bool* last) {
    LockGuard lock(mutex_);
    Pair* pair = find(from, to);
    if (!pair)
        return false;
    const Pair was = *pair;
    pairs_.remove_at(static_cast<size_t>(pair - pairs_.begin()));
    *last = !needs_real(was);
    return true;
}

void PeerAccess::ended(uint64_t context) {
    LockGuard lock(mutex_);
    for (size_t i = pairs_.size(); i-- > 0;)
        if (pairs_[i].from == context || pairs_[i].to == context)
            pairs_.remove_at(i);
}

}  // namespace cuslice
