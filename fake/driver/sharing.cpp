// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/sharing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "fake/driver/find.h"
#include "fake/driver/state.h"

namespace cuslice::fake {
namespace {

constexpr uint64_t page_floor(uint64_t at) { return at / kPageBytes * kPageBytes; }

/// The owner's file, as long as the owner lives; -1 otherwise.
int open_file_of(const SharingTicket& ticket) {
    const std::string path = "/proc/" + std::to_string(ticket.pid) + "/fd/" + std::to_string(ticket.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat info {};
    if (file < 0)
        return -1;
    const auto end = static_cast<off_t>(ticket.offset + ticket.size);
    if (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= end)
        return file;
    close(file);
    return -1;
}

/// The block that an import of this process begins with; with the lock held.
std::map<Address, SharedBlock>::iterator import_at(Gpu& gpu, Address pointer, bool from_pool) {
    const Block block = gpu.device.heap.find(pointer);
    if (!block || block.record->kind != BlockKind::Imported)
        return gpu.shared.end();
    const auto found = gpu.shared.find(block.base);
    const bool same = found != gpu.shared.end() && found->second.pointer == pointer;
    return same && found->second.from_pool == from_pool ? found : gpu.shared.end();
}

Gpu* gpu_around(Address pointer) {
    for (const auto& gpu : driver().gpus) {
        if (gpu->device.contains(pointer))
            return gpu.get();
    }
    return nullptr;
}

/// A block of this process whose contents are the file's; with the lock held.
CUresult adopt_block(Gpu& gpu, const SharingTicket& ticket, int file, uint32_t owner, Block& block) {
    const uint64_t first = page_floor(ticket.offset);
    const uint64_t bytes = round_up(ticket.offset + ticket.size, kPageBytes) - first;
    block = gpu.device.heap.allocate(bytes, BlockKind::Imported, owner);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!gpu.device.space.adopt(block.base, bytes, file, first)) {
        gpu.device.heap.give_back(block);
        return CUDA_ERROR_MAP_FAILED;
    }
    block.record->adopted = block.record->shared = true;
    return CUDA_SUCCESS;
}

/// True while this process has the block that it exported under this number; with the lock held.
bool lends(const Gpu& gpu, uint64_t id) {
    return std::any_of(gpu.shared.begin(), gpu.shared.end(),
                       [&](const auto& entry) { return entry.second.id == id && entry.second.opened == 0; });
}

/// Kernels have getrandom from 3.17 on, and some sandboxes refuse it. /dev/urandom is older, but may be missing; clock
/// and pid are the last resort.
uint64_t drawn() {
    uint64_t number = 0;
    if (::syscall(SYS_getrandom, &number, sizeof number, 0) == static_cast<long>(sizeof number))
        return number;
    const int file = ::open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool read = file >= 0 && ::read(file, &number, sizeof number) == static_cast<ssize_t>(sizeof number);
    if (file >= 0)
        ::close(file);
    if (read)
        return number;
    static std::atomic<uint64_t> count{0};
    const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return now ^ static_cast<uint64_t>(::getpid()) << 40 ^ count++ << 1;
}

}  // namespace

uint64_t new_sharing_id() {
    uint64_t id = 0;
    while (id == 0)
        id = drawn() & ~(1ULL << 63);  // the accounting's own
    return id;
}

CUresult find_gpu(const unsigned char* uuid, Gpu*& found) {
    for (const auto& gpu : driver().gpus) {
        if (std::memcmp(gpu->spec.uuid.data(), uuid, 16) == 0)
            found = gpu.get();
    }
    return found != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult share_block(const Found& found, uint32_t magic, uint64_t pool, SharingTicket& ticket) {
    Gpu& gpu = *found.gpu;
    const std::lock_guard hold(gpu.lock);
    const Block block = found.region->heap.at(found.base);
    if (!block)
        return CUDA_ERROR_INVALID_VALUE;
    SharedBlock& entry = gpu.shared[block.base];
    if (!block.record->shared) {
        entry.id = new_sharing_id();
        if (!gpu.books.share(entry.id, rounded(block.record->asked))) {
            gpu.shared.erase(block.base);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        block.record->shared = true;
        const uint64_t end = block.base + block.record->asked;
        const uint64_t first = page_floor(block.base);
        found.region->space.lend(first, round_up(end, kPageBytes) - first);
    }
    ticket = {};
    ticket.magic = magic;
    ticket.pid = getpid();
    ticket.id = entry.id;
    ticket.offset = block.base - found.region->space.base();
    ticket.size = block.record->asked;
    ticket.file = found.region->space.file();
    ticket.pool = pool;
    std::memcpy(ticket.uuid, gpu.spec.uuid.data(), sizeof ticket.uuid);
    return CUDA_SUCCESS;
}

CUresult open_shared(const SharingTicket& ticket, uint32_t magic, uint32_t owner, Address& out) {
    if (ticket.magic != magic || ticket.size == 0 || ticket.offset + ticket.size < ticket.size)
        return CUDA_ERROR_INVALID_HANDLE;
    // Seen of drivers: a process can't open what it exported itself, unless it is a pool's (H200, driver 580.159.04,
    // 2026-11-27).
    const bool own = ticket.pid == getpid();
    if (own && magic != kPoolPointerMagic)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUSLICE_FIND(Gpu, gpu, find_gpu(ticket.uuid, gpu));
    const DriverLock hold_driver;
    CUSLICE_TRY(gpu->open());
    const std::lock_guard hold(gpu->lock);
    for (auto& [base, entry] : gpu->shared) {
        const Block block = gpu->device.heap.at(base);
        if (entry.id != ticket.id || !block || block.record->owner != owner)
            continue;
        entry.opened++;
        out = entry.pointer;
        return CUDA_SUCCESS;
    }
    const int file = open_file_of(ticket);
    if (file < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    Block block;
    CUresult result = CUDA_ERROR_INVALID_HANDLE;
    if (own ? lends(*gpu, ticket.id) : gpu->books.hold_from_owner(ticket.id)) {
        result = adopt_block(*gpu, ticket, file, owner, block);
        if (result != CUDA_SUCCESS && !own)
            gpu->books.drop(ticket.id, true);
    }
    close(file);
    if (result != CUDA_SUCCESS)
        return result;
    out = block.base + ticket.offset % kPageBytes;
    gpu->shared[block.base] = {ticket.id, out, 1, magic == kPoolPointerMagic, own};
    return CUDA_SUCCESS;
}

CUresult close_shared(Address pointer, bool from_pool) {
    Gpu* gpu = gpu_around(pointer);
    if (gpu == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(gpu->lock);
    const auto found = import_at(*gpu, pointer, from_pool);
    if (found == gpu->shared.end())
        return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.opened != 0)
        return CUDA_SUCCESS;
    if (const Block block = gpu->device.heap.at(found->first))
        gpu->free_block(gpu->device, block);
    return CUDA_SUCCESS;
}

bool is_pool_import(Address pointer) {
    Gpu* gpu = gpu_around(pointer);
    if (gpu == nullptr)
        return false;
    const std::lock_guard hold(gpu->lock);
    return import_at(*gpu, pointer, true) != gpu->shared.end();
}

}  // namespace cuslice::fake
