// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/physical.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

#include "fake/driver/find.h"
#include "fake/driver/host_room.h"
#include "fake/driver/mappings.h"
#include "fake/driver/memory_file.h"
#include "fake/driver/sharing.h"
#include "fake/driver/state.h"

namespace cuslice::fake {

namespace {

/// Lies behind the contents in an exportable allocation's file, and says what it is.
struct Label {
    uint64_t magic = 0x5359485045524143;
    uint64_t id = 0, size = 0;
    unsigned char uuid[16] = {};
    CUmemAllocationProp prop{};
};

/// The label of an exported descriptor; false if it is another kind of file.
bool read_label(int file, Label& label) {
    struct stat info {};
    const auto size = static_cast<ssize_t>(sizeof label);
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size <= size)
        return false;
    const uint64_t magic = Label{}.magic;
    if (pread(file, &label, sizeof label, info.st_size - size) != size || label.magic != magic)
        return false;
    return label.size == static_cast<uint64_t>(info.st_size - size) && whole(label.size);
}

/// Gives a new block a file of its own for its contents; with the GPU's lock held.
bool move_to_file(Gpu& gpu, const Block& block, const Label& label, int& file) {
    file = gpu.books.make_memory_file(label.id);
    if (file < 0)
        file = memory_file("cuslice-fake-memory");  // a descriptor alone isn't seen to keep it then
    const auto size = static_cast<off_t>(label.size);
    const auto label_size = static_cast<ssize_t>(sizeof label);
    if (file >= 0 && ftruncate(file, size) == 0 && pwrite(file, &label, sizeof label, size) == label_size &&
        gpu.device.space.adopt(block.base, label.size, file, 0)) {
        block.record->adopted = true;
        return true;
    }
    if (file >= 0)
        close(file);
    gpu.books.remove_memory_file(label.id);
    return false;
}

}  // namespace

void drop_if_unused(CUmemGenericAllocationHandle handle, Physical& physical) {
    if (physical.handles > 0 || physical.mappings > 0)
        return;
    Gpu& gpu = *physical.gpu;
    const Address at = physical.at;
    const bool own_file = physical.file >= 0;
    const uint64_t id = physical.id;
    if (own_file) {
        forget_file(physical.file);
        close(physical.file);
    }
    physicals.destroy(handle);
    const std::lock_guard hold(gpu.lock);
    const Block block = gpu.device.heap.at(at);
    if (!block)
        return;
    if (own_file && !block.record->shared)
        gpu.books.remove_memory_file(id);
    gpu.free_block(gpu.device, block);
}

void remove_files_at_end() {
    const std::unique_lock hold(tables().lock, std::try_to_lock);
    if (!hold)
        return;  // another thread is inside: whoever opens the GPU next removes them
    physicals.each([&](CUmemGenericAllocationHandle, Physical& physical) {
        const std::lock_guard hold_gpu(physical.gpu->lock);
        const Block block = physical.gpu->device.heap.at(physical.at);
        if (physical.file >= 0 && block && !block.record->shared)
            physical.gpu->books.remove_memory_file(physical.id);
    });
}

void give_up_physical(CUmemGenericAllocationHandle handle) {
    Physical* physical = physicals.find(handle);
    physical->mappings--;
    drop_if_unused(handle, *physical);
}

