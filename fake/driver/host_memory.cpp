// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "fake/driver/addresses.h"
#include "fake/driver/capture.h"
#include "fake/driver/host_page.h"

namespace cuslice::fake {
namespace {

constinit std::mutex host_lock;
uint32_t last_id = 0;

auto& blocks() {
    static auto* all = new std::map<Address, HostBlock>;
    return *all;
}

/// The block that contains the address, with the lock held.
HostBlock* find(Address address) {
    auto above = blocks().upper_bound(address);
    if (above == blocks().begin())
        return nullptr;
    HostBlock& block = std::prev(above)->second;
    return address - block.base < block.size ? &block : nullptr;
}

/// The first block that has any of these bytes, or null; with the lock held.
HostBlock* first_within(Address base, size_t bytes) {
    if (HostBlock* const around = find(base))
        return around;
    const auto next = blocks().lower_bound(base);
    return next != blocks().end() && next->first - base < bytes ? &next->second : nullptr;
}

/// True if there is memory of the program in each page; none is touched.
bool is_mapped(Address base, size_t bytes) {
    const auto page = static_cast<Address>(sysconf(_SC_PAGESIZE));
    const Address end = base + bytes;
    unsigned char states[4096];  // one a page
    for (Address at = base / page * page; at < end;) {
        const Address size = std::min(end - at, page * sizeof states);
        if (mincore(reinterpret_cast<void*>(at), size, states) != 0 && errno == ENOMEM)
            return false;
        at += size;
    }
    return true;
}

size_t whole_pages(size_t bytes) { return round_up(bytes, kHostPage); }

/// Memory for a block that has all but its place.
CUresult make_block(void** out, HostBlock block) {
    void* memory = mmap(nullptr, whole_pages(block.size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const std::lock_guard hold(host_lock);
    block.base = reinterpret_cast<Address>(memory);
    block.id = ++last_id;
    blocks()[block.base] = block;
    *out = memory;
    return CUDA_SUCCESS;
}

}  // namespace

CUresult allocate_host(void** out, size_t bytes, unsigned flags) {
    if (out == nullptr || bytes == 0 || bytes > size_t{1} << 46)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    return make_block(out, {.size = bytes, .flags = flags, .context = context->handle});
}

CUresult allocate_host_for(uint32_t pool, size_t bytes, void** out) {
    return make_block(out, {.size = bytes, .pool = pool});
}

CUresult free_host(void* pointer) {
    CUSLICE_TRY(refuse_unsafe());
    const std::lock_guard hold(host_lock);
    const auto found = blocks().find(reinterpret_cast<Address>(pointer));
    if (found == blocks().end() || found->second.registered || found->second.pool != 0)
        return CUDA_ERROR_INVALID_VALUE;
    munmap(pointer, whole_pages(found->second.size));
    blocks().erase(found);
    return CUDA_SUCCESS;
}

bool free_host_of_pool(Address address, HostBlock& block) {
    const std::lock_guard hold(host_lock);
    const auto found = blocks().find(address);
    if (found == blocks().end() || found->second.pool == 0)
        return false;
    block = found->second;
    munmap(reinterpret_cast<void*>(address), whole_pages(block.size));
    blocks().erase(found);
    return true;
}

CUresult register_host(void* pointer, size_t bytes, unsigned flags) {
    const auto base = reinterpret_cast<Address>(pointer);
    if (pointer == nullptr || bytes == 0 || base + bytes < base)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    CUSLICE_TRY(refuse_unsafe());
    if (is_device_address(base) || !is_mapped(base, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard hold(host_lock);
    if (const HostBlock* const there = first_within(base, bytes))
        return there->registered ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE;
    blocks()[base] = {base, bytes, flags, true, 0, context->handle, ++last_id};
    return CUDA_SUCCESS;
}

CUresult unregister_host(void* pointer) {
    const auto base = reinterpret_cast<Address>(pointer);
    const std::lock_guard hold(host_lock);
    const HostBlock* const found = find(base);
    if (found != nullptr && !found->registered)
        return CUDA_ERROR_INVALID_VALUE;
    if (found == nullptr || found->base != base)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    blocks().erase(base);
    return CUDA_SUCCESS;
}

bool find_host_block(Address address, HostBlock& block) {
    const std::lock_guard hold(host_lock);
    const HostBlock* found = find(address);
    if (found != nullptr)
        block = *found;
    return found != nullptr;
}

bool host_range_known(Address address, size_t size) {
    HostBlock block;
    return find_host_block(address, block) && size <= block.size - (address - block.base);
}

void end_host_memory(CUcontext context) {
    const std::lock_guard hold(host_lock);
    for (auto at = blocks().begin(); at != blocks().end();) {
        const HostBlock& block = at->second;
        if (block.context != context || block.pool != 0) {
            ++at;
            continue;
        }
        if (!block.registered)
            munmap(reinterpret_cast<void*>(block.base), whole_pages(block.size));
        at = blocks().erase(at);
    }
}

}  // namespace cuslice::fake
