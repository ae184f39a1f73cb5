// SPDX-License-Identifier: Apache-2.0
// The slices of GPUs as the launcher knows them: policy/frameworks/slice_room.h of a Gpu.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/gpus/fake_check.h"
#include "cli/gpus/gpus.h"
#include "config/settings.h"
#include "policy/frameworks/slice_room.h"

namespace cuslice::cli {

/// The slice of a whole GPU, given its limit. `contexts`: of fake GPUs, which are known.
SliceRoom room_of(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, uint64_t limit);
/// The same of a part of `gpu`, where `all` is what the parts that the program sees have together.
SliceRoom room_of_part(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, uint64_t limit,
                       uint64_t all);

/// The slices of `gpus`, which the program sees: of a GPU that is split, one for each part. GPUs whose memory nobody
/// has told are left out.
std::vector<SliceRoom> slice_rooms(const Settings& settings, const ContextSizes& contexts,
                                   const std::vector<Gpu>& gpus);

}  // namespace cuslice::cli
