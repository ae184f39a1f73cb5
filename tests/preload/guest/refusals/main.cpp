// SPDX-License-Identifier: Apache-2.0
// Calls that are to be refused, one for each line that it reads, which names it. What it says of each: the result, and
// whether everything is as it was before. "unnoted NAME": one that fits, and that there is no host memory to note.
//
//     guest_refusals stacked|bare SMALL
//
// SMALL is the GPU that no context fits on. `stacked`: two contexts of GPU 0 are on the thread's stack; `bare`: none.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/preload/guest/refusals/host_memory.h"
#include "virtual_gpu/driver/cuda_api.h"

namespace {

// The GPU would have room for it.
constexpr size_t kTooMuch = size_t{1} << 30;
CUdevice small_gpu = 1;
CUmemoryPool pool = nullptr;

struct Outcome {
    CUresult result;
    bool out_kept;
};

// `call` is given where the driver puts what it makes.
template <typename Out, typename Call>
Outcome refused(Call call) {
    unsigned char untouched[sizeof(Out)];
    std::memset(untouched, 0x5a, sizeof untouched);
    Out out;
    std::memcpy(&out, untouched, sizeof out);
    const CUresult result = call(&out);
    return {result, std::memcmp(&out, untouched, sizeof out) == 0};
}

// Repeats a call until it is refused: one that succeeds has found room in host memory that was there already.
template <typename Out, typename Call, typename Free>
Outcome unnoted(Call call, Free free) {
    constexpr int kMost = 20'000;
    std::vector<Out> made;
    made.reserve(kMost);
    Outcome outcome{};
    while (outcome.result == CUDA_SUCCESS && made.size() < kMost) {
        const refusals::NoHostMemory none;
        outcome = refused<Out>([&](Out* out) {
            const CUresult result = call(out);
            if (result == CUDA_SUCCESS)
                made.push_back(*out);
            return result;
        });
    }
    for (const Out& one : made)
        free(one);
    return outcome;
}

std::string module_text() {
    return ".version 7.0\n.target sm_50\n.address_size 64\n.visible .global .align 8 .b8 data[" +
           std::to_string(kTooMuch) + "];\n";
}

CUresult make_green(CUgreenCtx* green) {
    CUdevResource all{};
    CUdevResourceDesc resources = nullptr;
    CUresult result = cuDeviceGetDevResource(small_gpu, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (result == CUDA_SUCCESS)
        result = cuDevResourceGenerateDesc(&resources, &all, 1);
    return result == CUDA_SUCCESS ? cuGreenCtxCreate(green, resources, small_gpu, CU_GREEN_CTX_DEFAULT_STREAM) : result;
}

template <typename Descriptor>
Descriptor huge_array() {
    Descriptor descriptor{};
    descriptor.Width = 8192;
    descriptor.Height = 8192;
    descriptor.Format = CU_AD_FORMAT_FLOAT;
    descriptor.NumChannels = 4;
    return descriptor;
}

const std::map<std::string, std::function<Outcome()>>& rows() {
    static const std::string text = module_text();
    static const auto flat = huge_array<CUDA_ARRAY_DESCRIPTOR>();
    static const auto deep = huge_array<CUDA_ARRAY3D_DESCRIPTOR>();
    static CUmemAllocationProp piece{};
    piece.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    piece.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    static const std::map<std::string, std::function<Outcome()>> all = {
        {"cuCtxCreate", [] { return refused<CUcontext>([](auto* out) { return cuCtxCreate(out, 0, small_gpu); }); }},
        {"cuCtxCreate_v2",
         [] { return refused<CUcontext>([](auto* out) { return cuCtxCreate_v2(out, 0, small_gpu); }); }},
        {"cuCtxCreate_v3",
         [] { return refused<CUcontext>([](auto* out) { return cuCtxCreate_v3(out, nullptr, 0, 0, small_gpu); }); }},
        {"cuCtxCreate_v4",
         [] { return refused<CUcontext>([](auto* out) { return cuCtxCreate_v4(out, nullptr, 0, small_gpu); }); }},
        {"cuDevicePrimaryCtxRetain",
         [] { return refused<CUcontext>([](auto* out) { return cuDevicePrimaryCtxRetain(out, small_gpu); }); }},
        {"cuGreenCtxCreate", [] { return refused<CUgreenCtx>(make_green); }},
        {"cuMemAlloc", [] { return refused<unsigned>([](auto* out) { return cuMemAlloc(out, kTooMuch); }); }},
        {"cuMemAlloc_v2", [] { return refused<CUdeviceptr>([](auto* out) { return cuMemAlloc_v2(out, kTooMuch); }); }},
        {"cuMemAllocPitch_v2",
         [] {
             size_t pitch = 77;
             Outcome outcome = refused<CUdeviceptr>(
                 [&](auto* out) { return cuMemAllocPitch_v2(out, &pitch, 1 << 20, kTooMuch >> 20, 4); });
             outcome.out_kept = outcome.out_kept && pitch == 77;
             return outcome;
         }},
        {"cuMemAllocManaged",
         [] {
             return refused<CUdeviceptr>(
                 [](auto* out) { return cuMemAllocManaged(out, kTooMuch, CU_MEM_ATTACH_GLOBAL); });
         }},
        {"cuMemAllocAsync",
         [] { return refused<CUdeviceptr>([](auto* out) { return cuMemAllocAsync(out, kTooMuch, nullptr); }); }},
        {"cuMemAllocFromPoolAsync",
         [] {
             return refused<CUdeviceptr>(
                 [](auto* out) { return cuMemAllocFromPoolAsync(out, kTooMuch, pool, nullptr); });
         }},
        {"cuMemCreate",
         [] {
             return refused<CUmemGenericAllocationHandle>(
                 [](auto* out) { return cuMemCreate(out, kTooMuch, &piece, 0); });
         }},
        {"cuArrayCreate_v2", [] { return refused<CUarray>([](auto* out) { return cuArrayCreate_v2(out, &flat); }); }},
        {"cuArray3DCreate_v2",
         [] { return refused<CUarray>([](auto* out) { return cuArray3DCreate_v2(out, &deep); }); }},
        {"cuMipmappedArrayCreate",
         [] { return refused<CUmipmappedArray>([](auto* out) { return cuMipmappedArrayCreate(out, &deep, 1); }); }},
        {"cuModuleLoadData",
         [] { return refused<CUmodule>([](auto* out) { return cuModuleLoadData(out, text.c_str()); }); }},
        {"cuModuleLoadDataEx",
         [] {
             return refused<CUmodule>(
                 [](auto* out) { return cuModuleLoadDataEx(out, text.c_str(), 0, nullptr, nullptr); });
         }},
    };
    return all;
}

constexpr size_t kLittle = 1 << 16;

struct Pitched {
    CUdeviceptr address;
    size_t pitch;
};

const std::map<std::string, std::function<Outcome()>>& unnoted_rows() {
    static CUmemAllocationProp piece{};
    piece.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    piece.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    static const std::map<std::string, std::function<Outcome()>> all = {
        {"cuMemAlloc_v2",
         [] { return unnoted<CUdeviceptr>([](auto* out) { return cuMemAlloc_v2(out, kLittle); }, cuMemFree_v2); }},
        {"cuMemAllocPitch_v2",
         [] {
             return unnoted<Pitched>(
                 [](auto* out) { return cuMemAllocPitch_v2(&out->address, &out->pitch, 1000, 64, 4); },
                 [](const Pitched& made) { return cuMemFree_v2(made.address); });
         }},
        {"cuMemCreate",
         [] {
             return unnoted<CUmemGenericAllocationHandle>(
                 [](auto* out) { return cuMemCreate(out, size_t{2} << 20, &piece, 0); }, cuMemRelease);
         }},
    };
    return all;
}

std::vector<CUcontext> stack() {
    std::vector<CUcontext> found;
    for (CUcontext top = nullptr; cuCtxGetCurrent(&top) == CUDA_SUCCESS && top;) {
        found.push_back(top);
        if (cuCtxPopCurrent_v2(&top) != CUDA_SUCCESS)
            break;
    }
    for (size_t i = found.size(); i-- > 0;)
        cuCtxPushCurrent_v2(found[i]);
    return found;
}

struct State {
    CUcontext current = nullptr;
    std::vector<CUcontext> all;
    CUdevice device = -1;
    size_t free = 0, total = 0;
    unsigned flags = 0;
    int active = 0;

    State() {
        cuCtxGetCurrent(&current);
        cuCtxGetDevice(&device);
        cuMemGetInfo_v2(&free, &total);
        cuDevicePrimaryCtxGetState(small_gpu, &flags, &active);
        all = stack();
    }
};

void answer(const std::string& name) {
    const State before;
    const std::string unnoted = "unnoted ";
    const Outcome outcome =
        name.rfind(unnoted, 0) == 0 ? unnoted_rows().at(name.substr(unnoted.size()))() : rows().at(name)();
    const State after;
    std::string line = std::to_string(static_cast<int>(outcome.result));
    if (!outcome.out_kept)
        line += " out";
    if (after.current != before.current)
        line += " current";
    if (after.device != before.device)
        line += " device";
    if (after.all != before.all)
        line += " stack";
    if (after.free != before.free || after.total != before.total)
        line += " free";
    if (after.active != before.active)
        line += " primary";
    CUdeviceptr block = 0;
    if (before.current && cuMemAlloc_v2(&block, 1 << 20) != CUDA_SUCCESS)
        line += " works";
    if (block && cuMemFree_v2(block) != CUDA_SUCCESS)
        line += " frees";
    std::printf("%s\n", line.c_str());
}

}  // namespace

int main(int count, char** words) {
    if (count != 3 || cuInit(0) != CUDA_SUCCESS)
        return 3;
    small_gpu = std::stoi(words[2]);
    if (std::strcmp(words[1], "stacked") == 0) {
        CUcontext own = nullptr, primary = nullptr;
        if (cuCtxCreate_v2(&own, 0, 0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&primary, 0) != CUDA_SUCCESS)
            return 4;
        cuCtxPushCurrent_v2(primary);
        cuDeviceGetDefaultMemPool(&pool, 0);
        // The first allocation in a context makes the driver set up things of its own: do that before anything is
        // compared.
        CUdeviceptr block = 0;
        if (cuMemAlloc_v2(&block, 1 << 20) != CUDA_SUCCESS || cuMemFree_v2(block) != CUDA_SUCCESS)
            return 5;
    }
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "pid")
            std::printf("%d\n", static_cast<int>(getpid()));
        else
            answer(line);
        std::fflush(stdout);
    }
    return 0;
}