CUresult create_physical(CUmemGenericAllocationHandle& out, size_t size, const CUmemAllocationProp& prop) {
    if (size == 0 || !whole(size) || prop.type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUSLICE_FIND(Gpu, gpu, find_gpu(prop.location.id, gpu));
    {
        const DriverLock hold;
        CUSLICE_TRY(gpu->open());
    }
    Address at = 0;
    // Nobody's: no context's end frees it.
    CUSLICE_TRY(gpu->allocate(gpu->device, size, BlockKind::Physical, 0, at));
    Label label;
    int file = -1;
    if ((prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
        label.id = new_sharing_id();
        label.size = size;
        label.prop = prop;
        std::memcpy(label.uuid, gpu->spec.uuid.data(), sizeof label.uuid);
        const std::lock_guard hold(gpu->lock);
        const Block block = gpu->device.heap.at(at);
        if (!move_to_file(*gpu, block, label, file)) {
            gpu->free_block(gpu->device, block);
            return CUDA_ERROR_OPERATING_SYSTEM;
        }
    }
    if (file >= 0)
        count_file(file);
    const Physical made{.gpu = gpu, .at = at, .size = size, .prop = prop, .file = file, .id = label.id};
    out = physicals.create(made).first;
    return CUDA_SUCCESS;
}

CUresult export_physical(CUmemGenericAllocationHandle handle, int& file) {
    const std::lock_guard hold(tables().lock);
    const Physical* physical = held_physical(handle);
    if (physical == nullptr || physical->file < 0)
        return CUDA_ERROR_INVALID_VALUE;
    Gpu& gpu = *physical->gpu;
    {
        const std::lock_guard hold_gpu(gpu.lock);
        const Block block = gpu.device.heap.at(physical->at);
        if (!block.record->shared) {
            if (!gpu.books.share(physical->id, physical->size, true))
                return CUDA_ERROR_OUT_OF_MEMORY;
            gpu.shared[block.base].id = physical->id;
            block.record->shared = true;
        }
    }
    file = gpu.books.hand_out_memory_file(physical->id);
    if (file < 0)
        file = fcntl(physical->file, F_DUPFD_CLOEXEC, 0);
    return file >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult import_physical(CUmemGenericAllocationHandle& out, int file) {
    Label label;
    if (!read_label(file, label))
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND(Gpu, gpu, find_gpu(label.uuid, gpu));
    {
        const DriverLock hold;
        CUSLICE_TRY(gpu->open());
    }
    const std::lock_guard hold(tables().lock);
    bool known = false;
    physicals.each([&](CUmemGenericAllocationHandle handle, Physical& physical) {
        if (known || physical.id != label.id)
            return;
        physical.handles++;
        out = handle;
        known = true;
    });
    if (known)
        return CUDA_SUCCESS;
    const std::lock_guard hold_gpu(gpu->lock);
    if (!gpu->books.hold_physical(label.id, label.size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    const Block block = gpu->device.heap.allocate(label.size, BlockKind::Imported, 0);
    int own = gpu->books.open_memory_file(label.id);
    if (own < 0)
        own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (!block || own < 0 || !gpu->device.space.adopt(block.base, label.size, own, 0)) {
        if (block)
            gpu->device.heap.give_back(block);
        if (own >= 0)
            close(own);
        gpu->books.drop(label.id, true);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block.record->adopted = block.record->shared = true;
    gpu->shared[block.base].id = label.id;
    label.prop.location.id = gpu->ordinal;
    const Physical made{
        .gpu = gpu, .at = block.base, .size = label.size, .prop = label.prop, .file = own, .id = label.id};
    out = physicals.create(made).first;
    return CUDA_SUCCESS;
}

CUresult physical_properties(CUmemGenericAllocationHandle handle, CUmemAllocationProp& prop) {
    const std::shared_lock hold(tables().lock);
    const Physical* physical = held_physical(handle);
    if (physical == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    prop = physical->prop;
    return CUDA_SUCCESS;
}

size_t physical_size(CUmemGenericAllocationHandle handle) {
    const std::shared_lock hold(tables().lock);
    const Physical* physical = physicals.find(handle);
    return physical == nullptr ? 0 : physical->size;
}

CUresult bind_physical(CUmemGenericAllocationHandle handle, const Gpu& gpu, size_t offset, size_t tiles) {
    const std::lock_guard hold(tables().lock);
    Physical* physical = held_physical(handle);
    if (physical == nullptr || physical->gpu != &gpu)
        return CUDA_ERROR_INVALID_VALUE;
    if ((physical->prop.allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (offset % kTileBytes != 0 || offset > physical->size || tiles > (physical->size - offset) / kTileBytes)
        return CUDA_ERROR_INVALID_VALUE;
    physical->mappings += static_cast<unsigned>(tiles);
    return CUDA_SUCCESS;
}

void unbind_physical(CUmemGenericAllocationHandle handle) {
    const std::lock_guard hold(tables().lock);
    give_up_physical(handle);
}

}  // namespace cuslice::fake
