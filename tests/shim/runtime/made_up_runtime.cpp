// SPDX-License-Identifier: Apache-2.0
#include "tests/shim/runtime/made_up_runtime.h"

#include <cstdio>
#include <cstring>

#include "shim/runtime/devices.h"

namespace cuslice::tests {

namespace {

MadeUpRuntime* now = nullptr;

constexpr const char* kNames[] = {
#define CUSLICE_RUNTIME(symbol, in_11, in_12, in_13) #symbol,
#define CUSLICE_RUNTIME_NEEDED(symbol) #symbol,
#include "shim/runtime/functions.def"
#undef CUSLICE_RUNTIME
#undef CUSLICE_RUNTIME_NEEDED
};

constexpr int kParts = 4;
int physical_of(int part) { return part >= 0 && part < kParts ? part / 2 : cudaInvalidDeviceId; }

const SplitView kView{
    .loaded = [](const char*) -> void* { return nullptr; },
    .open = [] { return true; },
    .count = [] { return kParts; },
    .physical_of = physical_of,
    .shown = [](int physical) { return physical_of(now->current) == physical ? now->current : physical * 2; },
    .current = [] { return now->current; },
    .siblings = [](int a, int b) { return physical_of(a) >= 0 && physical_of(a) == physical_of(b); },
    .make_current = [](int part) -> int {
        now->note(in_words("current", part));
        if (now->made_current != CUDA_SUCCESS)
            return now->made_current;
        now->current = part;
        now->context = reinterpret_cast<CUcontext>(uintptr_t{0x100} + static_cast<unsigned>(part));
        return CUDA_SUCCESS;
    },
    .has_company = [](int) { return now->company; },
    .reset = [](int part) -> int {
        now->note(in_words("reset", part));
        return now->driver_says;
    },
    .say_too_old = [](const void*) { now->note("too old"); },
    .priority_of =
        [](int part, int* priority) {
            if (!now->priorities.count(part))
                return false;
            *priority = now->priorities.at(part);
            return true;
        },
};

// Several of what lies at a pointer, as many as the test says.
template <typename Item, typename Text>
std::string list(const Item* items, Text one) {
    if (!items)
        return "0";
    std::string words;
    for (size_t i = 0; i < now->items; i++)
        words += (i ? "," : "") + one(items[i]);
    return words;
}

}  // namespace

MadeUpRuntime::MadeUpRuntime() {
    now = this;
    runtime::chosen = -1;
}
MadeUpRuntime::~MadeUpRuntime() { now = nullptr; }

MadeUpRuntime& made_up() { return *now; }
const char* name_of(runtime::Id id) { return kNames[static_cast<size_t>(id)]; }

std::string text(long long number) { return std::to_string(number); }
std::string text(const void* pointer) { return pointer ? "*" : "0"; }
std::string text(const char* word) { return word ? word : "0"; }
std::string text(cudaMemLocation place) {
    return place.type == cudaMemLocationTypeDevice ? "gpu" + std::to_string(place.id)
                                                   : "host" + std::to_string(place.id);
}
std::string text(const cudaMemLocation* places) {
    return list(places, [](const cudaMemLocation& one) { return text(one); });
}
std::string text(const cudaMemcpyAttributes* hints) {
    return list(hints,
                [](const cudaMemcpyAttributes& one) { return text(one.srcLocHint) + ">" + text(one.dstLocHint); });
}
std::string text(const cudaMemcpy3DBatchOp* boxes) {
    const auto end = [](const cudaMemcpy3DOperand& one) {
        return one.type == cudaMemcpyOperandTypePointer ? text(one.op.ptr.locHint) : std::string("array");
    };
    return list(boxes, [&](const cudaMemcpy3DBatchOp& one) { return end(one.src) + ">" + end(one.dst); });
}
std::string text(const cudaMemcpy3DPeerParms* box) {
    return box ? text(box->srcDevice) + ">" + text(box->dstDevice) + ":" +
                     text(static_cast<long long>(box->extent.width))
               : "0";
}
std::string text(const cudaMemcpy3DParms* box) { return text(static_cast<long long>(box->extent.width)); }
std::string text(const cudaMemAllocNodeParams* node) {
    return list(node, [](const cudaMemAllocNodeParams& one) { return text(one.poolProps.location); });
}
std::string text(const cudaGraphNodeParams* node) {
    return list(node, [](const cudaGraphNodeParams& one) { return text(one.alloc.poolProps.location); });
}

}  // namespace cuslice::tests

