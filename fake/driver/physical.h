// SPDX-License-Identifier: Apache-2.0
#pragma once
// Physical memory: its life, and its way into other processes. It is charged until its last handle and its last mapping
// are gone.

#include "fake/driver/gpu.h"
#include "fake/driver/handles.h"

namespace cuslice::fake {

struct Physical {
    Gpu* gpu = nullptr;
    Address at = 0;  // where its contents lie in the GPU's ordinary memory
    size_t size = 0;
    CUmemAllocationProp prop{};
    unsigned handles = 1;  // references that the program holds
    unsigned mappings = 0;
    int file = -1;    // of exportable memory: what its contents are in, and what other processes are given
    uint64_t id = 0;  // the shared allocation in the books, once it has been exported or if it was imported
};
inline constinit HandleTable<Physical, CUmemGenericAllocationHandle, HandleKind::Physical> physicals;

/// Memory that the program still holds, or null. With the lock of mappings.h held.
inline Physical* held_physical(CUmemGenericAllocationHandle handle) {
    Physical* physical = physicals.find(handle);
    return physical != nullptr && physical->handles > 0 ? physical : nullptr;
}

CUresult create_physical(CUmemGenericAllocationHandle& out, size_t size, const CUmemAllocationProp& prop);
/// A descriptor by which another process can import the memory; it keeps the contents while nobody has imported them.
CUresult export_physical(CUmemGenericAllocationHandle handle, int& file);
/// Imports the memory behind such a descriptor; in a process that has it already, adds a reference to it.
CUresult import_physical(CUmemGenericAllocationHandle& out, int file);
CUresult physical_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp& prop);
/// 0 if the handle is none.
size_t physical_size(CUmemGenericAllocationHandle handle);

/// Sparse arrays consist of tiles of so many bytes, to which memory of a tile pool is bound.
constexpr size_t kTileBytes = size_t{64} << 10;
/// Binds tiles of a tile pool to an array of the GPU, as so many mappings; and gives one of them up.
CUresult bind_physical(CUmemGenericAllocationHandle handle, const Gpu& gpu, size_t offset, size_t tiles);
void unbind_physical(CUmemGenericAllocationHandle handle);

/// The process ends: the files of what it has shared with nobody.
void remove_files_at_end();

// With the lock of mappings.h held.

/// Frees the memory when nobody has it any more.
void drop_if_unused(CUmemGenericAllocationHandle handle, Physical& physical);
/// One binding or mapping less.
void give_up_physical(CUmemGenericAllocationHandle handle);

}  // namespace cuslice::fake
