// SPDX-License-Identifier: Apache-2.0
#pragma once
// One fake GPU inside one process: what it is, its memory, and its share of the books.

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "fake/books/books.h"
#include "fake/driver/cuda_api.h"
#include "fake/driver/heap.h"
#include "fake/driver/managed.h"
#include "fake/driver/memory_space.h"
#include "fake/driver/sync.h"
#include "fake/spec/gpu_spec.h"

namespace cuslice::fake {

/// A range of addresses with its contents and its blocks.
struct Region {
    MemorySpace space;
    Heap heap;
    bool contains(Address at) const { return space.contains(at); }
};

/// A block that other processes can hold, or that one of them made.
struct SharedBlock {
    uint64_t id = 0;         // the shared allocation in the books
    Address pointer = 0;     // what the program got when it opened another's block
    unsigned opened = 0;     // so often
    bool from_pool = false;  // freed as a pool's memory is
    bool own = false;        // opened by the process that made it: the books have one holder
};

class Gpu {
  public:
    /// `high`: programs see its memory at high addresses (memory_space.h).
    Gpu(GpuSpec what, int number, bool high) : spec(std::move(what)), ordinal(number), high_addresses_(high) {}

    const GpuSpec spec;
    const int ordinal;  // as CUDA counts it, after CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER
    std::atomic<bool> lost{false};

    /// Opens the books and the memory; at the first context, so that a GPU which is only looked at costs nothing.
    /// Called with the driver's lock held.
    CUresult open();
    bool opened() const { return opened_; }
    /// Opens the memory that the host may touch, or the one below 4 GiB; with the driver's lock held.
    CUresult open_region(Region& region);

    /// Charges and allocates: CUDA_ERROR_OUT_OF_MEMORY leaves nothing behind.
    CUresult allocate(Region& region, uint64_t bytes, BlockKind kind, uint32_t owner, Address& out);
    /// Charges bytes that have no address (contexts, modules, pools' chunks).
    bool charge(uint64_t bytes) {
        const std::lock_guard hold(lock);
        return charge_held(bytes);
    }
    /// The same with the lock held. Managed memory of this process gives way.
    bool charge_held(uint64_t bytes) {
        if (books.charge(bytes)) [[likely]]
            return true;
        return bytes <= capacity() && managed_bytes.make_room(books, bytes) && books.charge(bytes);
    }
    void release(uint64_t bytes) {
        const std::lock_guard hold(lock);
        books.release(bytes);
    }
    /// Frees a block, with the lock held; the bytes too, unless a pool, a graph or another process accounts for them.
    void free_block(Region& region, const Block& block) {
        const uint64_t bytes = block.record->asked;
        const BlockKind kind = block.record->kind;
        if (block.record->shared || block.record->adopted) [[unlikely]]
            unshare(region, block);
        else if (block.record->touched && bytes >= kPageBytes)
            region.space.discard(block.base, bytes);
        region.heap.give_back(block);
        if (kind == BlockKind::Managed)
            managed_bytes.give_back(books, rounded(bytes));
        else if (kind < BlockKind::Imported && kind != BlockKind::Pool)
            books.release(taken_back(rounded(bytes)));
    }
    /// The same of the block that begins here, if there is one; takes the lock.
    void free_at(Region& region, Address base);

    /// Frees everything of one owner.
    void free_all(uint32_t owner);

    uint64_t capacity() const { return spec.memory; }

    SpinLock lock;  // books' charges and the heaps
    Books books;
    ManagedMemory managed_bytes;
    Region device;                          // ordinary memory
    Region managed;                         // memory that the host touches too
    Region low;                             // memory for 32-bit pointers
    std::map<Address, SharedBlock> shared;  // by base; with the lock held

  private:
    /// The bytes that one more block takes of the GPU, and that a freed one gives back: whole chunks, which blocks of
    /// up to half a chunk share, as with an H200's driver and its chunks of 2 MiB.
    uint64_t taken(uint64_t size) {
        if (!in_shared_chunk(size))
            return in_chunks(size);
        const uint64_t before = in_chunks(small_bytes_);
        return in_chunks(small_bytes_ += size) - before;
    }
    uint64_t taken_back(uint64_t size) {
        if (!in_shared_chunk(size))
            return in_chunks(size);
        const uint64_t before = in_chunks(small_bytes_);
        return before - in_chunks(small_bytes_ -= size);
    }
    bool in_shared_chunk(uint64_t size) const { return size <= spec.block_chunk / 2; }
    uint64_t in_chunks(uint64_t size) const {
        const uint64_t chunk = spec.block_chunk;
        return chunk == 0 ? size : round_up(size, chunk);
    }
    uint64_t small_bytes_ = 0;  // with the lock held
    /// Gives up the contents of a block that is about to be freed, and its entry in `shared`.
    void unshare(Region& region, const Block& block);
    const bool high_addresses_;
    bool opened_ = false;
};

}  // namespace cuslice::fake
