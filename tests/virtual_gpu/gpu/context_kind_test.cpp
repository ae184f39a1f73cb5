// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/context_kind.h"

#include "tests/catch.h"

namespace cuslice::tests {
namespace {

constexpr unsigned kScheduleSpin = 1;
constexpr int kCuda12 = 12080, kCuda13 = 13000;

template <typename... Lines>
uint64_t kind_with(Lines... lines) {
    const char* const environment[] = {"HOME=/root", lines..., nullptr};
    return context_kind(environment);
}

}  // namespace

TEST_CASE("variables that may change what a context takes make another kind, in whatever order") {
    const uint64_t plain = kind_with();
    CHECK(plain != 0);
    CHECK(kind_with("CUDA_MODULE_LOADING=EAGER") != plain);
    CHECK(kind_with("CUDA_MODULE_LOADING=EAGER") != kind_with("CUDA_MODULE_LOADING=LAZY"));
    CHECK(kind_with("CUDA_A=1", "CUDA_B=2") == kind_with("CUDA_B=2", "CUDA_A=1"));
    CHECK(kind_with("CUDA_A=1", "CUDA_B=2") != kind_with("CUDA_A=2", "CUDA_B=1"));
    CHECK(kind_with("CUDBG_USE_LEGACY_DEBUGGER=1") != plain);
}

TEST_CASE("variables that say which GPU, and where the cache is, make no other kind of context") {
    for (const char* line :
         {"CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_CACHE_PATH=/tmp", "PATH=/bin"})
        CHECK(kind_with(line) == kind_with());
}

TEST_CASE("flags and the driver's version make another kind of context") {
    const uint64_t process = kind_with(), plain = context_kind(process, 0, kCuda13);
    CHECK(plain != 0);
    CHECK(context_kind(process, kScheduleSpin, kCuda13) != plain);
    CHECK(context_kind(process, 0, kCuda12) != plain);
    CHECK(context_kind(process, 0, kCuda13) == plain);
}

}  // namespace cuslice::tests
