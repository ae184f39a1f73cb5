// SPDX-License-Identifier: Apache-2.0
// Physical memory by the piece, and multicast objects.
#include <cstdint>

#include "tests/preload/guest/conformance/report.h"

namespace conformance {
namespace {

CUmemAllocationProp wish(CUmemLocation place) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = place;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return properties;
}

const void* handle(CUmemGenericAllocationHandle piece) { return reinterpret_cast<const void*>(piece); }

void told(CUmemGenericAllocationHandle piece) {
    CUmemAllocationProp properties{};
    ASK(cuMemGetAllocationPropertiesFromHandle, (&properties, piece), place(properties.location),
        number(properties.type));
}

void access(CUdeviceptr address) {
    for (const CUdevice ordinal : {0, 1, 2}) {
        const Scope scope(device(ordinal));
        unsigned long long flags = 9;
        const CUmemLocation place = on(ordinal);
        ASK(cuMemGetAccess, (&flags, &place, address), number(static_cast<long long>(flags)));
    }
}

}  // namespace

void pieces() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    CUmemGenericAllocationHandle on0 = 0, on1 = 0, again = 0;
    CUdeviceptr range = 0, other = 0;
    size_t size = 0;
    for (const CUdevice ordinal : {0, 1, 2, -1}) {
        const Scope scope(device(ordinal));
        const CUmemAllocationProp properties = wish(on(ordinal));
        ASK(cuMemGetAllocationGranularity, (&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            number(static_cast<long long>(size)));
        ASK(cuMemGetAllocationGranularity, (&size, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
            number(static_cast<long long>(size)));
        ASK(cuMemGetAllocationGranularity, (nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
        if (ordinal != 0 && ordinal != 1)
            ASK(cuMemCreate, (&on0, kBlock, &properties, 0));
    }
    ASK(cuMemGetAllocationGranularity, (&size, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    const CUmemAllocationProp at0 = wish(on(0)), at1 = wish(on(1)), nowhere = wish({});
    // No context is needed.
    ASK(cuMemCreate, (&on0, kBlock, &at0, 0), as("piece of 0", handle(on0)));
    ASK(cuMemCreate, (&on1, kBlock, &at1, 0), as("piece of 1", handle(on1)));
    ASK(cuMemCreate, (&again, kBlock, &nowhere, 0));
    ASK(cuMemCreate, (&again, kBlock + 1, &at1, 0));
    ASK(cuMemCreate, (&again, 0, &at1, 0));
    ASK(cuMemCreate, (nullptr, kBlock, &at1, 0));
    ASK(cuMemCreate, (&again, kBlock, nullptr, 0));
    ASK(cuMemCreate, (&again, kBlock, &at1, 1));
    told(on0);
    told(on1);
    ASK(cuMemGetAllocationPropertiesFromHandle, (nullptr, on1));
    ASK(cuMemAddressReserve, (&range, 2 * kBlock, 0, 0, 0), as_block("R", range, 2 * kBlock));
    ASK(cuMemMap, (range, kBlock, 0, on0, 0));
    ASK(cuMemMap, (range + kBlock, kBlock, 0, on1, 0));
    access(range);
    access(range + kBlock);
    const CUmemAccessDesc from0{on(0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc from1{on(1), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc not0{on(0), CU_MEM_ACCESS_FLAGS_PROT_NONE}, not1{on(1), CU_MEM_ACCESS_FLAGS_PROT_NONE};
    const CUmemAccessDesc read1{on(1), CU_MEM_ACCESS_FLAGS_PROT_READ};
    const CUmemAccessDesc wrong{on(2), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc both[] = {from0, from1}, twice[] = {from1, from1};
    ASK(cuMemSetAccess, (range + kBlock, kBlock, &from1, 1));
    access(range + kBlock);
    ASK(cuMemSetAccess, (range, kBlock, &from0, 1));
    access(range);
    ASK(cuMemSetAccess, (range, 2 * kBlock, both, 2));
    access(range);
    access(range + kBlock);
    ASK(cuMemSetAccess, (range, kBlock, &read1, 1));
    access(range);
    ASK(cuMemSetAccess, (range, kBlock, &not1, 1));
    access(range);
    ASK(cuMemSetAccess, (range + kBlock, kBlock, &not0, 1));
    access(range + kBlock);
    ASK(cuMemSetAccess, (range, kBlock, &wrong, 1));
    ASK(cuMemSetAccess, (range, kBlock, twice, 2));
    ASK(cuMemSetAccess, (range, kBlock, nullptr, 1));
    ASK(cuMemSetAccess, (range, kBlock, both, 0));
    ASK(cuMemSetAccess, (range, kBlock + 7, both, 2));
    ASK(cuMemSetAccess, (0x1000, kBlock, both, 2));
    unsigned long long flags = 0;
    const CUmemLocation place = on(1);
    ASK(cuMemGetAccess, (nullptr, &place, range));
    ASK(cuMemGetAccess, (&flags, nullptr, range));
    ASK(cuMemGetAccess, (&flags, &place, 0x1000));
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    for (const CUcontext current : {p0, p1}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        CUdevice where = -1;
        CUcontext context = nullptr;
        for (const CUdeviceptr address : {range, range + kBlock}) {
            const Scope at(block(address));
            ASK(cuPointerGetAttribute, (&where, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address), device(where));
            ASK(cuPointerGetAttribute, (&context, CU_POINTER_ATTRIBUTE_CONTEXT, address), named(context));
            ASK(cuMemsetD8_v2, (address, 7, kBlock));
        }
    }
    ASK(cuMemRetainAllocationHandle, (&again, reinterpret_cast<void*>(range + kBlock)), named(handle(again)));
    told(again);
    ASK(cuMemRelease, (again));
    ASK(cuMemRelease, (on1));
    told(on1);
    ASK(cuMemRelease, (on1));
    ASK(cuMemUnmap, (range + kBlock, kBlock));
    told(on1);
    int file = -1;
    CUmemGenericAllocationHandle imported = 0;
    ASK(cuMemExportToShareableHandle, (&file, on0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ASK(cuMemImportFromShareableHandle,
        (&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "imported");
    told(imported);
    ASK(cuMemRelease, (imported));
    ASK(cuMemUnmap, (range, kBlock));
    ASK(cuMemRelease, (on0));
    told(on0);
    ASK(cuMemAddressFree, (range, 2 * kBlock));
    ASK(cuMemAddressReserve, (&other, kBlock, 0, 0, 0), as_block("O", other, kBlock));
    CUmemGenericAllocationHandle shared = 0;
    ASK(cuMemCreate, (&shared, kBlock, &at1, 0), as("shared piece of 1", handle(shared)));
    ASK(cuMemExportToShareableHandle, (&file, shared, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    for (const CUcontext current : {p0, p1}) {
        const Scope scope("current " + named(current));
        cuCtxSetCurrent(current);
        ASK(cuMemImportFromShareableHandle,
            (&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            "imported");
        told(imported);
        ASK(cuMemRelease, (imported));
    }
    ASK(cuMemRelease, (shared));
    ASK(cuMemAddressFree, (other, kBlock));
}

void multicast() {
    start();
    CUcontext p0 = nullptr, p1 = nullptr;
    ASK(cuDevicePrimaryCtxRetain, (&p0, 0), as("P0", p0));
    ASK(cuDevicePrimaryCtxRetain, (&p1, 1), as("P1", p1));
    CUmulticastObjectProp form{};
    form.numDevices = 1;
    size_t size = 0;
    ASK(cuMulticastGetGranularity, (&size, &form, CU_MULTICAST_GRANULARITY_MINIMUM),
        number(static_cast<long long>(size)));
    form.size = size ? size : kBlock;
    CUmemGenericAllocationHandle object = 0, two = 0, piece = 0;
    ASK(cuMulticastCreate, (&object, &form), as("object", handle(object)));
    ASK(cuMulticastAddDevice, (object, 2));
    ASK(cuMulticastAddDevice, (object, -1));
    ASK(cuMulticastAddDevice, (object, 1));
    ASK(cuMulticastAddDevice, (object, 1));
    const CUmemAllocationProp at1 = wish(on(1)), at0 = wish(on(0));
    ASK(cuMemCreate, (&piece, form.size, &at1, 0), as("piece of 1", handle(piece)));
    ASK(cuMulticastBindMem, (object, 0, piece, 0, form.size, 0));
    ASK(cuMulticastUnbind, (object, 2, 0, form.size));
    ASK(cuMulticastUnbind, (object, 1, 0, form.size));
    ASK(cuMemRelease, (piece));
    ASK(cuMemRelease, (object));
    form.numDevices = 2;
    ASK(cuMulticastCreate, (&two, &form), as("object of two", handle(two)));
    ASK(cuMulticastAddDevice, (two, 0));
    ASK(cuMulticastAddDevice, (two, 1));
    ASK(cuMemCreate, (&piece, form.size, &at0, 0), as("piece of 0", handle(piece)));
    ASK(cuMulticastBindMem, (two, 0, piece, 0, form.size, 0));
    ASK(cuMemRelease, (piece));
    ASK(cuMemRelease, (two));
}

}  // namespace conformance
