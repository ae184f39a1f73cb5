// SPDX-License-Identifier: Apache-2.0
// Functions that can't be called: the driver lacks them, or they know no parts of a GPU.
#include "shim/driver/hook_map.h"
#include "tests/catch.h"
#include "tests/shim/within.h"
#include "virtual_gpu/driver/table.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

unsigned count(const std::vector<std::string>& lines, const std::string& words) {
    unsigned found = 0;
    for (const std::string& line : lines)
        found += line.find(words) != std::string::npos;
    return found;
}

}  // namespace

TEST_CASE("a function that the driver lacks is refused, and named once") {
    const Within within({}, "[driver]\nversion = \"535.183.06\"\n[[gpu]]\nprofile = \"t4\"\n");
    if (!within)
        return;
    // It is of CUDA 12.9, and the driver of 12.2.
    REQUIRE(driver_slot(Function::cuLogsCurrent) == nullptr);
    for (int i = 0; i < 3; i++)
        CHECK(cuLogsCurrent(nullptr, 0) == CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER);
    const std::vector<std::string> said = Within::said();
    CHECK(count(said, "cuLogsCurrent was called, but the driver") == 1);
    CHECK(count(said, "was called, but") == 1);
}

TEST_CASE("a function that knows no parts of a GPU is refused where one is split, and each named once") {
    const Within within({{"CUSLICE_SPLIT", "0=2"}, {"CUSLICE_LIMIT", ""}}, "1xt4");
    if (!within)
        return;
    CUdevice device = 0;
    CUuuid uuid{};
    const auto restore = reinterpret_cast<CUresult (*)(int, void*)>(&::cuCheckpointProcessRestore);
    for (int i = 0; i < 3; i++) {
        CHECK(restore(0, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
        CHECK(cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS);
    }
    std::vector<std::string> said = Within::said();
    CHECK(count(said, "cuCheckpointProcessRestore is not supported where a GPU is split") == 1);
    CHECK(count(said, "is not supported") == 1);
}
