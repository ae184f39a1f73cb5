// SPDX-License-Identifier: Apache-2.0
// Memory pools between processes: a descriptor stands for the pool, 64 bytes for each allocation in it.

#include <unistd.h>

#include <cstring>

#include "fake/driver/addresses.h"
#include "fake/driver/api_prologue.h"
#include "fake/driver/memory_file.h"
#include "fake/driver/pool.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"

using namespace cuslice::fake;

namespace {

static_assert(sizeof(SharingTicket) == sizeof(CUmemPoolPtrExportData));

/// Contents of the file behind the descriptor of a pool.
struct PoolLabel {
    uint64_t magic = 0x4c4f4f5045524143;
    unsigned char uuid[16] = {};
    CUmemPoolProps props{};
    uint64_t identity = 0;
};

/// An exported pool's number; the driver's lock is held.
uint64_t identity_of(Pool& pool) {
    if (pool.identity == 0)
        pool.identity = new_sharing_id();
    return pool.identity;
}

CUresult export_pool(int& out, CUmemoryPool handle) {
    const DriverLock hold;
    CUSLICE_FIND_ARGUMENT(pool, pools, handle);
    if (!pool->usable() || (pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    PoolLabel label;
    label.props = pool->props;
    label.identity = identity_of(*pool);
    std::memcpy(label.uuid, pool->gpu->spec.uuid.data(), sizeof label.uuid);
    const int file = memory_file("cuslice-fake-pool");
    if (file < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    if (pwrite(file, &label, sizeof label, 0) != static_cast<ssize_t>(sizeof label)) {
        close(file);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    out = file;
    return CUDA_SUCCESS;
}

CUresult import_pool(CUmemoryPool& out, int file) {
    PoolLabel label;
    const uint64_t magic = label.magic;
    if (pread(file, &label, sizeof label, 0) != static_cast<ssize_t>(sizeof label) || label.magic != magic)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(label.uuid, gpu));
    const DriverLock hold;
    CUSLICE_TRY(gpu->open());
    Pool& pool = new_pool(gpu);
    pool.imported = true;
    pool.props = label.props;
    pool.identity = label.identity;
    pool.props.location.id = gpu->ordinal;
    out = pool.handle;
    return CUDA_SUCCESS;
}

/// The pool that owns a block, if it can be exported, or null; the driver's lock is held.
Pool* exportable(uint32_t number) {
    Pool* const pool = pool_numbered(number);
    if (pool == nullptr || pool->imported)
        return nullptr;
    return (pool->props.handleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ? pool : nullptr;
}

}  // namespace

CUSLICE_ENTRY(cuMemPoolExportToShareableHandle, out, pool, type, flags) {
    if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return export_pool(*static_cast<int*>(out), pool);
}

CUSLICE_ENTRY(cuMemPoolImportFromShareableHandle, out, handle, type, flags) {
    if (out == nullptr || flags != 0 || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    return import_pool(*out, static_cast<int>(reinterpret_cast<intptr_t>(handle)));
}

CUSLICE_ENTRY(cuMemPoolExportPointer, out, address) {
    const Found found = find_block(address);
    if (out == nullptr || !found || found.base != address || found.record.kind != BlockKind::Pool)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t identity = 0;
    {
        const DriverLock hold;
        Pool* const pool = exportable(found.record.owner);
        if (pool == nullptr)
            return CUDA_ERROR_INVALID_VALUE;
        identity = identity_of(*pool);
    }
    SharingTicket ticket{};
    CUSLICE_TRY(share_block(found, kPoolPointerMagic, identity, ticket));
    std::memcpy(out, &ticket, sizeof ticket);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuMemPoolImportPointer, out, handle, data) {
    if (out == nullptr || data == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    SharingTicket ticket{};
    std::memcpy(&ticket, data, sizeof ticket);
    uint32_t number = 0;
    {
        const DriverLock hold;
        CUSLICE_FIND_ARGUMENT(pool, pools, handle);
        // H200, driver 580.159.04, 2026-11-27: what is no export of this very pool's is a wrong value, not a wrong
        // handle.
        if (!pool->imported || ticket.magic != kPoolPointerMagic || ticket.pool != pool->identity)
            return CUDA_ERROR_INVALID_VALUE;
        number = pool->number;
    }
    return open_shared(ticket, kPoolPointerMagic, number, *out);
}
