// SPDX-License-Identifier: Apache-2.0
// A program on the CUDA runtime that uses every GPU it is shown, and prints what each says, a line at a time: linked to
// the runtime, or with CUDART in its environment opening that one by dlopen.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace {

void* opened = nullptr;

// Only what 11, 12 and 13 have in the same form.
template <typename Function>
Function* real(Function* linked, const char* name) {
    return opened ? reinterpret_cast<Function*>(dlsym(opened, name)) : linked;
}
#ifdef GUEST_OPENS_RUNTIME
#define CALL(name) real(static_cast<decltype(&name)>(nullptr), #name)
#else
#define CALL(name) real(&name, #name)
#endif

int wrong = 0;

void expect(const char* what, long got, long wanted) {
    if (got == wanted)
        return;
    wrong++;
    std::printf("wrong: %s is %ld and not %ld\n", what, got, wanted);
}

void look_at(int device) {
    expect("cudaSetDevice", CALL(cudaSetDevice)(device), cudaSuccess);
    int current = -1;
    expect("cudaGetDevice", CALL(cudaGetDevice)(&current), cudaSuccess);
    expect("the current GPU", current, device);
    char bus[32] = "";
    expect("cudaDeviceGetPCIBusId", CALL(cudaDeviceGetPCIBusId)(bus, sizeof bus, device), cudaSuccess);
    int by_bus = -1, domain = -1;
    expect("cudaDeviceGetByPCIBusId", CALL(cudaDeviceGetByPCIBusId)(&by_bus, bus), cudaSuccess);
    expect("the GPU with its bus id", by_bus, device);
    CALL(cudaDeviceGetAttribute)(&domain, cudaDevAttrPciDomainId, device);
    expect("the PCI domain", domain, std::strtol(bus, nullptr, 16));
    unsigned char properties[2048];
#ifdef GUEST_12
    const char* name = "cudaGetDeviceProperties_v2";
    using Properties = cudaError_t(void*, int);
    auto* get = opened ? reinterpret_cast<Properties*>(dlsym(opened, name))
                       : reinterpret_cast<Properties*>(dlvsym(RTLD_DEFAULT, name, "libcudart.so.12"));
#else
    auto* get = reinterpret_cast<cudaError_t (*)(void*, int)>(CALL(cudaGetDeviceProperties));
#endif
    expect("cudaGetDeviceProperties", get(properties, device), cudaSuccess);
    size_t free = 0, total = 0, memory = 0;
    std::memcpy(&memory, properties + 288, sizeof memory);
    expect("cudaMemGetInfo", CALL(cudaMemGetInfo)(&free, &total), cudaSuccess);
    expect("the memory in its properties", static_cast<long>(memory), static_cast<long>(total));
    std::printf("gpu %d uuid ", device);
    for (int i = 256; i < 272; i++)
        std::printf("%02x", properties[i]);
    std::printf(" pci %s total %zu\n", bus, total);
}

void use(int device) {
    expect("cudaSetDevice", CALL(cudaSetDevice)(device), cudaSuccess);
    void *block = nullptr, *none = nullptr;
    size_t free = 0, total = 0, later = 0;
    CALL(cudaMemGetInfo)(&free, &total);
    expect("cudaMalloc of what is free", CALL(cudaMalloc)(&block, free - (32 << 20)), cudaSuccess);
    expect("cudaMalloc of more", CALL(cudaMalloc)(&none, 64 << 20), cudaErrorMemoryAllocation);
    CALL(cudaGetLastError)();
    cudaPointerAttributes about{};
    expect("cudaPointerGetAttributes", CALL(cudaPointerGetAttributes)(&about, block), cudaSuccess);
    expect("the pointer's GPU", about.device, device);
    cudaStream_t stream = nullptr;
    expect("cudaStreamCreate", CALL(cudaStreamCreate)(&stream), cudaSuccess);
    expect("cudaFree", CALL(cudaFree)(block), cudaSuccess);
    expect("cudaMallocAsync", CALL(cudaMallocAsync)(&block, 1 << 20, stream), cudaSuccess);
    expect("cudaFreeAsync", CALL(cudaFreeAsync)(block, stream), cudaSuccess);
    expect("cudaStreamSynchronize", CALL(cudaStreamSynchronize)(stream), cudaSuccess);
    expect("cudaStreamDestroy", CALL(cudaStreamDestroy)(stream), cudaSuccess);
    CALL(cudaMemGetInfo)(&later, &total);
    if (later + (64 << 20) < free)
        expect("what is free afterwards", static_cast<long>(later), static_cast<long>(free));
}

