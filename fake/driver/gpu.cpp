// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/gpu.h"

#include "fake/driver/architecture.h"
#include "fake/driver/host_room.h"
#include "fake/driver/log.h"

namespace cuslice::fake {

CUresult Gpu::open() {
    if (opened_)
        return CUDA_SUCCESS;
    std::string error;
    if (!books.open(spec, error) || !books.claim_slot(error)) {
        log_line(error);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    // Addresses are never the limit while 16 times the memory can be reserved; twice is enough to run.
    if (!device.space.open(spec.memory * 2, spec.memory * 16, high_addresses_)) {
        log_line("can't reserve addresses for the memory of " + spec.name + " (a ulimit -v?)");
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    count_file(device.space.file());
    device.heap.open(device.space.base(), device.space.size());
    opened_ = true;
    return CUDA_SUCCESS;
}

CUresult Gpu::open_region(Region& region) {
    if (region.space.size() != 0)
        return CUDA_SUCCESS;
    const bool done = &region == &low ? region.space.open_low()
                                      : region.space.open_shared(spec.memory, spec.memory * 4 + machine_memory());
    if (!done)
        return CUDA_ERROR_OUT_OF_MEMORY;
    count_file(region.space.file());
    region.heap.open(region.space.base(), region.space.size());
    return CUDA_SUCCESS;
}

CUresult Gpu::allocate(Region& region, uint64_t bytes, BlockKind kind, uint32_t owner, Address& out) {
    const bool is_managed = kind == BlockKind::Managed;
    const bool may_exceed = is_managed && has_concurrent_managed_access(spec) && !spec.integrated;
    if (bytes > (may_exceed ? region.space.size() : capacity()))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard hold(lock);
    const uint64_t size = rounded(bytes);
    if (is_managed && !managed_bytes.take(books, size, may_exceed))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!is_managed && !charge_held(taken(size))) {
        taken_back(size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const Block block = region.heap.allocate(bytes, kind, owner);
    if (!block) {
        is_managed ? managed_bytes.give_back(books, size) : books.release(taken_back(size));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    // The host writes to managed memory without a call: its contents are always worth discarding.
    block.record->touched = is_managed;
    out = block.base;
    return CUDA_SUCCESS;
}

void Gpu::free_at(Region& region, Address base) {
    const std::lock_guard hold(lock);
    if (const Block block = region.heap.at(base))
        free_block(region, block);
}

void Gpu::unshare(Region& region, const Block& block) {
    const uint64_t bytes = round_up(uint64_t{block.record->asked}, kPageBytes);
    if (block.record->adopted) {
        region.space.give_up(block.base, bytes);
    } else if (block.record->asked >= kPageBytes) {
        region.space.discard(block.base, block.record->asked);
    }
    const auto found = shared.find(block.base);
    if (found == shared.end())
        return;
    // A pool goes on paying for what is freed to it.
    if (!found->second.own)
        books.drop(found->second.id, block.record->kind != BlockKind::Pool);
    shared.erase(found);
}

void Gpu::free_all(uint32_t owner) {
    const std::lock_guard hold(lock);
    for (Region* region : {&device, &managed, &low}) {
        region->heap.each([&](const Block& block) {
            if (block.record->owner == owner && block.record->kind != BlockKind::Pool)
                free_block(*region, block);
        });
    }
}

}  // namespace cuslice::fake
