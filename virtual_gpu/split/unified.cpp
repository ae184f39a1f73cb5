// SPDX-License-Identifier: Apache-2.0
// Attributes of pointers: the virtual GPU and the context that own the memory.
#include <algorithm>
#include <span>

#include "virtual_gpu/split/current_context.h"
#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/handle_registry.h"
#include "virtual_gpu/split/translate.h"

namespace cuslice {

namespace {

template <typename Value>
bool ask(Value* value, CUpointer_attribute attribute, CUdeviceptr address) {
    return CUSLICE_PHYSICAL(cuPointerGetAttribute)(value, attribute, address) == CUDA_SUCCESS;
}

// The virtual GPU and, where one is known, the context that memory was allocated in: by what was written down of it,
// else as pinned memory of the host, by its pool or by its physical memory. Otherwise the driver's own answer for the
// physical GPU is made ours.
class Owner {
  public:
    explicit Owner(CUdeviceptr address) {
        CUdeviceptr base = 0;
        if (!ask(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address))
            return;
        if (split().find_owner(base, &device_, &context_))
            return;
        if (take(reinterpret_cast<const void*>(base), HandleKind::host_memory))
            return;
        CUmemoryPool pool = nullptr;
        const bool of_pool = ask(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) && pool;
        if (of_pool)
            take(pool, HandleKind::pool);
        else
            take_physical_memory(reinterpret_cast<void*>(address));
    }

    void correct(CUpointer_attribute attribute, void* data) const {
        if (!data)
            return;
        if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            correct(*static_cast<int*>(data));
        if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT)
            correct(*static_cast<CUcontext*>(data));
    }

  private:
    bool take(const void* handle, HandleKind kind) {
        const HandleOwner owner = handle_registry().find(handle, kind);
        if (!owner.known || !split().device(owner.device))
            return false;
        device_ = owner.device;
        const VirtualContext* const made_in = owner.context ? virtual_contexts().numbered(owner.context) : nullptr;
        if (made_in)
            context_ = made_in->handle();
        return true;
    }
    void take_physical_memory(void* address) {
        if (!driver_slot(Function::cuMemRetainAllocationHandle))
            return;
        CUmemGenericAllocationHandle handle = 0;
        if (CUSLICE_PHYSICAL(cuMemRetainAllocationHandle)(&handle, address) != CUDA_SUCCESS)
            return;
        take(reinterpret_cast<const void*>(handle), HandleKind::physical_memory);
        CUSLICE_PHYSICAL(cuMemRelease)(handle);
    }
    void correct(int& ordinal) const {
        if (ordinal < 0)
            return;
        ordinal = device_ >= 0 ? device_ : to_virtual(CUdevice{ordinal});
    }
    void correct(CUcontext& context) const {
        if (!context)
            return;
        context = context_ ? context_ : to_virtual(context);
    }
    int device_ = -1;
    CUcontext context_ = nullptr;
};

bool about_owner(CUpointer_attribute attribute) {
    return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || attribute == CU_POINTER_ATTRIBUTE_CONTEXT;
}

bool about_place(CUmem_range_attribute attribute) {
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
            return true;
        default:
            return false;
    }
}

// Places of managed memory. Which part it was that advised is not kept: all of a GPU's are one place.
void correct(CUmem_range_attribute attribute, void* data, size_t size) {
    if (!data || !about_place(attribute))
        return;
    for (int& place : std::span(static_cast<int*>(data), size / sizeof(int)))
        if (place >= 0)
            place = to_virtual(CUdevice{place});
}

bool is_gpu(CUmem_range_attribute type_of, CUdeviceptr address, size_t bytes) {
    CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
    if (CUSLICE_PHYSICAL(cuMemRangeGetAttribute)(&type, sizeof(type), type_of, address, bytes) != CUDA_SUCCESS)
        return false;
    return type == CU_MEM_LOCATION_TYPE_DEVICE;
}

bool id_is_gpus(CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes) {
    switch (attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
            return is_gpu(CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, address, bytes);
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
            return is_gpu(CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, address, bytes);
        default:
            return false;
    }
}

// An id is a GPU's only if the type beside it says so.
void correct_id(CUmem_range_attribute attribute, void* data, CUdeviceptr address, size_t bytes) {
    if (!data || !id_is_gpus(attribute, address, bytes))
        return;
    auto& id = *static_cast<int*>(data);
    id = to_virtual(CUdevice{id});
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuPointerGetAttribute, data, attribute, address) {
    const CUresult result = CUSLICE_PHYSICAL(cuPointerGetAttribute)(data, attribute, address);
    if (result == CUDA_SUCCESS && about_owner(attribute))
        Owner(address).correct(attribute, data);
    return result;
}

CUSLICE_SPLIT(cuPointerGetAttributes, count, attributes, data, address) {
    const CUresult result = CUSLICE_PHYSICAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS)
        return result;
    if (std::none_of(attributes, attributes + count, about_owner))
        return result;
    const Owner owner(address);
    for (unsigned i = 0; i < count; i++)
        owner.correct(attributes[i], data[i]);
    return result;
}

CUSLICE_SPLIT(cuMemRangeGetAttribute, data, size, attribute, address, bytes) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemRangeGetAttribute)(data, size, attribute, address, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    correct(attribute, data, size);
    correct_id(attribute, data, address, bytes);
    return result;
}

CUSLICE_SPLIT(cuMemRangeGetAttributes, data, sizes, attributes, count, address, bytes) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemRangeGetAttributes)(data, sizes, attributes, count, address, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    for (size_t i = 0; i < count; i++) {
        correct(attributes[i], data[i], sizes[i]);
        correct_id(attributes[i], data[i], address, bytes);
    }
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