// From each to each, by every kind of copy, ending with the same bytes on the host.
void copy(int from, int to) {
    constexpr int kBytes = 1 << 16;
    std::vector<unsigned char> sent(kBytes), got(kBytes);
    for (int i = 0; i < kBytes; i++)
        sent[static_cast<size_t>(i)] = static_cast<unsigned char>(i * 7 + from * 3 + to);
    void *a = nullptr, *b = nullptr;
    CALL(cudaSetDevice)(from);
    expect("cudaMalloc", CALL(cudaMalloc)(&a, kBytes), cudaSuccess);
    expect("to the GPU", CALL(cudaMemcpy)(a, sent.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
    CALL(cudaSetDevice)(to);
    expect("cudaMalloc", CALL(cudaMalloc)(&b, kBytes), cudaSuccess);
    expect("cudaMemcpyPeer", CALL(cudaMemcpyPeer)(b, to, a, from, kBytes / 2), cudaSuccess);
    expect("cudaMemcpyPeerAsync",
           CALL(cudaMemcpyPeerAsync)(static_cast<char*>(b) + kBytes / 2, to, static_cast<char*>(a) + kBytes / 2, from,
                                     kBytes / 2, nullptr),
           cudaSuccess);
    expect("from the GPU", CALL(cudaMemcpy)(got.data(), b, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    expect("the same bytes", sent == got, true);
    CALL(cudaFree)(a);
    CALL(cudaFree)(b);
}

// Checks that a GPU has a pool to begin with, and takes another one that the program makes. Returns the first.
cudaMemPool_t pools(int device) {
    CALL(cudaSetDevice)(device);
    cudaMemPool_t first = nullptr, now = nullptr, own = nullptr;
    expect("cudaDeviceGetDefaultMemPool", CALL(cudaDeviceGetDefaultMemPool)(&first, device), cudaSuccess);
    expect("cudaDeviceGetMemPool", CALL(cudaDeviceGetMemPool)(&now, device), cudaSuccess);
    expect("the pool to begin with", now == first, true);
    cudaMemPoolProps wish{};
    wish.allocType = cudaMemAllocationTypePinned;
    wish.location = {cudaMemLocationTypeDevice, device};
    expect("cudaMemPoolCreate", CALL(cudaMemPoolCreate)(&own, &wish), cudaSuccess);
    expect("cudaDeviceSetMemPool", CALL(cudaDeviceSetMemPool)(device, own), cudaSuccess);
    expect("cudaDeviceGetMemPool", CALL(cudaDeviceGetMemPool)(&now, device), cudaSuccess);
    expect("the program's own pool", now == own, true);
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    expect("cudaMemPoolGetAccess", CALL(cudaMemPoolGetAccess)(&flags, own, &wish.location), cudaSuccess);
    expect("its access", flags, cudaMemAccessFlagsProtReadWrite);
    cudaStream_t stream = nullptr;
    CALL(cudaStreamCreate)(&stream);
#ifndef GUEST_11
    int of_stream = -1;
    expect("cudaStreamGetDevice", CALL(cudaStreamGetDevice)(stream, &of_stream), cudaSuccess);
    expect("the stream's GPU", of_stream, device);
    expect("the GPU of no stream", CALL(cudaStreamGetDevice)(nullptr, nullptr), cudaErrorInvalidValue);
#endif
    void* block = nullptr;
    expect("cudaMallocFromPoolAsync", CALL(cudaMallocFromPoolAsync)(&block, 1 << 20, own, stream), cudaSuccess);
    cudaPointerAttributes about{};
    CALL(cudaPointerGetAttributes)(&about, block);
    expect("the GPU of what a pool gave", about.device, device);
    CALL(cudaFreeAsync)(block, stream);
    CALL(cudaStreamSynchronize)(stream);
    CALL(cudaStreamDestroy)(stream);
    expect("the first pool again", CALL(cudaDeviceSetMemPool)(device, first), cudaSuccess);
    expect("cudaMemPoolDestroy", CALL(cudaMemPoolDestroy)(own), cudaSuccess);
    expect("the pool of no GPU", CALL(cudaDeviceGetDefaultMemPool)(&now, 99), cudaErrorInvalidDevice);
    expect("the present pool of no GPU", CALL(cudaDeviceGetMemPool)(&now, 99), cudaErrorInvalidDevice);
    CALL(cudaGetLastError)();
    return first;
}

// Prints the priorities of streams, one for each way to make a stream. A priority that the program names is kept.
void priorities(const char* where) {
    cudaStream_t streams[3] = {};
    expect("cudaStreamCreate", CALL(cudaStreamCreate)(&streams[0]), cudaSuccess);
    expect("cudaStreamCreateWithFlags", CALL(cudaStreamCreateWithFlags)(&streams[1], cudaStreamNonBlocking),
           cudaSuccess);
    expect("cudaStreamCreateWithPriority", CALL(cudaStreamCreateWithPriority)(&streams[2], cudaStreamNonBlocking, -3),
           cudaSuccess);
    std::printf("priority %s", where);
    for (const cudaStream_t stream : streams) {
        int priority = 99;
        unsigned flags = 99;
        expect("cudaStreamGetPriority", CALL(cudaStreamGetPriority)(stream, &priority), cudaSuccess);
        expect("cudaStreamGetFlags", CALL(cudaStreamGetFlags)(stream, &flags), cudaSuccess);
        expect("a stream's flags", flags, stream == streams[0] ? cudaStreamDefault : cudaStreamNonBlocking);
        std::printf(" %d", priority);
        expect("cudaStreamDestroy", CALL(cudaStreamDestroy)(stream), cudaSuccess);
    }
    std::printf("\n");
}

// A node that allocates says on which GPU.
void graphs(int device) {
    CALL(cudaSetDevice)(device);
    cudaGraph_t graph = nullptr;
    cudaGraphNode_t node = nullptr;
    expect("cudaGraphCreate", CALL(cudaGraphCreate)(&graph, 0), cudaSuccess);
    cudaMemAllocNodeParams wish{}, got{};
    wish.poolProps.allocType = cudaMemAllocationTypePinned;
    wish.poolProps.location = {cudaMemLocationTypeDevice, device};
    wish.bytesize = 1 << 20;
    expect("cudaGraphAddMemAllocNode", CALL(cudaGraphAddMemAllocNode)(&node, graph, nullptr, 0, &wish), cudaSuccess);
    expect("where the node allocates", wish.dptr != nullptr, true);
    expect("cudaGraphMemAllocNodeGetParams", CALL(cudaGraphMemAllocNodeGetParams)(node, &got), cudaSuccess);
    expect("the node's GPU", got.poolProps.location.id, device);
    expect("the node's address", got.dptr == wish.dptr, true);
    expect("a node of no wish", CALL(cudaGraphAddMemAllocNode)(&node, graph, nullptr, 0, nullptr),
           cudaErrorInvalidValue);
    CALL(cudaGetLastError)();
    expect("cudaGraphDestroy", CALL(cudaGraphDestroy)(graph), cudaSuccess);
}

void peers(int from, int to) {
    int can = -1;
    expect("cudaDeviceCanAccessPeer", CALL(cudaDeviceCanAccessPeer)(&can, from, to), cudaSuccess);
    std::printf("peer %d %d %d\n", from, to, can);
    int supported = -1;
    expect("cudaDeviceGetP2PAttribute",
           CALL(cudaDeviceGetP2PAttribute)(&supported, cudaDevP2PAttrAccessSupported, from, to), cudaSuccess);
    expect("whether access is supported", supported, can);
    if (!can)
        return;
    CALL(cudaSetDevice)(from);
    expect("cudaDeviceEnablePeerAccess", CALL(cudaDeviceEnablePeerAccess)(to, 0), cudaSuccess);
    expect("once more", CALL(cudaDeviceEnablePeerAccess)(to, 0), cudaErrorPeerAccessAlreadyEnabled);
    expect("cudaDeviceDisablePeerAccess", CALL(cudaDeviceDisablePeerAccess)(to), cudaSuccess);
    expect("once more", CALL(cudaDeviceDisablePeerAccess)(to), cudaErrorPeerAccessNotEnabled);
    CALL(cudaGetLastError)();
}

}  // namespace

int main() {
#ifdef GUEST_OPENS_RUNTIME
    expect("what is not loaded yet", dlopen(std::getenv("CUDART"), RTLD_NOW | RTLD_NOLOAD) != nullptr, false);
    opened = dlopen(std::getenv("CUDART"), RTLD_NOW);
    expect("what is loaded", dlopen(std::getenv("CUDART"), RTLD_NOW | RTLD_NOLOAD) == opened, true);
    if (!opened)
        return std::printf("no runtime: %s\n", dlerror()), 1;
#endif
    int count = 0, current = -1;
    expect("cudaGetDeviceCount", CALL(cudaGetDeviceCount)(&count), cudaSuccess);
    std::printf("count %d\n", count);
    expect("cudaGetDevice", CALL(cudaGetDevice)(&current), cudaSuccess);
    expect("the GPU to begin with", current, 0);
    for (int i = 0; i < count; i++)
        look_at(i);
    for (int i = 0; i < count; i++)
        use(i);
    std::set<cudaMemPool_t> first;
    for (int i = 0; i < count; i++)
        first.insert(pools(i)), graphs(i);
    expect("the GPUs' first pools", static_cast<long>(first.size()), count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++)
            if (i != k)
                copy(i, k), peers(i, k);
    // Each thread has a GPU of its own.
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back([i] { use(i); });
    for (std::thread& thread : threads)
        thread.join();
    for (int i = 0; i < count; i++) {
        CALL(cudaSetDevice)(i);
        priorities(std::to_string(i).c_str());
    }
    std::thread([] { priorities("unset"); }).join();
    expect("a GPU that isn't there", CALL(cudaSetDevice)(count), cudaErrorInvalidDevice);
    expect("the last error", CALL(cudaGetLastError)(), cudaErrorInvalidDevice);
    // Memory on one GPU survives the reset of another.
    void* kept = nullptr;
    if (count > 1) {
        unsigned char sent[256], got[256] = {};
        for (int i = 0; i < 256; i++)
            sent[i] = static_cast<unsigned char>(i);
        CALL(cudaSetDevice)(1);
        expect("cudaMalloc", CALL(cudaMalloc)(&kept, sizeof sent), cudaSuccess);
        CALL(cudaMemcpy)(kept, sent, sizeof sent, cudaMemcpyHostToDevice);
        CALL(cudaSetDevice)(0);
        expect("cudaDeviceReset", CALL(cudaDeviceReset)(), cudaSuccess);
        CALL(cudaSetDevice)(1);
        expect("what was kept", CALL(cudaMemcpy)(got, kept, sizeof got, cudaMemcpyDeviceToHost), cudaSuccess);
        expect("its bytes", std::memcmp(sent, got, sizeof got), 0);
        for (int i = 0; i < count; i++) {
            CALL(cudaSetDevice)(i);
            expect("cudaDeviceReset", CALL(cudaDeviceReset)(), cudaSuccess);
        }
        for (int i = count; i-- > 0;)
            use(i);
    }
    // Another version beside this one, which has the same GPU current.
    if (const char* other = std::getenv("OTHER_CUDART")) {
        void* second = dlopen(other, RTLD_NOW);
        int gpus = -1, now = -1;
        if (second) {
            CALL(cudaSetDevice)(2);
            reinterpret_cast<cudaError_t (*)(int*)>(dlsym(second, "cudaGetDeviceCount"))(&gpus);
            reinterpret_cast<cudaError_t (*)(int*)>(dlsym(second, "cudaGetDevice"))(&now);
        }
        std::printf("other %d %d\n", gpus, now);
    }
    std::printf("wrong %d\n", wrong);
    return wrong != 0;
}
