// SPDX-License-Identifier: Apache-2.0
// The text that stands for a program's device code.

#include "fake/runtime/ptx.h"

#include <cstdlib>
#include <string>

#include "tests/catch.h"

using namespace cuslice::fake;

TEST_CASE("PTX has every registered name once and nothing that could run") {
    RegisteredKernel again{nullptr, nullptr, nullptr, "_Z4bumpv"};
    RegisteredKernel fill{&again, nullptr, nullptr, "_Z4fillPii"};
    RegisteredKernel bump{&fill, nullptr, nullptr, "_Z4bumpv"};
    void* shadow = nullptr;
    RegisteredVariable managed{nullptr, nullptr, nullptr, "managed", 4, &shadow, 0, nullptr};
    RegisteredVariable table{&managed, nullptr, nullptr, "table", 1000, nullptr, 0, nullptr};
    Binary binary{nullptr, nullptr, &bump, &table, nullptr};
    char* const made = synthesize_ptx(binary, 75);
    REQUIRE(made != nullptr);
    const std::string text = made;
    std::free(made);
    CHECK(text ==
          ".version 8.8\n.target sm_75\n.address_size 64\n"
          ".visible .entry _Z4bumpv\n{\n\ttrap;\n}\n"
          ".visible .entry _Z4fillPii\n{\n\ttrap;\n}\n"
          ".visible .global .align 8 .b8 table[1000];\n");
}
