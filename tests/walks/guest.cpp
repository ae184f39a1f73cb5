// SPDX-License-Identifier: Apache-2.0
// A program that allocates, and has one of its allocations walked.
//
//   walk_guest WORD…     a number: allocates so many bytes; "free": frees the last; the last word's is walked
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void check(CUresult result, const char* what) {
    if (result == CUDA_SUCCESS)
        return;
    std::fprintf(stderr, "walk_guest: %s answers %d\n", what, result);
    std::exit(1);
}

template <typename Function>
Function* found(const char* name) {
    void* const symbol = dlsym(RTLD_DEFAULT, name);
    if (!symbol) {
        std::fprintf(stderr, "walk_guest: the library that is preloaded has no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Function*>(symbol);
}

}  // namespace

int main(int count, char** words) {
    const auto begin = found<void()>("walk_begin");
    const auto end = found<bool()>("walk_end");
    CUdevice device = 0;
    CUcontext context = nullptr;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    std::vector<CUdeviceptr> held;
    for (int i = 1; i < count; i++) {
        if (!std::strcmp(words[i], "free")) {
            check(cuMemFree(held.back()), "cuMemFree");
            held.pop_back();
            continue;
        }
        const size_t bytes = std::strtoull(words[i], nullptr, 10);
        CUdeviceptr address = 0;
        const bool walked = i == count - 1;
        if (walked)
            begin();
        const CUresult result = cuMemAlloc(&address, bytes);
        if (walked && !end())
            check(CUDA_ERROR_UNKNOWN, "walk_end");
        check(result, "cuMemAlloc");
        held.push_back(address);
    }
    return 0;
}
