// SPDX-License-Identifier: Apache-2.0
// Memory that is more than an address: physical memory and its mappings, arrays, mipmapped arrays.
#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

CUDA_ARRAY3D_DESCRIPTOR array_of(const Words& w) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor{};
    descriptor.Width = number(w.at(1));
    descriptor.Height = number(w.at(2));
    descriptor.Depth = number(w.at(3));
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 4;
    return descriptor;
}

}  // namespace

void add_object_commands(Commands& commands) {
    // piece NAME BYTES [export|tiles]
    commands["piece"] = [](Program& p, const Words& w) {
        CUmemAllocationProp prop{};
        prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
        if (w.size() > 2 && w[2] == "tiles")
            prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
        if (w.size() > 2 && w[2] == "export")
            prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        CUmemGenericAllocationHandle handle = 0;
        const CUresult result = p.driver.cuMemCreate(&handle, number(w.at(1)), &prop, 0);
        if (result == CUDA_SUCCESS)
            p.pieces[w.at(0)] = handle;
        return answer(result);
    };
    commands["unpiece"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMemRelease(p.pieces.at(w.at(0))));
    };
    // map NAME BYTES: at addresses of its own
    commands["map"] = [](Program& p, const Words& w) {
        CUdeviceptr address = 0;
        const size_t size = number(w.at(1));
        CUresult result = p.driver.cuMemAddressReserve(&address, size, 0, 0, 0);
        if (result != CUDA_SUCCESS)
            return answer(result);
        result = p.driver.cuMemMap(address, size, 0, p.pieces.at(w.at(0)), 0);
        if (result == CUDA_SUCCESS)
            p.mappings[w.at(0)] = {address, size};
        return answer(result);
    };
    commands["unmap"] = [](Program& p, const Words& w) {
        const auto [address, size] = p.mappings.at(w.at(0));
        const CUresult result = p.driver.cuMemUnmap(address, size);
        if (result == CUDA_SUCCESS)
            p.driver.cuMemAddressFree(address, size);
        return answer(result);
    };
    // multicast NAME BYTES [DEVICES]: known as a piece, and its team complete; mapped, unmapped and released as one
    commands["multicast"] = [](Program& p, const Words& w) {
        CUmulticastObjectProp prop{};
        prop.numDevices = w.size() > 2 ? static_cast<unsigned>(number(w[2])) : 1;
        prop.size = number(w.at(1));
        CUmemGenericAllocationHandle object = 0;
        CUresult result = p.driver.cuMulticastCreate(&object, &prop);
        if (result == CUDA_SUCCESS)
            p.pieces[w.at(0)] = object;
        for (unsigned device = 0; result == CUDA_SUCCESS && device < prop.numDevices; device++)
            result = p.driver.cuMulticastAddDevice(object, static_cast<CUdevice>(device));
        return answer(result);
    };
    // bind OBJECT OFFSET PIECE BYTES
    commands["bind"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMulticastBindMem(p.pieces.at(w.at(0)), number(w.at(1)), p.pieces.at(w.at(2)), 0,
                                                  number(w.at(3)), 0));
    };
    // bindat OBJECT OFFSET MAPPING BYTES
    commands["bindat"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMulticastBindAddr(p.pieces.at(w.at(0)), number(w.at(1)), p.mappings.at(w.at(2)).first,
                                                   number(w.at(3)), 0));
    };
    // unbind OBJECT OFFSET BYTES
    commands["unbind"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMulticastUnbind(p.pieces.at(w.at(0)), 0, number(w.at(1)), number(w.at(2))));
    };
    // array NAME WIDTH HEIGHT DEPTH: of 16 bytes each
    commands["array"] = [](Program& p, const Words& w) {
        const CUDA_ARRAY3D_DESCRIPTOR descriptor = array_of(w);
        CUarray array = nullptr;
        const CUresult result = p.driver.cuArray3DCreate_v2(&array, &descriptor);
        if (result == CUDA_SUCCESS)
            p.arrays[w.at(0)] = array;
        return answer(result);
    };
    // sparse NAME WIDTH HEIGHT DEPTH: the same, without memory
    commands["sparse"] = [](Program& p, const Words& w) {
        CUDA_ARRAY3D_DESCRIPTOR descriptor = array_of(w);
        descriptor.Flags = CUDA_ARRAY3D_SPARSE;
        CUarray array = nullptr;
        const CUresult result = p.driver.cuArray3DCreate_v2(&array, &descriptor);
        if (result == CUDA_SUCCESS)
            p.arrays[w.at(0)] = array;
        return answer(result);
    };
    // tiles ARRAY WIDTH HEIGHT [PIECE]: binds what begins at 0, or with no piece gives it up
    commands["tiles"] = [](Program& p, const Words& w) {
        CUarrayMapInfo info{};
        info.resourceType = CU_RESOURCE_TYPE_ARRAY;
        info.resource.array = p.arrays.at(w.at(0));
        info.subresource.sparseLevel.extentWidth = static_cast<unsigned>(number(w.at(1)));
        info.subresource.sparseLevel.extentHeight = static_cast<unsigned>(number(w.at(2)));
        info.subresource.sparseLevel.extentDepth = 1;
        info.memOperationType = w.size() > 3 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
        info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
        if (w.size() > 3)
            info.memHandle.memHandle = p.pieces.at(w[3]);
        info.deviceBitMask = 1;
        return answer(p.driver.cuMemMapArrayAsync(&info, 1, nullptr));
    };
    commands["unarray"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuArrayDestroy(p.arrays.at(w.at(0))));
    };
    // mipmap NAME WIDTH HEIGHT DEPTH LEVELS
    commands["mipmap"] = [](Program& p, const Words& w) {
        const CUDA_ARRAY3D_DESCRIPTOR descriptor = array_of(w);
        CUmipmappedArray array = nullptr;
        const CUresult result =
            p.driver.cuMipmappedArrayCreate(&array, &descriptor, static_cast<unsigned>(number(w.at(4))));
        if (result == CUDA_SUCCESS)
            p.mipmaps[w.at(0)] = array;
        return answer(result);
    };
    commands["unmipmap"] = [](Program& p, const Words& w) {
        return answer(p.driver.cuMipmappedArrayDestroy(p.mipmaps.at(w.at(0))));
    };
}

}  // namespace guest
