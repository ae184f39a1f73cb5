#pragma once
// Memory pools and stream-ordered allocation. A pool takes memory from the GPU in chunks and keeps what is freed until
// a synchronisation, and beyond it as far as its release threshold says: what it holds is more than what was asked for.

#include <cstdint>

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Stream;

struct Pool {
    CUmemoryPool handle = nullptr;
    Gpu* gpu = nullptr;
    std::uint32_t number = 0;  // owner of its blocks
    bool is_default = false;
    bool imported = false;  // another process's: nothing is allocated from it
    bool doomed = false;    // destroyed by the program while blocks are out: ends with the last of them
    CUmemPoolProps props{};
    std::uint64_t identity = 0;  // of an exported pool, and of its imports; 0: was never exported
    std::uint64_t threshold = 0;
    std::uint64_t reserved = 0, reserved_high = 0;  // charged; a multiple of the profile's chunk
    std::uint64_t used = 0, used_high = 0;
    int reuse[3] = {1, 1, 1};
    std::map<int, CUmemAccess_flags> access;  // of other devices, by ordinal
};

using PoolTable = HandleTable<Pool, CUmemoryPool, HandleKind::Pool>;
extern PoolTable pools;

/// A pool on this GPU, with a number that owns blocks and that no other pool or context has, and no properties yet. The
/// driver's lock is held.
Pool& new_pool(Gpu& gpu);

/// The device's default pool, made at the first use; and the one that cuMemAllocAsync takes from. The driver's lock is
/// held.
Pool& default_pool(Gpu& gpu);
Pool& current_pool(Gpu& gpu);
void set_current_pool(Gpu& gpu, CUmemoryPool pool);

/// Takes a block; the driver's lock is held.
CUresult allocate_pooled(Pool& pool, std::uint64_t bytes, Address& out);
/// Frees a pool's block at once (cuMemFree of stream-ordered memory waits for its context first).
CUresult free_pooled_now(Gpu& gpu, Address address);
/// Gives back what lies above `keep` bytes and isn't used; the driver's lock is held.
void trim_pool(Pool& pool, std::uint64_t keep);
/// After a synchronisation: every pool of the GPU keeps no more than its threshold says. The driver's lock is held.
void trim_to_thresholds(Gpu& gpu);
/// Whether any pool has ever held memory: otherwise there is nothing to trim.
bool pools_have_held();
/// Frees every pool's blocks on a GPU and ends the pools that the program made. The driver's lock is held.
void end_pools(Gpu& gpu);
/// Ends a pool when its last block is gone.
CUresult destroy_pool(Pool& pool);

}  // namespace cuslice::fake
