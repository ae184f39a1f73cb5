// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "policy/base/page_vector.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

// Access to memory as the driver takes it. To the driver all partitions of a GPU are one place, which may be named
// only once, so the others can't be kept from what one of them may do.
class PhysicalAccess {
  public:
    PhysicalAccess(const CUmemAccessDesc* wishes, size_t count) : given_(wishes) {
        for (size_t i = 0; wishes && i < count; i++)
            add(wishes[i]);
    }
    ~PhysicalAccess() { real_.release(); }
    PhysicalAccess(const PhysicalAccess&) = delete;
    PhysicalAccess& operator=(const PhysicalAccess&) = delete;

    bool complete() const { return complete_; }
    CUmemAccessDesc* begin() { return real_.begin(); }
    CUmemAccessDesc* end() { return real_.end(); }
    // As the driver's functions take it.
    const CUmemAccessDesc* get() { return size() ? real_.begin() : given_; }
    size_t size() const { return real_.size(); }

  private:
    void add(CUmemAccessDesc wish) {
        to_physical(wish.location);
        for (CUmemAccessDesc& other : real_) {
            if (other.location.type != wish.location.type || other.location.id != wish.location.id)
                continue;
            if (wish.flags > other.flags)
                other.flags = wish.flags;
            return;
        }
        complete_ = complete_ && real_.push_back(wish);
    }
    const CUmemAccessDesc* given_;
    PageVector<CUmemAccessDesc> real_;
    bool complete_ = true;
};

}  // namespace cuslice
