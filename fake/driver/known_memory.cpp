// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/known_memory.h"

#include "fake/driver/addresses.h"
#include "fake/driver/host_memory.h"
#include "fake/driver/pool.h"
#include "fake/driver/state.h"
#include "fake/driver/virtual_memory.h"

namespace cuslice::fake {
namespace {

CUcontext context_numbered(uint32_t number) {
    CUcontext found = nullptr;
    contexts.each([&](CUcontext handle, const Context& context) {
        if (context.number == number && context.active)
            found = handle;
    });
    return found;
}

CUmemoryPool pool_of_number(uint32_t number) {
    const Pool* pool = pool_numbered(number);
    return pool != nullptr ? pool->handle : nullptr;
}

}  // namespace

std::optional<KnownMemory> what_is(Address address) {
    KnownMemory known;
    known.address = address;
    if (const Found found = find_block(address)) {
        const BlockRecord& record = found.record;
        if (record.kind != BlockKind::Device && record.kind != BlockKind::Managed && record.kind != BlockKind::Pool &&
            record.kind != BlockKind::Global && record.kind != BlockKind::Imported && record.kind != BlockKind::Graph) {
            return std::nullopt;  // physical memory and arrays have no address that a program may use
        }
        known.base = found.base;
        known.size = record.asked;
        known.ordinal = found.gpu->ordinal;
        known.id = static_cast<unsigned long long>(found.gpu->ordinal + 1) << 40 | record.id;
        known.sync = record.sync_memops;
        known.managed = known.host_visible = record.kind == BlockKind::Managed;
        known.device_block = record.kind == BlockKind::Device;
        const DriverLock hold;
        if (is_pool_number(record.owner)) {
            known.pool = pool_of_number(record.owner);
        } else {
            known.context = context_numbered(record.owner);
        }
        return known;
    }
    HostBlock host;
    if (find_host_block(address, host)) {
        known.base = host.base;
        known.size = host.size;
        known.type = CU_MEMORYTYPE_HOST;
        known.context = host.context;
        known.id = host.id;
        known.host_visible = true;
        if (host.pool != 0) {
            const DriverLock hold;
            known.pool = pool_of_number(host.pool);
        }
        if (const Context* context = live_context(host.context))
            known.ordinal = context->gpu->ordinal;
        return known;
    }
    Gpu* gpu = nullptr;
    if (find_mapping(address, known.base, known.size, gpu)) {
        known.ordinal = gpu->ordinal;
        known.id = known.base >> 21;
        return known;
    }
    return std::nullopt;
}

}  // namespace cuslice::fake
