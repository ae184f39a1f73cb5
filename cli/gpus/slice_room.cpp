// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/slice_room.h"

#include "cli/gpus/gpu_query.h"

namespace cuslice::cli {
namespace {

SeenGpu memory_of(const ContextSizes& contexts, const Gpu& gpu) {
    SeenGpu memory{identity_of(gpu, gpu.ordinal), gpu.total, std::nullopt};
    if (const auto known = contexts.find(gpu.uuid); known != contexts.end())
        memory.context = known->second;
    return memory;
}

}  // namespace

SliceRoom room_of(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, uint64_t limit) {
    return cuslice::room_of(settings, memory_of(contexts, gpu), limit);
}

SliceRoom room_of_part(const Settings& settings, const ContextSizes& contexts, const Gpu& gpu, uint64_t limit,
                       uint64_t all) {
    return cuslice::room_of_part(settings, memory_of(contexts, gpu), limit, all);
}

std::vector<SliceRoom> slice_rooms(const Settings& settings, const ContextSizes& contexts,
                                   const std::vector<Gpu>& gpus) {
    std::vector<SliceRoom> rooms;
    SliceRooms of_one;
    for (const Gpu& gpu : gpus) {
        of_one.find(settings, memory_of(contexts, gpu));
        rooms.insert(rooms.end(), of_one.view().begin(), of_one.view().end());
    }
    return rooms;
}

}  // namespace cuslice::cli
