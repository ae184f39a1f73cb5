// SPDX-License-Identifier: Apache-2.0
// Measures what NVIDIA's libraries take on the GPU by themselves, and whether cuslice counts it: NVML's figure for
// this process before and after each step. The libraries are opened as they are found; no header of theirs is needed.
//
//   libraries cublas|cudnn|nccl FILE
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "lab/hardware/driver.h"
#include "lab/hardware/rows.h"

using namespace cuslice::check;

namespace {

class Library {
  public:
    Library(const std::string& name, const char* file) : name_(name), handle_(dlopen(file, RTLD_NOW)) {
        if (handle_)
            return;
        std::fprintf(stderr, "%s: %s\n", name.c_str(), dlerror());
        std::exit(77);
    }
    template <typename... Arguments>
    void call(const char* function, Arguments... arguments) const {
        auto* address = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, function));
        if (!address)
            std::fprintf(stderr, "%s has no %s\n", name_.c_str(), function), std::exit(1);
        if (const int status = address(arguments...)) {
            std::fprintf(stderr, "%s: status %d\n", function, status);
            std::exit(1);
        }
    }

  private:
    std::string name_;
    void* handle_;
};

/// A product of two matrices of ones: each element of the result is the side's length.
void use_cublas(const Library& cublas, Rows& steps) {
    constexpr int kSide = 1024;
    void* handle = nullptr;
    cublas.call("cublasCreate_v2", &handle);
    steps.row("cublasCreate");
    std::vector<float> ones(kSide * kSide, 1.0f), back(kSide * kSide);
    const size_t bytes = ones.size() * sizeof(float);
    CUdeviceptr matrices[3] = {};
    for (CUdeviceptr& matrix : matrices) {
        MUST(cuMemAlloc_v2, &matrix, bytes);
        MUST(cuMemcpyHtoD_v2, matrix, ones.data(), bytes);
    }
    steps.row("three matrices of 4 MiB");
    const float one = 1, zero = 0;
    cublas.call("cublasSgemm_v2", handle, 0, 0, kSide, kSide, kSide, &one, reinterpret_cast<const float*>(matrices[0]),
                kSide, reinterpret_cast<const float*>(matrices[1]), kSide, &zero, reinterpret_cast<float*>(matrices[2]),
                kSide);
    MUST(cuCtxSynchronize);
    MUST(cuMemcpyDtoH_v2, back.data(), matrices[2], bytes);
    bool right = true;
    for (const float element : back)
        right = right && element == kSide;
    steps.row(std::string("cublasSgemm, the result is ") + (right ? "right" : "**wrong**"));
    if (!right)
        std::exit(1);
}

void use_cudnn(const Library& cudnn, Rows& steps) {
    void* handle = nullptr;
    cudnn.call("cudnnCreate", &handle);
    steps.row("cudnnCreate");
}

void use_nccl(const Library& nccl, Rows& steps) {
    void* communicator = nullptr;
    const int device = 0;
    nccl.call("ncclCommInitAll", &communicator, 1, &device);
    steps.row("ncclCommInitAll of one rank");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3)
        return std::fprintf(stderr, "libraries cublas|cudnn|nccl FILE\n"), 64;
    const std::string name = argv[1];
    Gpu gpu = find_gpu();
    open_context(gpu);
    Rows steps(gpu);
    steps.row("the context alone");
    const Library library(name, argv[2]);
    steps.row("loaded");
    if (name == "cublas")
        use_cublas(library, steps);
    if (name == "cudnn")
        use_cudnn(library, steps);
    if (name == "nccl")
        use_nccl(library, steps);
}
