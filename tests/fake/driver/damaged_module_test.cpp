// SPDX-License-Identifier: Apache-2.0
// Modules out of images that are cut off or have a fault, as programs load them.

#include "tests/fake/driver/gpu.h"
#include "tests/fake/driver/guarded.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/made_up_fat_binary.h"

using namespace fake_test;

TEST_CASE("modules: a cubin that is cut off is refused as invalid, wherever its end is") {
    CHECK(in_child(one_t4, [](const Report& report) {
              use_device(report);
              Guarded memory;
              CUmodule module = nullptr;
              const std::string whole = Cubin(75, 7).bytes();
              for (size_t length = 1; length < whole.size(); ++length)
                  EXPECT_EQUAL(cuModuleLoadData(&module, memory.put(whole.substr(0, length))),
                               CUDA_ERROR_INVALID_IMAGE);
          }) == "");
}

TEST_CASE("modules: a fat binary whose text has a fault is refused where the GPU would take that text") {
    const std::string wrong = ".version 8.0\n.target sm_75\n.golbal .f32 x;\n.visible .entry from_ptx() { ret; }\n";
    const std::string both = container(entry(2, 86, 0x11, Cubin(86, 8).bytes()) + entry(1, 75, 0x11, wrong));
    CHECK(in_child(one_t4, [&](const Report& report) {
              use_device(report);
              CUmodule module = nullptr;
              CUlibrary library = nullptr;
              EXPECT_EQUAL(cuModuleLoadData(&module, both.data()), CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(module, static_cast<CUmodule>(nullptr));
              EXPECT_EQUAL(cuLibraryLoadData(&library, both.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
                           CUDA_SUCCESS);
              EXPECT_EQUAL(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_PTX);
              EXPECT_EQUAL(cuCtxSynchronize(), CUDA_SUCCESS);
          }) == "");
}
