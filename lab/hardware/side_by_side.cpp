// SPDX-License-Identifier: Apache-2.0
// Two contexts on one GPU, and two kernels at a time. Two kernels meet if each sees, within a second, that the other
// has begun: no clock decides, only whether both were running. One row of Markdown a question.
#include "lab/hardware/driver.h"
#include "lab/hardware/text.h"

using namespace cuslice::check;

namespace {

void row(const std::string& question, const std::string& answer) {
    std::printf("| %s | %s |\n", question.c_str(), answer.c_str());
    std::fflush(stdout);
}

CUcontext another_context(CUdevice device) {
    CUcontext context = nullptr;
    if (find("cuCtxCreate_v4"))
        MUST(cuCtxCreate_v4, &context, nullptr, 0, device);
    else
        MUST(cuCtxCreate_v2, &context, 0, device);
    return context;
}

/// Flags that kernels of every context see: portable host memory.
struct Flags {
    unsigned* host = nullptr;
    CUdeviceptr device = 0;
    Flags() {
        void* memory = nullptr;
        MUST(cuMemHostAlloc, &memory, 4 * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
        MUST(cuMemHostGetDevicePointer_v2, &device, memory, 0);
        host = static_cast<unsigned*>(memory);
        for (int i = 0; i < 4; i++)
            host[i] = 0;
    }
};

struct Place {
    CUcontext context;
    CUstream stream;
    CUfunction meet;
};

Place place(CUcontext context) {
    Place made{context, nullptr, nullptr};
    MUST(cuCtxSetCurrent, context);
    MUST(cuStreamCreate, &made.stream, CU_STREAM_NON_BLOCKING);
    made.meet = kernel(load_kernels("kernels.ptx"), "meet");
    return made;
}

std::string do_they_meet(const Place& a, const Place& b) {
    if (kernels_are_skipped())
        return "not asked: no kernel is run here";
    const Flags flags;
    const Place* both[] = {&a, &b};
    uint64_t most = 1'000'000'000;
    // Once before, so that neither is loaded while the other waits for it already.
    for (int round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 2; i++) {
            CUdeviceptr mine = flags.device + 4 * i, other = flags.device + 4 * (1 - i),
                        result = flags.device + 8 + 4 * i;
            if (round == 0)
                other = mine;
            void* arguments[] = {&mine, &other, &result, &most};
            MUST(cuCtxSetCurrent, both[i]->context);
            MUST(cuLaunchKernel, both[i]->meet, 1, 1, 1, 1, 1, 1, 0, both[i]->stream, arguments, nullptr);
        }
        for (const Place* one : both) {
            MUST(cuCtxSetCurrent, one->context);
            MUST(cuCtxSynchronize);
        }
        if (round == 0)
            flags.host[0] = flags.host[1] = flags.host[2] = flags.host[3] = 0;
    }
    const bool first = flags.host[2] == 1, second = flags.host[3] == 1;
    return first && second   ? "yes: both saw the other running"
           : first || second ? "no: one had ended before the other began"
                             : "no answer from either";
}

void ask_peers(const Gpu& gpu, CUcontext second) {
    int can = -1;
    const CUresult asked = CU(cuDeviceCanAccessPeer)(&can, gpu.device, gpu.device);
    row("cuDeviceCanAccessPeer of a GPU to itself", std::string(name_of(asked)) + ", " + std::to_string(can));
    MUST(cuCtxSetCurrent, gpu.context);
    row("cuCtxEnablePeerAccess of a second context on the same GPU", name_of(CU(cuCtxEnablePeerAccess)(second, 0)));

    CUdeviceptr here = 0, there = 0;
    unsigned value = 0;
    MUST(cuMemAlloc_v2, &here, 4096);
    MUST(cuMemsetD32_v2, here, 0x5eed, 1024);
    MUST(cuCtxSynchronize);
    MUST(cuCtxSetCurrent, second);
    MUST(cuMemAlloc_v2, &there, 4096);
    CUresult copied = CU(cuMemcpyPeer)(there, second, here, gpu.context, 4096);
    if (copied == CUDA_SUCCESS)
        copied = CU(cuMemcpyDtoH_v2)(&value, there, 4);
    row("cuMemcpyPeer between the two",
        std::string(name_of(copied)) + (value == 0x5eed ? ", the bytes are right" : ""));
    value = 0;
    const CUresult direct = CU(cuMemcpyDtoH_v2)(&value, here, 4);
    row("cuMemcpyDtoH of the first one's memory with the second current",
        std::string(name_of(direct)) + (value == 0x5eed ? ", the bytes are right" : ""));
    MUST(cuMemFree_v2, there);
    const CUresult freed = CU(cuMemFree_v2)(here);
    row("cuMemFree of the first one's memory with the second current", name_of(freed));
}

}  // namespace

int main() {
    Gpu gpu = find_gpu();
    open_context(gpu);
    std::printf("| question | answer |\n|---|---|\n");
    const Place a = place(gpu.context), b = place(gpu.context);
    row("do kernels on two streams of one context run side by side", do_they_meet(a, b));
    const CUcontext second = another_context(gpu.device);
    row("do kernels of two contexts of one process (taking turns counts, too)", do_they_meet(a, place(second)));
    ask_peers(gpu, second);
}
