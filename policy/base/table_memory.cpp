// SPDX-License-Identifier: Apache-2.0
#include "policy/base/table_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "policy/base/kernel_memory.h"
#include "policy/base/mutex.h"

namespace cuslice {

namespace {

constexpr size_t kHugePage = 2 << 20;
// Blocks from here on share huge pages, a chunk of them at a time; smaller ones belong to programs with few
// allocations, whose memory we don't want to spend.
constexpr size_t kSmallestShared = 64 << 10;
constexpr size_t kChunk = 4 * kHugePage;

// Mapped on a huge page's boundary, by mapping more and giving both ends back.
char* map_huge(size_t bytes) {
    char* memory = static_cast<char*>(map_kernel_memory(bytes + kHugePage));
    if (!memory)
        return nullptr;
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
    if (before)
        munmap(memory, before);
    munmap(memory + before + bytes, kHugePage - before);
    madvise(memory + before, bytes, MADV_HUGEPAGE);
    return memory + before;
}

struct FreeBlock {
    FreeBlock* next;
};

constinit Mutex mutex{LockRank::table_memory};
constinit char* chunk CUSLICE_GUARDED_BY(mutex) = nullptr;
constinit size_t chunk_left CUSLICE_GUARDED_BY(mutex) = 0;
constinit FreeBlock* free_blocks[64] CUSLICE_GUARDED_BY(mutex) = {};

FreeBlock*& free_list(size_t bytes) CUSLICE_REQUIRES(mutex) { return free_blocks[__builtin_ctzll(bytes)]; }

char* take_shared(size_t bytes) {
    LockGuard lock(mutex);
    if (FreeBlock* block = free_list(bytes)) {
        free_list(bytes) = block->next;
        std::memset(static_cast<void*>(block), 0, bytes);
        return reinterpret_cast<char*>(block);
    }
    if (chunk_left < bytes) {
        char* more = map_huge(kChunk);
        if (!more)
            return nullptr;
        chunk = more;  // the rest of the old one is less than a block of today's size: lost
        chunk_left = kChunk;
    }
    char* block = chunk;
    chunk += bytes;
    chunk_left -= bytes;
    return block;
}

}  // namespace

void* take_table_memory(size_t bytes) {
    const int saved_errno = errno;
    void* memory = bytes < kSmallestShared ? map_kernel_memory(bytes)
                   : bytes < kChunk        ? take_shared(bytes)
                                           : map_huge(bytes);
    errno = saved_errno;
    return memory;
}

void give_back_table_memory(void* memory, size_t bytes) {
    if (!memory)
        return;
    const int saved_errno = errno;
    if (bytes < kSmallestShared || bytes >= kChunk) {
        munmap(memory, bytes);
    } else {
        LockGuard lock(mutex);
        auto* block = static_cast<FreeBlock*>(memory);
        block->next = free_list(bytes);
        free_list(bytes) = block;
    }
    errno = saved_errno;
}

}  // namespace cuslice
