// SPDX-License-Identifier: Apache-2.0
// Allocations and frees on whatever a program finds as libcuda.so.1: the driver, cuslice, or another library that is
// preloaded. For tests/bench/peers.py.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/bench/timing.h"
#include "virtual_gpu/driver/cuda_api.h"

using namespace cuslice::bench;

namespace {

template <typename Pointer>
Pointer find(void* library, const char* symbol) {
    void* const found = dlsym(library, symbol);
    if (!found)
        std::fprintf(stderr, "bench: %s is not there\n", symbol), std::exit(1);
    return reinterpret_cast<Pointer>(found);
}

void must(CUresult result, const char* what) {
    if (result != CUDA_SUCCESS)
        std::fprintf(stderr, "bench: %s: error %d\n", what, result), std::exit(1);
}

struct Found {
    explicit Found(void* library)
        : init(find<decltype(init)>(library, "cuInit")),
          retain(find<decltype(retain)>(library, "cuDevicePrimaryCtxRetain")),
          set_current(find<decltype(set_current)>(library, "cuCtxSetCurrent")),
          allocate(find<decltype(allocate)>(library, "cuMemAlloc_v2")),
          free(find<decltype(free)>(library, "cuMemFree_v2")) {}
    decltype(&cuInit) init;
    decltype(&cuDevicePrimaryCtxRetain) retain;
    decltype(&cuCtxSetCurrent) set_current;
    decltype(&cuMemAlloc_v2) allocate;
    decltype(&cuMemFree_v2) free;
};

void do_pairs(const Found& driver, size_t bytes, uint64_t pairs) {
    for (uint64_t i = 0; i < pairs; i++) {
        CUdeviceptr block = 0;
        must(driver.allocate(&block, bytes), "cuMemAlloc");
        must(driver.free(block), "cuMemFree");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 5) {
        std::fprintf(stderr, "usage: %s BYTES LIVE PAIRS LIMIT (0: none)\n", arguments[0]);
        return 64;
    }
    const size_t bytes = std::strtoull(arguments[1], nullptr, 10);
    const uint64_t live = std::strtoull(arguments[2], nullptr, 10), pairs = std::strtoull(arguments[3], nullptr, 10);
    const size_t limit = std::strtoull(arguments[4], nullptr, 10);
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return std::fprintf(stderr, "bench: %s\n", dlerror()), 1;
    const Found driver(library);
    CUcontext context = nullptr;
    must(driver.init(0), "cuInit");
    must(driver.retain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(driver.set_current(context), "cuCtxSetCurrent");
    CUdeviceptr block = 0;
    if (limit != 0 && driver.allocate(&block, limit) == CUDA_SUCCESS)
        return std::fputs("bench: the limit is not in force\n", stderr), 3;
    for (uint64_t i = 0; i < live; i++)
        must(driver.allocate(&block, bytes), "cuMemAlloc");
    if (!pin(0))
        return 1;
    do_pairs(driver, bytes, pairs < 1000 ? pairs : 1000);
    const int64_t start = now_ns();
    do_pairs(driver, bytes, pairs);
    std::printf("%.2f\n", static_cast<double>(now_ns() - start) / static_cast<double>(pairs));
    std::fflush(stdout);
    std::_Exit(0);  // others' libraries may have threads that don't end
}
