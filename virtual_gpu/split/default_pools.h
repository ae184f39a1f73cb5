// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "virtual_gpu/driver/cuda_api.h"

namespace cuslice {

// Pools that virtual GPUs have without a program's making them, one each, as a GPU has. All are thread-safe, and take
// ordinals of virtual GPUs that there are.

// The preset one, which is made when it is first asked for, and never destroyed, as a driver's isn't.
CUresult preset_pool_of(int ordinal, CUmemoryPool* pool);
bool is_preset_pool(CUmemoryPool pool);

// The pool of allocations that name none: the preset one unless another is chosen.
CUresult chosen_pool_of(int ordinal, CUmemoryPool* pool);
void choose_pool(int ordinal, CUmemoryPool pool);
// Where it was the chosen one the preset one is, from now on.
void unchoose_pool(int ordinal, CUmemoryPool pool);

// A physical GPU was reset, and its pools with it.
void forget_pools_of(CUdevice physical);
// A use of a physical GPU's primary context was given up. Where it was the last one, pools that were made end with the
// context: the parts' default ones too, which a program may count on as on a driver's, and which are made anew then.
void forget_pools_if_ended(CUdevice physical);

}  // namespace cuslice
