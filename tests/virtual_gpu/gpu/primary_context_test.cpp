// SPDX-License-Identifier: Apache-2.0
// A GPU's primary context: whether it lives, and whether it is the one that was known.
#include "virtual_gpu/gpu/primary_context.h"

#include "tests/catch.h"
#include "tests/virtual_gpu/made_up_driver.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

unsigned long long number = 0;  // of every context
bool tells_numbers = true, active = false, answers = true;
int retains = 0;

struct Scene {
    Scene() {
        number = 7;
        tells_numbers = answers = true;
        active = false;
        retains = 0;
        driver.put(
            Function::cuCtxGetId, +[](CUcontext, unsigned long long* id) -> CUresult {
                *id = number;
                return tells_numbers ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
            });
        driver.put(
            Function::cuDevicePrimaryCtxGetState, +[](CUdevice gpu, unsigned*, int* is_active) -> CUresult {
                CHECK(gpu == 3);
                *is_active = active;
                return answers ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
            });
        driver.put(
            Function::cuDevicePrimaryCtxRetain, +[](CUcontext* into, CUdevice) -> CUresult {
                if (!tells_numbers)
                    return CUDA_ERROR_OUT_OF_MEMORY;
                retains++;
                *into = context(5);
                return CUDA_SUCCESS;
            });
        driver.put(
            Function::cuDevicePrimaryCtxRelease_v2, +[](CUdevice) -> CUresult {
                retains--;
                return CUDA_SUCCESS;
            });
    }
    MadeUpDriver driver;
};

}  // namespace

TEST_CASE("a primary context that came after the known one is another, though it has the same handle") {
    Scene scene;
    PrimaryContext primary;
    CHECK_FALSE(primary.is_another());  // none is known
    primary.is(context(5));
    CHECK(primary.handle.load() == context(5));
    CHECK_FALSE(primary.is_another());
    number = 8;
    CHECK(primary.is_another());
    primary.is(context(5));
    CHECK_FALSE(primary.is_another());
    // An old driver doesn't tell.
    tells_numbers = false;
    primary.is(context(5));
    CHECK(primary.id.load() == 0);
    tells_numbers = true;
    CHECK_FALSE(primary.is_another());
}

TEST_CASE("a primary context is looked at without keeping it, and not begun where it doesn't live") {
    Scene scene;
    CHECK_FALSE(primary_is_active(3));
    CHECK_FALSE(physical_primary_is_active(3));
    CHECK(active_primary(3) == nullptr);
    active = true;
    CHECK(primary_is_active(3));
    CHECK(physical_primary_is_active(3));
    CHECK(active_primary(3) == context(5));
    CHECK(retains == 0);
    tells_numbers = false;
    CHECK(active_primary(3) == nullptr);
    CHECK(retains == 0);
    answers = false;
    CHECK_FALSE(primary_is_active(3));
    CHECK_FALSE(physical_primary_is_active(3));
}
