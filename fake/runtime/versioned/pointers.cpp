// SPDX-License-Identifier: Apache-2.0
// Kind of memory behind a pointer. The structure of 13 has a reserved tail that 12's lacks.

#include "fake/runtime/versioned/form.h"

#include <cstring>

using namespace cuslice::fake;

namespace {

/// cudaPointerAttributes of CUDA 12 (NVIDIA's documentation of 12.9); 13 continues with eight reserved words of zero.
struct PointerAttributes {
    cudaMemoryType type;
    int device;
    void* device_pointer;
    void* host_pointer;
};
static_assert(sizeof(PointerAttributes) == 24);
static_assert(offsetof(cudaPointerAttributes, devicePointer) == offsetof(PointerAttributes, device_pointer));
static_assert(offsetof(cudaPointerAttributes, hostPointer) == offsetof(PointerAttributes, host_pointer));

#if CUSLICE_CUDART_VERSION >= 13000
constexpr size_t kBytesTold = sizeof(cudaPointerAttributes);
static_assert(kBytesTold == 88);
#else
constexpr size_t kBytesTold = sizeof(PointerAttributes);
#endif

template <class Value>
CUresult ask(Value* value, CUpointer_attribute attribute, const void* pointer) {
    return CU(cuPointerGetAttribute, 4000)(static_cast<void*>(value), attribute, address(pointer));
}

CUresult inspect(const void* pointer, PointerAttributes* found) {
    CUmemorytype type = CU_MEMORYTYPE_HOST;
    const CUresult result = ask(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
    if (result == CUDA_ERROR_INVALID_VALUE) {
        // Memory that CUDA knows nothing of is no error since 11.0.
        *found = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, const_cast<void*>(pointer)};
        return CUDA_SUCCESS;
    }
    if (result != CUDA_SUCCESS)
        return result;
    unsigned managed = 0;
    CUdeviceptr on_device = 0;
    void* on_host = nullptr;
    // Each of these may be refused for memory that doesn't have it; then it stays empty.
    ask(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer);
    ask(&on_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer);
    if (managed != 0 || type == CU_MEMORYTYPE_HOST)
        ask(&on_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer);
    int device = 0;
    const CUresult ordinal = ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
    *found = {managed != 0                 ? cudaMemoryTypeManaged
              : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                           : cudaMemoryTypeDevice,
              device, reinterpret_cast<void*>(on_device), on_host};
    return ordinal;
}

}  // namespace

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    if (attributes == nullptr)
        return record(cudaErrorInvalidValue);
    return in_context([&] {
        PointerAttributes found{};
        CUSLICE_TRY(inspect(pointer, &found));
        unsigned char told[kBytesTold] = {};
        std::memcpy(told, &found, sizeof found);
        std::memcpy(static_cast<void*>(attributes), told, kBytesTold);
        return CUDA_SUCCESS;
    });
}
