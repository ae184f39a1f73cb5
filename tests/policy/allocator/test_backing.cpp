// SPDX-License-Identifier: Apache-2.0
#include "tests/policy/allocator/test_backing.h"

#include "policy/allocator/caching_allocator-inl.h"

namespace cuslice {

template class CachingAllocator<TestBacking>;

}  // namespace cuslice