namespace cuslice::runtime {

const SplitView* view() { return tests::now->split ? &tests::kView : nullptr; }
void* runtime_function(int, Id id) {
    const auto found = tests::now->functions.find(id);
    return found == tests::now->functions.end() ? nullptr : found->second;
}
int loaded_version(int version) { return version == 13 ? tests::now->version : version; }

}  // namespace cuslice::runtime

// The driver, as programs have it: it counts as they do. What it tells of a GPU has the GPU's number in it.
using namespace cuslice::tests;

#define DRIVER(symbol, ...)                         \
    made_up().note(in_words(#symbol, __VA_ARGS__)); \
    if (made_up().driver_says != CUDA_SUCCESS)      \
    return made_up().driver_says
extern "C" {
CUresult CUDAAPI cuDriverGetVersion(int* version) {
    *version = made_up().old_driver ? 11030 : 13000;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
    if (made_up().driver_says != CUDA_SUCCESS)
        return made_up().driver_says;
    std::memset(uuid, 0x30 + device, sizeof *uuid);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
    if (made_up().old_driver)
        made_up().note("cuDeviceGetUuid_v2");
    return made_up().old_driver ? CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER : cuDeviceGetUuid(uuid, device);
}
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
    if (made_up().driver_says != CUDA_SUCCESS)
        return made_up().driver_says;
    *bytes = static_cast<size_t>(device + 1) << 30;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    if (made_up().driver_says != CUDA_SUCCESS)
        return made_up().driver_says;
    *value = 1000 * device + attribute;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetPCIBusId(char* name, int length, CUdevice device) {
    DRIVER(cuDeviceGetPCIBusId, length, device);
    std::snprintf(name, static_cast<size_t>(length), "%08x:00:00.0", static_cast<unsigned>(device));
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* name) {
    DRIVER(cuDeviceGetByPCIBusId, name);
    *device = 3;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
    DRIVER(cuDeviceCanAccessPeer, device, peer);
    *can = 1;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
    DRIVER(cuDeviceGetP2PAttribute, attribute, from, to);
    *value = 1;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
    *context = made_up().context;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
    DRIVER(cuCtxEnablePeerAccess, reinterpret_cast<uintptr_t>(context) - 0x100, flags);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext context) {
    DRIVER(cuCtxDisablePeerAccess, reinterpret_cast<uintptr_t>(context) - 0x100);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
    DRIVER(cuPointerGetAttribute, attribute, address);
    *static_cast<int*>(data) = static_cast<int>(address) - 100;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamGetDevice(CUstream stream, CUdevice* device) {
    DRIVER(cuStreamGetDevice, stream);
    *device = 3;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device) {
    DRIVER(cuStreamGetDevice_ptsz, stream);
    *device = 3;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute attribute, CUdeviceptr pointer,
                                        size_t bytes) {
    DRIVER(cuMemRangeGetAttribute, data, size, attribute, pointer, bytes);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes, size_t count,
                                         CUdeviceptr pointer, size_t bytes) {
    DRIVER(cuMemRangeGetAttributes, data, sizes, attributes[0], count, pointer, bytes);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
    DRIVER(cuDeviceGetDefaultMemPool, device);
    *pool = nullptr;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
    DRIVER(cuDeviceGetMemPool, device);
    *pool = nullptr;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
    DRIVER(cuDeviceSetMemPool, device, pool);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* wish) {
    DRIVER(cuMemPoolCreate, pool, wish->location.id);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* wishes, size_t count) {
    DRIVER(cuMemPoolSetAccess, pool, wishes->location.id, count);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location) {
    DRIVER(cuMemPoolGetAccess, flags, pool, location->id);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    DRIVER(cuMemGetDefaultMemPool, pool, location->id, type);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type) {
    DRIVER(cuMemGetMemPool, pool, location->id, type);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
    DRIVER(cuMemSetMemPool, location->id, type, pool);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
    DRIVER(cuGetProcAddress, name, version, flags);
    *function = reinterpret_cast<void*>(uintptr_t{0x4711});
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult*) {
    DRIVER(cuGetProcAddress_v2, name, version, flags);
    if (made_up().old_driver)
        return CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER;
    *function = reinterpret_cast<void*>(uintptr_t{0x4711});
    return CUDA_SUCCESS;
}
}
