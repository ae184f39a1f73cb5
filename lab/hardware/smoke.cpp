// SPDX-License-Identifier: Apache-2.0
// The first look at a machine: a line as each stage is over, so that the last one says where a program that hangs got
// to. Then NVML's figure for this process, and under cuslice how far its own count is from that.
//
//   smoke [stages]    the stages alone, since nothing is counted where nothing is limited
#include <time.h>

#include "lab/hardware/rows.h"

using namespace cuslice::check;

namespace {

void stage(const std::string& what) {
    static timespec before{};
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (before.tv_sec == 0)
        before = now;
    const double took =
        static_cast<double>(now.tv_sec - before.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec - before.tv_nsec);
    before = now;
    std::printf("- %s (%s)\n", what.c_str(), duration(took).c_str());
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char**) {
    stage("started");
    const auto status = management_status();
    stage("nvmlInit: " + (status ? std::to_string(*status) : std::string("no libnvidia-ml.so.1")));
    Gpu gpu = find_gpu();
    stage(std::string("cuInit: ") + gpu.name);
    open_context(gpu);
    stage("the primary context");
    CUdeviceptr block = 0;
    MUST(cuMemAlloc_v2, &block, 64 << 20);
    stage("cuMemAlloc of 64 MiB");
    unsigned word = 0;
    MUST(cuMemsetD32_v2, block, 0x5eed, 16 << 20);
    MUST(cuMemcpyDtoH_v2, &word, block + (63 << 20), sizeof word);
    stage(std::string("cuMemsetD32, and a copy back that is ") + (word == 0x5eed ? "right" : "**wrong**"));
    if (argc == 1) {
        std::printf("\n");
        Rows(gpu).row("now");
    }
    return word == 0x5eed ? 0 : 1;
}
