// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of one process in another. A block's contents are in a file (memory_space.h), which the other process maps in
// the place of a block of its own; what leads there is a ticket of 64 bytes for memory that has an address, and a
// descriptor for physical memory, which has a file to itself.

#include "fake/driver/addresses.h"

namespace cuslice::fake {

/// Contents of this driver's CUipcMemHandle and CUmemPoolPtrExportData.
struct SharingTicket {
    uint32_t magic;
    int32_t pid;
    uint64_t id;            // the shared allocation in the books
    uint64_t offset, size;  // in the file
    int32_t file;           // the owner's descriptor
    int32_t reserved;
    unsigned char uuid[16];
    uint64_t pool;  // whose allocation it is: Pool::identity; 0: no pool's
};
static_assert(sizeof(SharingTicket) == 64);

constexpr uint32_t kIpcMagic = 0x43504943, kPoolPointerMagic = 0x50504943;

/// A number that nobody else chooses; not 0.
uint64_t new_sharing_id();
/// The visible GPU with this UUID; CUDA_ERROR_INVALID_DEVICE if there is none.
CUresult find_gpu(const unsigned char* uuid, Gpu*& found);

/// Lets other processes open a block that starts at its address; once more is the same ticket again. `pool`: what it is
/// for is a pool's identity, or 0.
CUresult share_block(const Found& found, uint32_t magic, uint64_t pool, SharingTicket& ticket);
/// Opens another process's block, or once more what is open in this context (or pool) already. Of this process's own
/// blocks only a pool's can be opened; elsewhere that is CUDA_ERROR_INVALID_CONTEXT.
CUresult open_shared(const SharingTicket& ticket, uint32_t magic, uint32_t owner, Address& out);
/// Gives one opening back; the last one ends the block. CUDA_ERROR_INVALID_VALUE if the address is none.
CUresult close_shared(Address pointer, bool from_pool);
/// The block of open_shared that a program knows by this address, as it may be freed by it.
bool is_pool_import(Address pointer);

}  // namespace cuslice::fake
