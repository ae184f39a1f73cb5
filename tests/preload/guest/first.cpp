// SPDX-License-Identifier: Apache-2.0
// Each function that takes memory, as the first call of a program that counts.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/preload/guest/guest.h"

namespace guest {
namespace {

constexpr size_t kMiB = 1 << 20;

std::string image(size_t bytes) {
    return ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 data[" +
           std::to_string(bytes) + "];\n";
}

std::string image_file(size_t bytes) {
    char path[] = "/tmp/guest-image-XXXXXX";
    const int file = mkstemp(path);
    std::FILE* const out = fdopen(file, "w");
    std::fputs(image(bytes).c_str(), out);
    std::fclose(out);
    return path;
}

template <typename Descriptor>
Descriptor array_of(size_t bytes) {
    Descriptor descriptor{};
    descriptor.Width = 1024;
    descriptor.Height = static_cast<decltype(descriptor.Height)>(bytes / 16 / 1024);
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 4;
    return descriptor;
}

CUresult create(const Driver& d, CUmemGenericAllocationHandle* piece, size_t bytes) {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return d.cuMemCreate(piece, bytes, &prop, 0);
}

CUresult pool_of(const Driver& d, CUmemoryPool* pool) {
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return d.cuMemPoolCreate(pool, &properties);
}

CUresult from_pool(const Driver& d, size_t bytes) {
    static CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    const CUresult made = pool ? CUDA_SUCCESS : pool_of(d, &pool);
    return made == CUDA_SUCCESS ? d.cuMemAllocFromPoolAsync(&block, bytes, pool, nullptr) : made;
}

CUresult multicast(const Driver& d, CUmemGenericAllocationHandle* object, size_t bytes) {
    CUmulticastObjectProp prop{};
    prop.numDevices = 1;
    prop.size = bytes;
    const CUresult result = d.cuMulticastCreate(object, &prop);
    return result == CUDA_SUCCESS ? d.cuMulticastAddDevice(*object, 0) : result;
}

CUresult bound(const Driver& d, size_t bytes) {
    CUmemGenericAllocationHandle object = 0, piece = 0;
    CUresult result = multicast(d, &object, bytes);
    if (result == CUDA_SUCCESS)
        result = create(d, &piece, bytes);
    return result == CUDA_SUCCESS ? d.cuMulticastBindMem(object, 0, piece, 0, bytes, 0) : result;
}

CUresult bound_by_address(const Driver& d, size_t bytes) {
    CUmemGenericAllocationHandle object = 0, piece = 0;
    CUdeviceptr address = 0;
    CUresult result = multicast(d, &object, bytes);
    if (result == CUDA_SUCCESS)
        result = create(d, &piece, bytes);
    if (result == CUDA_SUCCESS)
        result = d.cuMemAddressReserve(&address, bytes, 0, 0, 0);
    if (result == CUDA_SUCCESS)
        result = d.cuMemMap(address, bytes, 0, piece, 0);
    return result == CUDA_SUCCESS ? d.cuMulticastBindAddr(object, 0, address, bytes, 0) : result;
}

CUresult graph_of(const Driver& d, CUgraph* graph, size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode node = nullptr;
    const CUresult result = d.cuGraphCreate(graph, 0);
    return result == CUDA_SUCCESS ? d.cuGraphAddMemAllocNode(&node, *graph, nullptr, 0, &params) : result;
}

template <typename Instantiate>
CUresult launched(const Driver& d, size_t bytes, Instantiate instantiate) {
    CUgraph graph = nullptr;
    CUgraphExec instance = nullptr;
    CUresult result = graph_of(d, &graph, bytes);
    if (result == CUDA_SUCCESS)
        result = instantiate(&instance, graph);
    return result == CUDA_SUCCESS ? d.cuGraphLaunch(instance, nullptr) : result;
}

CUresult plain_graph(const Driver& d, CUgraphExec* instance, CUgraph graph) {
    return d.cuGraphInstantiateWithFlags(instance, graph, 0);
}

CUresult uploaded(const Driver& d, size_t bytes) {
    CUgraph graph = nullptr;
    CUgraphExec instance = nullptr;
    CUresult result = graph_of(d, &graph, bytes);
    if (result == CUDA_SUCCESS)
        result = plain_graph(d, &instance, graph);
    return result == CUDA_SUCCESS ? d.cuGraphUpload(instance, nullptr) : result;
}

CUresult green(const Driver& d) {
    CUdevResource all{};
    CUdevResourceDesc resources = nullptr;
    CUgreenCtx context = nullptr;
    CUresult result = d.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
        result = d.cuDevResourceGenerateDesc(&resources, &all, 1);
    return result == CUDA_SUCCESS ? d.cuGreenCtxCreate(&context, resources, 0, CU_GREEN_CTX_DEFAULT_STREAM) : result;
}

CUresult shared(const Driver& d, size_t bytes) {
    CUmemGenericAllocationHandle piece = 0, again = 0;
    int file = -1;
    CUresult result = create(d, &piece, bytes);
    if (result == CUDA_SUCCESS)
        result = d.cuMemExportToShareableHandle(&file, piece, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result != CUDA_SUCCESS)
        return result;
    return d.cuMemImportFromShareableHandle(&again, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/// A function of functions.def, how it takes so many bytes, or as many as it takes, and whether it needs a current
/// context.
struct First {
    const char* symbol;
    CUresult (*take)(const Driver& d, size_t bytes);
    bool needs_current = true;
};

#define TAKES(symbol, ...) \
    { #symbol, [](const Driver& d, [[maybe_unused]] size_t bytes) -> CUresult __VA_ARGS__ }
#define TAKES_ANYWHERE(symbol, ...) \
    { #symbol, [](const Driver& d, [[maybe_unused]] size_t bytes) -> CUresult __VA_ARGS__, false }

const First kFirsts[] = {
    TAKES(cuArray3DCreate,
          {
              CUarray array = nullptr;
              const auto descriptor = array_of<CUDA_ARRAY3D_DESCRIPTOR_v1>(bytes);
              return d.cuArray3DCreate(&array, &descriptor);
          }),
    TAKES(cuArray3DCreate_v2,
          {
              CUarray array = nullptr;
              const auto descriptor = array_of<CUDA_ARRAY3D_DESCRIPTOR>(bytes);
              return d.cuArray3DCreate_v2(&array, &descriptor);
          }),
    TAKES(cuArrayCreate,
          {
              CUarray array = nullptr;
              const auto descriptor = array_of<CUDA_ARRAY_DESCRIPTOR_v1>(bytes);
              return d.cuArrayCreate(&array, &descriptor);
          }),
    TAKES(cuArrayCreate_v2,
          {
              CUarray array = nullptr;
              const auto descriptor = array_of<CUDA_ARRAY_DESCRIPTOR>(bytes);
              return d.cuArrayCreate_v2(&array, &descriptor);
          }),
    TAKES(cuMipmappedArrayCreate,
          {
              CUmipmappedArray array = nullptr;
              const auto descriptor = array_of<CUDA_ARRAY3D_DESCRIPTOR>(bytes);
              return d.cuMipmappedArrayCreate(&array, &descriptor, 1);
          }),
    TAKES_ANYWHERE(cuCtxCreate,
                   {
                       CUcontext context = nullptr;
                       return d.cuCtxCreate(&context, 0, 0);
                   }),
    TAKES_ANYWHERE(cuCtxCreate_v2,
                   {
                       CUcontext context = nullptr;
                       return d.cuCtxCreate_v2(&context, 0, 0);
                   }),
    TAKES_ANYWHERE(cuCtxCreate_v3,
                   {
                       CUcontext context = nullptr;
                       return d.cuCtxCreate_v3(&context, nullptr, 0, 0, 0);
                   }),
    TAKES_ANYWHERE(cuCtxCreate_v4,
                   {
                       CUcontext context = nullptr;
                       return d.cuCtxCreate_v4(&context, nullptr, 0, 0);
                   }),
    TAKES(cuCtxSetLimit, { return d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes); }),
    TAKES_ANYWHERE(cuDevicePrimaryCtxRetain,
                   {
                       CUcontext context = nullptr;
                       return d.cuDevicePrimaryCtxRetain(&context, 0);
                   }),
    TAKES_ANYWHERE(cuGreenCtxCreate, { return green(d); }),
    TAKES(cuGraphInstantiate,
          {
              return launched(d, bytes, [&](CUgraphExec* instance, CUgraph graph) {
                  return d.cuGraphInstantiate(instance, graph, nullptr, nullptr, 0);
              });
          }),
    TAKES(cuGraphInstantiate_v2,
          {
              return launched(d, bytes, [&](CUgraphExec* instance, CUgraph graph) {
                  return d.cuGraphInstantiate_v2(instance, graph, nullptr, nullptr, 0);
              });
          }),
    TAKES(cuGraphInstantiateWithFlags,
          {
              return launched(d, bytes,
                              [&](CUgraphExec* instance, CUgraph graph) { return plain_graph(d, instance, graph); });
          }),
    TAKES(cuGraphInstantiateWithParams,
          {
              return launched(d, bytes, [&](CUgraphExec* instance, CUgraph graph) {
                  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
                  return d.cuGraphInstantiateWithParams(instance, graph, &params);
              });
          }),
    TAKES(cuGraphLaunch,
          {
              return launched(d, bytes,
                              [&](CUgraphExec* instance, CUgraph graph) { return plain_graph(d, instance, graph); });
          }),
    TAKES(cuGraphUpload, { return uploaded(d, bytes); }),
    TAKES(cuLibraryLoadData,
          {
              CUlibrary library = nullptr;
              return d.cuLibraryLoadData(&library, image(bytes).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
          }),
    TAKES(cuLibraryLoadFromFile,
          {
              CUlibrary library = nullptr;
              const std::string file = image_file(bytes);
              const CUresult result =
                  d.cuLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
              std::remove(file.c_str());
              return result;
          }),
    TAKES(cuMemAlloc,
          {
              CUdeviceptr_v1 block = 0;
              return d.cuMemAlloc(&block, static_cast<unsigned>(bytes));
          }),
    TAKES(cuMemAlloc_v2,
          {
              CUdeviceptr block = 0;
              return d.cuMemAlloc_v2(&block, bytes);
          }),
    TAKES(cuMemAllocManaged,
          {
              CUdeviceptr block = 0;
              return d.cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL);
          }),
    TAKES(cuMemAllocPitch,
          {
              CUdeviceptr_v1 block = 0;
              unsigned pitch = 0;
              return d.cuMemAllocPitch(&block, &pitch, 1 << 20, static_cast<unsigned>(bytes / kMiB), 4);
          }),
    TAKES(cuMemAllocPitch_v2,
          {
              CUdeviceptr block = 0;
              size_t pitch = 0;
              return d.cuMemAllocPitch_v2(&block, &pitch, 1 << 20, bytes / kMiB, 4);
          }),
    TAKES(cuMemAllocAsync,
          {
              CUdeviceptr block = 0;
              return d.cuMemAllocAsync(&block, bytes, nullptr);
          }),
    TAKES(cuMemAllocAsync_ptsz,
          {
              CUdeviceptr block = 0;
              return d.cuMemAllocAsync_ptsz(&block, bytes, nullptr);
          }),
    TAKES(cuMemAllocFromPoolAsync, { return from_pool(d, bytes); }),
    TAKES_ANYWHERE(cuMemCreate,
                   {
                       CUmemGenericAllocationHandle piece = 0;
                       return create(d, &piece, bytes);
                   }),
    TAKES_ANYWHERE(cuMemImportFromShareableHandle, { return shared(d, bytes); }),
    TAKES_ANYWHERE(cuMemPoolCreate,
                   {
                       CUmemoryPool pool = nullptr;
                       const CUresult made = pool_of(d, &pool);
                       return made == CUDA_SUCCESS ? from_pool(d, bytes) : made;
                   }),
    TAKES(cuModuleLoad,
          {
              CUmodule module = nullptr;
              const std::string file = image_file(bytes);
              const CUresult result = d.cuModuleLoad(&module, file.c_str());
              std::remove(file.c_str());
              return result;
          }),
    TAKES(cuModuleLoadData,
          {
              CUmodule module = nullptr;
              return d.cuModuleLoadData(&module, image(bytes).c_str());
          }),
    TAKES(cuModuleLoadDataEx,
          {
              CUmodule module = nullptr;
              return d.cuModuleLoadDataEx(&module, image(bytes).c_str(), 0, nullptr, nullptr);
          }),
    TAKES_ANYWHERE(cuMulticastCreate, { return bound(d, bytes); }),
    TAKES_ANYWHERE(cuMulticastAddDevice, { return bound(d, bytes); }),
    TAKES_ANYWHERE(cuMulticastBindMem, { return bound(d, bytes); }),
    TAKES_ANYWHERE(cuMulticastBindAddr, { return bound_by_address(d, bytes); }),
};
#undef TAKES
#undef TAKES_ANYWHERE

}  // namespace

void add_first_commands(Commands& commands) {
    // firsts: the symbols in kFirsts; those that need no current context with a + behind
    commands["firsts"] = [](Program&, const Words&) {
        std::string symbols;
        for (const First& first : kFirsts)
            symbols += (symbols.empty() ? "" : " ") + std::string(first.symbol) + (first.needs_current ? "" : "+");
        return symbols;
    };
    // first SYMBOL BYTES TIMES: until it is refused; the CUresult, and how often it was granted
    commands["first"] = [](Program& p, const Words& w) {
        for (const First& first : kFirsts) {
            if (w.at(0) != first.symbol)
                continue;
            CUresult result = CUDA_SUCCESS;
            size_t granted = 0;
            while (granted < number(w.at(2)) && result == CUDA_SUCCESS) {
                result = first.take(p.driver, number(w.at(1)));
                granted += result == CUDA_SUCCESS;
            }
            return answer(result, granted);
        }
        return std::string("no such function");
    };
}

}  // namespace guest
