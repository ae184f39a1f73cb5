// SPDX-License-Identifier: Apache-2.0
// Pinned host memory: the driver makes it in the real context, and whose it is is kept until it goes.
#include <cstddef>

#include "virtual_gpu/split/functions.h"
#include "virtual_gpu/split/register_handle.h"

namespace cuslice {

namespace {

template <typename Call>
CUresult make_host(void** address, Call call) {
    return make_registered(HandleKind::host_memory, address, call, [](void* made) {
        CUSLICE_PHYSICAL(cuMemFreeHost)(made);
    });
}

template <typename Real>
CUresult allocate_host(Real real, void** address, size_t bytes) {
    return make_host(address, [&](void** place) { return real(place, bytes); });
}

template <typename Real>
CUresult register_host(Real real, void* address, size_t bytes, unsigned flags) {
    const CUresult result = real(address, bytes, flags);
    if (result != CUDA_SUCCESS || note_as_current(address, HandleKind::host_memory))
        return result;
    CUSLICE_PHYSICAL(cuMemHostUnregister)(address);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace

namespace split_driver {

CUSLICE_SPLIT_FORM(cuMemAllocHost, allocate_host, address, bytes)
CUSLICE_SPLIT_FORM(cuMemAllocHost_v2, allocate_host, address, bytes)

CUSLICE_SPLIT(cuMemHostAlloc, address, bytes, flags) {
    return make_host(address, [&](void** place) { return CUSLICE_PHYSICAL(cuMemHostAlloc)(place, bytes, flags); });
}

CUSLICE_SPLIT(cuMemFreeHost, address) {
    return destroy_registered(HandleKind::host_memory, address,
                              [&] { return CUSLICE_PHYSICAL(cuMemFreeHost)(address); });
}

CUSLICE_SPLIT_FORM(cuMemHostRegister, register_host, address, bytes, flags)
CUSLICE_SPLIT_FORM(cuMemHostRegister_v2, register_host, address, bytes, flags)

CUSLICE_SPLIT(cuMemHostUnregister, address) {
    return destroy_registered(HandleKind::host_memory, address,
                              [&] { return CUSLICE_PHYSICAL(cuMemHostUnregister)(address); });
}

}  // namespace split_driver

}  // namespace cuslice
