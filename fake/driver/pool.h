// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory pools and stream-ordered allocation. A pool takes memory from the GPU in chunks and keeps what is freed until
// a synchronisation, and beyond it as far as its release threshold says: what it holds is more than what was asked for.

#include <cstdint>

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Stream;

struct Pool {
    CUmemoryPool handle = nullptr;
    Gpu* gpu = nullptr;   // null: of the host, or of managed memory without a device
    uint32_t number = 0;  // owner of its blocks
    bool is_default = false;
    bool imported = false;  // another process's: nothing is allocated from it
    bool doomed = false;    // destroyed by the program while blocks are out: ends with the last of them
    CUmemPoolProps props{};
    uint64_t identity = 0;  // of an exported pool, and of its imports; 0: was never exported
    uint64_t threshold = 0;
    uint64_t reserved = 0, reserved_high = 0;  // charged; a multiple of the profile's chunk
    uint64_t used = 0, used_high = 0;
    int reuse[3] = {1, 1, 1};
    std::map<int, CUmemAccess_flags> access;  // of other devices, by ordinal

    /// Memory can be allocated from it.
    bool usable() const { return !doomed && !imported; }
    bool managed() const { return props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED; }
    /// A device's own memory, in chunks; any other is taken block by block.
    bool of_device() const { return gpu != nullptr && !managed(); }
};

inline constinit HandleTable<Pool, CUmemoryPool, HandleKind::Pool> pools;

/// A pool on this GPU, or of no GPU's, with a number that owns blocks and that no other pool or context has, and no
/// properties yet. The driver's lock is held.
Pool& new_pool(Gpu* gpu);

/// True if a block's owner of this number is a pool: contexts are numbered from the other end.
constexpr bool is_pool_number(uint32_t number) { return number > 0x80000000; }
/// The pool of a number, or null; the driver's lock is held.
Pool* pool_numbered(uint32_t number);

/// The device's default pool, made at the first use; and the one that cuMemAllocAsync takes from. The driver's lock is
/// held.
Pool& default_pool(Gpu& gpu);
Pool& current_pool(Gpu& gpu);

/// Where a pool's memory is to be, as programs name it, checked: CUDA_ERROR_INVALID_VALUE or CUDA_ERROR_INVALID_DEVICE
/// if there is no such place for that kind of memory. `gpu` is null where it is no device's. The id of a place that has
/// none becomes 0.
CUresult find_place(CUmemLocation& place, CUmemAllocationType type, Gpu*& gpu);
/// The default and the current pool of such a place; the driver's lock is held.
Pool& default_pool(const CUmemLocation& place, CUmemAllocationType type, Gpu* gpu);
Pool& current_pool(const CUmemLocation& place, CUmemAllocationType type, Gpu* gpu);
void set_current_pool(const Pool& pool);

/// Takes a block; managed memory of no device lies on `near`. The driver's lock is held.
CUresult allocate_pooled(Pool& pool, Gpu& near, uint64_t bytes, Address& out);
/// True if a block that begins here is a pool's.
bool is_pooled(Address address);
/// Frees a pool's block at once (cuMemFree of stream-ordered memory waits for its context first).
CUresult free_pooled_now(Address address);
/// Gives back what lies above `keep` bytes and isn't used; the driver's lock is held.
void trim_pool(Pool& pool, uint64_t keep);
/// After a synchronisation: every pool of the GPU keeps no more than its threshold says. The driver's lock is held.
void trim_to_thresholds(Gpu& gpu);
/// True if any pool has ever held memory: otherwise there is nothing to trim.
bool pools_have_held();
/// Frees every pool's blocks on a GPU and ends the pools that the program made. The driver's lock is held.
void end_pools(Gpu& gpu);
/// Ends a pool when its last block is gone.
CUresult destroy_pool(Pool& pool);

}  // namespace cuslice::fake
