// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arrays of a program's, which are only to be read: handed to the driver as a copy with physical places in it.
#include "policy/base/page_vector.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

template <typename Item>
class PhysicalCopy {
  public:
    PhysicalCopy(const Item* items, size_t count) {
        for (size_t i = 0; items && i < count && complete_; i++)
            complete_ = copy_.push_back(items[i]);
        given_ = items;
    }
    ~PhysicalCopy() { copy_.release(); }
    PhysicalCopy(const PhysicalCopy&) = delete;
    PhysicalCopy& operator=(const PhysicalCopy&) = delete;

    bool complete() const { return complete_; }
    Item* begin() { return copy_.begin(); }
    Item* end() { return copy_.end(); }
    Item* get() { return given_ ? copy_.begin() : nullptr; }

  private:
    PageVector<Item> copy_;
    const Item* given_ = nullptr;
    bool complete_ = true;
};

template <typename Item, typename Translate, typename Call>
CUresult with_copy(const Item* items, size_t count, Translate translate, Call call) {
    PhysicalCopy<Item> copy(items, count);
    if (!copy.complete())
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (Item& item : copy)
        translate(item);
    return call(copy.get());
}

}  // namespace cuslice
