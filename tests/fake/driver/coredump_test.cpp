// SPDX-License-Identifier: Apache-2.0
// Dumps of a GPU after an exception, of which there are none here.

#include <cstring>
#include <string>

#include "tests/catch.h"
#include "tests/fake/driver/gpu.h"

using namespace fake_test;

TEST_CASE("whether exceptions are dumped can be said and asked for all contexts") {
    CHECK(in_child(one_t4, [](const Report& report) {
              bool on = true;
              size_t size = 1;
              const auto which = CU_COREDUMP_ENABLE_ON_EXCEPTION;
              use_device(report);
              // H200, driver 580.159.04, 2026-11-27.
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
              EXPECT(!on);
              EXPECT_EQUAL(size, size_t{1});
              on = true;
              EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
              on = false;
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_SUCCESS);
              EXPECT(on);
              // As documented: without a value the size is told.
              size = 99;
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, nullptr, &size), CUDA_SUCCESS);
              EXPECT_EQUAL(size, size_t{1});
              size = 0;
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, &size), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, &on, &size), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, &on, nullptr), CUDA_ERROR_INVALID_VALUE);
              EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(CU_COREDUMP_MAX, &on, &size), CUDA_ERROR_INVALID_VALUE);
          }) == "");
}

TEST_CASE("where a dump goes is kept, and a context's own setting comes before that of all") {
    std::string said;
    CHECK(in_child(
              one_t4,
              [](const Report& report) {
                  char file[1024] = {}, name[] = "one", other[] = "other";
                  size_t size = sizeof file, given = 3;
                  const auto which = CU_COREDUMP_FILE;
                  use_device(report);
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, file, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(std::string(file).find("core.cuda."), size_t{0});
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, name, &given), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCoredumpGetAttribute(which, file, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(std::string(file), std::string("one"));
                  given = sizeof other;  // with the end mark
                  EXPECT_EQUAL(cuCoredumpSetAttribute(which, other, &given), CUDA_SUCCESS);
                  EXPECT_EQUAL(cuCoredumpGetAttribute(which, file, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(std::string(file), std::string("other"));
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, file, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(std::string(file), std::string("one"));
                  size = 3;  // no room for the end mark
                  EXPECT_EQUAL(cuCoredumpGetAttributeGlobal(which, file, &size), CUDA_ERROR_INVALID_VALUE);
                  char long_name[1024];
                  std::memset(long_name, 'x', sizeof long_name);
                  given = sizeof long_name;
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(which, long_name, &given), CUDA_ERROR_INVALID_VALUE);
                  int flags = CU_COREDUMP_SKIP_ABORT;
                  size = sizeof flags;
                  EXPECT_EQUAL(cuCoredumpSetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size), CUDA_SUCCESS);
                  flags = 0;
                  EXPECT_EQUAL(cuCoredumpGetAttribute(CU_COREDUMP_GENERATION_FLAGS, &flags, &size), CUDA_SUCCESS);
                  EXPECT_EQUAL(flags, int{CU_COREDUMP_SKIP_ABORT});
                  bool trigger = false;
                  size = 1;
                  EXPECT_EQUAL(cuCoredumpGetAttribute(CU_COREDUMP_TRIGGER_HOST, &trigger, &size), CUDA_SUCCESS);
                  EXPECT(trigger);
                  EXPECT_EQUAL(cuCoredumpSetAttributeGlobal(CU_COREDUMP_ENABLE_USER_TRIGGER, &trigger, &size),
                               CUDA_ERROR_NOT_SUPPORTED);
              },
              &said) == "");
    CHECK(said == "cuslice fake GPU: dumps that a user triggers is not supported\n");
}
