// SPDX-License-Identifier: Apache-2.0
// Lists of a program's, as the driver is to be told them.
#include "virtual_gpu/split/access.h"

#include <vector>

#include "tests/catch.h"
#include "tests/no_memory.h"
#include "tests/virtual_gpu/split/made_up_split.h"

using namespace cuslice;
using namespace cuslice::tests;

namespace {

constexpr auto kDevice = CU_MEM_LOCATION_TYPE_DEVICE;
constexpr auto kNone = CU_MEM_ACCESS_FLAGS_PROT_NONE, kRead = CU_MEM_ACCESS_FLAGS_PROT_READ,
               kWrite = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

CUmemAccessDesc wish(CUmemLocationType type, int id, CUmemAccess_flags flags) {
    CUmemAccessDesc made{};
    made.location = {type, id};
    made.flags = flags;
    return made;
}

}  // namespace

TEST_CASE("a list that there is no memory to copy isn't complete, and is as it was") {
    split_gpus();
    const std::vector<CUmemAccessDesc> list{wish(kDevice, 1, kWrite)};
    const NoMemory none;
    CHECK_FALSE(PhysicalAccess(list.data(), list.size()).complete());
    CHECK(list[0].location.id == 1);
}

TEST_CASE("parts of one GPU are named once, with the most that one of them may do") {
    split_gpus();
    const std::vector<CUmemAccessDesc> list{wish(kDevice, 1, kRead), wish(kDevice, 2, kNone), wish(kDevice, 0, kWrite),
                                            wish(kDevice, 1, kNone), wish(CU_MEM_LOCATION_TYPE_HOST, 0, kRead)};
    PhysicalAccess real(list.data(), list.size());
    REQUIRE(real.complete());
    REQUIRE(real.size() == 3);
    const CUmemAccessDesc* all = real.get();
    CHECK(all[0].location.id == 0);
    CHECK(all[0].flags == kWrite);
    CHECK(all[1].location.id == 1);
    CHECK(all[1].flags == kNone);
    CHECK(all[2].location.type == CU_MEM_LOCATION_TYPE_HOST);
    CHECK(all[2].flags == kRead);
    CHECK(list[0].flags == kRead);
}

TEST_CASE("no list stays none, and an empty one empty") {
    const CUmemAccessDesc one = wish(kDevice, 0, kRead);
    CHECK(PhysicalAccess(nullptr, 3).get() == nullptr);
    CHECK(PhysicalAccess(nullptr, 3).complete());
    CHECK(PhysicalAccess(&one, 0).get() == &one);
    CHECK(PhysicalAccess(&one, 0).size() == 0);
}
