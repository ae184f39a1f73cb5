// SPDX-License-Identifier: Apache-2.0
// Modules out of images that are cut off, as programs load them.

#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/guarded.h"
#include "tests/fake/driver/made_up_cubin.h"

using namespace fake_test;

TEST_CASE("modules: a cubin that is cut off is refused as invalid, wherever its end is") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Guarded memory;
              CUmodule module = nullptr;
              const std::string whole = Cubin(75, 7).bytes();
              for (std::size_t length = 1; length < whole.size(); ++length)
                  EXPECT_EQUAL(cuModuleLoadData(&module, memory.put(whole.substr(0, length))),
                               CUDA_ERROR_INVALID_IMAGE);
          }) == "");
}
