// Attributes of pointers: the virtual GPU and the context that own the memory.
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
        if (!ask(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address)) return;
        if (split().find_owner && split().find_owner(base, &device_, &context_)) return;
        if (take(reinterpret_cast<const void*>(base), HandleKind::host_memory)) return;
        CUmemoryPool pool = nullptr;
        if (ask(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) && pool) {
            take(pool, HandleKind::pool);
            return;
        }
        CUmemGenericAllocationHandle handle = 0;
        if (!driver_slot(Function::cuMemRetainAllocationHandle) ||
            CUSLICE_PHYSICAL(cuMemRetainAllocationHandle)(&handle, reinterpret_cast<void*>(address)) != CUDA_SUCCESS)
            return;
        take(reinterpret_cast<const void*>(handle), HandleKind::physical_memory);
        CUSLICE_PHYSICAL(cuMemRelease)(handle);
    }

    void correct(CUpointer_attribute attribute, void* data) const {
        if (!data) return;
        if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
            auto& ordinal = *static_cast<int*>(data);
            if (ordinal >= 0) ordinal = device_ >= 0 ? device_ : to_virtual(CUdevice{ordinal});
        } else if (attribute == CU_POINTER_ATTRIBUTE_CONTEXT) {
            auto& context = *static_cast<CUcontext*>(data);
            if (context) context = context_ ? context_ : to_virtual(context);
        }
    }

  private:
    bool take(const void* handle, HandleKind kind) {
        const HandleOwner owner = handle_registry().find(handle, kind);
        if (!owner.known || !split().device(owner.device)) return false;
        device_ = owner.device;
        if (const VirtualContext* made_in = owner.context ? virtual_contexts().numbered(owner.context) : nullptr)
            context_ = made_in->handle();
        return true;
    }
    int device_ = -1;
    CUcontext context_ = nullptr;
};

bool about_owner(CUpointer_attribute attribute) {
    return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL || attribute == CU_POINTER_ATTRIBUTE_CONTEXT;
}

// Places of managed memory. Which part it was that advised is not kept: all of a GPU's are one place.
void correct(CUmem_range_attribute attribute, void* data, std::size_t size) {
    const bool is_place = attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION ||
                          attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION ||
                          attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    auto* places = static_cast<int*>(data);
    for (std::size_t i = 0; is_place && places && i < size / sizeof(int); i++)
        if (places[i] >= 0) places[i] = to_virtual(CUdevice{places[i]});
}

// An id is a GPU's only if the type beside it says so.
void correct_id(CUmem_range_attribute attribute, void* data, CUdeviceptr address, std::size_t bytes) {
    const bool preferred = attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID;
    if (!data || (!preferred && attribute != CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID)) return;
    CUmemLocationType type = CU_MEM_LOCATION_TYPE_INVALID;
    const CUmem_range_attribute about =
        preferred ? CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE : CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE;
    if (CUSLICE_PHYSICAL(cuMemRangeGetAttribute)(&type, sizeof(type), about, address, bytes) != CUDA_SUCCESS ||
        type != CU_MEM_LOCATION_TYPE_DEVICE)
        return;
    auto& id = *static_cast<int*>(data);
    id = to_virtual(CUdevice{id});
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT(cuPointerGetAttribute, data, attribute, address) {
    const CUresult result = CUSLICE_PHYSICAL(cuPointerGetAttribute)(data, attribute, address);
    if (result == CUDA_SUCCESS && about_owner(attribute)) Owner(address).correct(attribute, data);
    return result;
}

CUSLICE_SPLIT(cuPointerGetAttributes, count, attributes, data, address) {
    const CUresult result = CUSLICE_PHYSICAL(cuPointerGetAttributes)(count, attributes, data, address);
    if (result != CUDA_SUCCESS) return result;
    bool any = false;
    for (unsigned i = 0; i < count; i++) any = any || about_owner(attributes[i]);
    if (!any) return result;
    const Owner owner(address);
    for (unsigned i = 0; i < count; i++) owner.correct(attributes[i], data[i]);
    return result;
}

CUSLICE_SPLIT(cuMemRangeGetAttribute, data, size, attribute, address, bytes) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemRangeGetAttribute)(data, size, attribute, address, bytes);
    if (result != CUDA_SUCCESS) return result;
    correct(attribute, data, size);
    correct_id(attribute, data, address, bytes);
    return result;
}

CUSLICE_SPLIT(cuMemRangeGetAttributes, data, sizes, attributes, count, address, bytes) {
    const CUresult result = CUSLICE_PHYSICAL(cuMemRangeGetAttributes)(data, sizes, attributes, count, address, bytes);
    if (result != CUDA_SUCCESS) return result;
    for (std::size_t i = 0; i < count; i++) {
        correct(attributes[i], data[i], sizes[i]);
        correct_id(attributes[i], data[i], address, bytes);
    }
    return result;
}

}  // namespace split_driver

}  // namespace cuslice
