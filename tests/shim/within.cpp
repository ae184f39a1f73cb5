#include "tests/shim/within.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cuslice::tests {

namespace {

struct Folder {
    Folder() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string path;
};

}  // namespace

Within::Within() {
    static const Folder folder;
    if (process().readiness() == Readiness::ready) return;
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"CUSLICE_FAKE", "8xt4"},
                                      {"CUSLICE_FAKE_DIR", folder.path},
                                      {"CUSLICE_LIMIT", "1GiB"},
                                      {"CUSLICE_ALLOCATOR", "growth"},
                                      {"CUSLICE_RECORD", folder.path + "/rows.csv"}})
        setenv(name, value.c_str(), 1);
    REQUIRE(cuInit(0) == CUDA_SUCCESS);
    REQUIRE(process().gpu_count() == 8);
}

CUcontext Within::use(CUdevice device) {
    CUcontext context = nullptr;
    REQUIRE(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    return context;
}

CUdeviceptr Within::allocate(std::size_t bytes) {
    CUdeviceptr address = 0;
    REQUIRE(cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS);
    return address;
}

}  // namespace cuslice::tests
