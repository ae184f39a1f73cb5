// SPDX-License-Identifier: Apache-2.0
// Look-ups in a driver that is newer than this version of cuslice: it has a form of every function that nobody here
// knows.
#include <set>
#include <string>

#include "shim/driver/hook_map.h"
#include "tests/catch.h"
#include "tests/shim/within.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

const int unknown_form = 0;

CUresult CUDAAPI find_unknown(const char*, void** pfn, int, cuuint64_t) {
    *pfn = const_cast<int*>(&unknown_form);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI find_unknown_v2(const char*, void** pfn, int, cuuint64_t, CUdriverProcAddressQueryResult* status) {
    *pfn = const_cast<int*>(&unknown_form);
    if (status)
        *status = CU_GET_PROC_ADDRESS_SUCCESS;
    return CUDA_SUCCESS;
}

/// While it lives, the driver answers every look-up with a function that the table of functions doesn't have.
struct NewerDriver {
    Instead first{Function::cuGetProcAddress, find_unknown}, second{Function::cuGetProcAddress_v2, find_unknown_v2};
};

/// A first look-up, which shows what kind of driver it is before it becomes a newer one.
void look_up_something() {
    void* found = nullptr;
    REQUIRE(cuGetProcAddress_v2("cuInit", &found, 12000, 0, nullptr) == CUDA_SUCCESS);
    REQUIRE(found != nullptr);
}

/// Names of functions that have a hook, or, if `hooked` is false, of those that have none.
std::set<std::string> names_of(bool hooked) {
    std::set<std::string> names;
    for (const FunctionRow& row : kFunctionRows)
        if ((HookMap::hooked_name(std::string(row.name).c_str()) >= 0) == hooked)
            names.emplace(row.name);
    return names;
}

}  // namespace

TEST_CASE("an unknown form of any function that has a hook is refused, and each name is reported once") {
    const Within within;
    if (!within)
        return;
    look_up_something();
    const NewerDriver newer;
    Within::said();
    const auto names = names_of(true);
    REQUIRE(names.size() > 60);
    for (const std::string& name : names) {
        CAPTURE(name);
        int before = 0;
        void* found = &before;
        CHECK(cuGetProcAddress(name.c_str(), &found, 99000, 0) == CUDA_ERROR_NOT_FOUND);
        CHECK(found == &before);
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
        CHECK(cuGetProcAddress_v2(name.c_str(), &found, 99000, 0, &status) == CUDA_SUCCESS);
        CHECK(found == nullptr);
        CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
        found = &before;
        CHECK(cuGetProcAddress_v2(name.c_str(), &found, 99000, 0, nullptr) == CUDA_SUCCESS);
        CHECK(found == nullptr);
        const auto said = Within::said();
        REQUIRE(said.size() == 1);
        CHECK(said[0].starts_with("the driver has a form of " + name + " for CUDA version 99000 "));
    }
}

TEST_CASE("an unknown form of a function that has no hook is the program's, as is a function that nobody knows") {
    const Within within;
    if (!within)
        return;
    look_up_something();
    const NewerDriver newer;
    Within::said();
    auto names = names_of(false);
    REQUIRE(names.size() > 100);
    names.insert("cuOfTheFuture");
    for (const std::string& name : names) {
        CAPTURE(name);
        void* found = nullptr;
        CHECK(cuGetProcAddress(name.c_str(), &found, 99000, 0) == CUDA_SUCCESS);
        CHECK(found == &unknown_form);
        CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        found = nullptr;
        CHECK(cuGetProcAddress_v2(name.c_str(), &found, 99000, 0, &status) == CUDA_SUCCESS);
        CHECK(found == &unknown_form);
        CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
    }
    CHECK(Within::said().empty());
}
