// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/gpu/contexts.h"

#include "tests/catch.h"

using cuslice::Contexts;

namespace {

CUcontext context(uintptr_t number) { return reinterpret_cast<CUcontext>(number << 4); }

}  // namespace

TEST_CASE("a context has a number as long as it lives, and another gets it afterwards") {
    Contexts contexts;
    const Contexts::Id one = contexts.id_of(context(1), 0), two = contexts.id_of(context(2), 3);
    CHECK(one != 0);
    CHECK(two != one);
    CHECK(contexts.id_of(context(1), 0) == one);
    CHECK(contexts.known_id(context(3)) == 0);
    CHECK(contexts.known_id(nullptr) == 0);
    CHECK(contexts.device_of(context(2)) == 3);
    contexts.ended(context(1));
    CHECK(contexts.known_id(context(1)) == 0);
    CHECK(contexts.device_of(context(1)) == -1);
    CHECK(contexts.id_of(context(3), 0) == one);
}

TEST_CASE("another name of a context has its number, and is known until it ends itself") {
    Contexts contexts;
    const Contexts::Id primary = contexts.id_of(context(1), 2);
    contexts.add_name(context(7), context(1), 2);
    contexts.add_name(context(8), context(99), 2);  // of a context that nobody knows
    CHECK(contexts.id_of(context(7), 2) == primary);
    CHECK(contexts.is_name(context(7)));
    CHECK_FALSE(contexts.is_name(context(1)));
    CHECK_FALSE(contexts.is_name(context(8)));
    contexts.name_ended(context(1));  // that is no name
    CHECK(contexts.known_id(context(1)) == primary);
    contexts.ended(context(1));
    CHECK(contexts.device_of(context(7)) == 2);
    contexts.name_ended(context(7));
    CHECK(contexts.device_of(context(7)) == -1);
    CHECK(contexts.known_id(context(7)) == 0);
}

TEST_CASE("a context ends with the last of its uses, and one that nobody knows has none") {
    Contexts contexts;
    contexts.id_of(context(1), 0);
    CHECK_FALSE(contexts.give_up_use(context(1)));
    contexts.attached(context(1));
    contexts.attached(context(1));
    CHECK(contexts.give_up_use(context(1)));
    CHECK(contexts.give_up_use(context(1)));
    CHECK_FALSE(contexts.give_up_use(context(1)));
    contexts.attached(context(2));
    CHECK(contexts.give_up_use(context(2)));
}

TEST_CASE("contexts are listed without their other names, as many as there is room for, and counted all") {
    Contexts contexts;
    CUcontext listed[3] = {};
    CUdevice devices[3] = {-1, -1, -1};
    CHECK(contexts.list(listed, 3, devices) == 0);
    contexts.id_of(context(1), 5);
    contexts.add_name(context(7), context(1), 5);
    const Contexts::Id two = contexts.id_of(context(2), 6);
    contexts.id_of(context(3), 7);
    CHECK(contexts.list(listed, 2, devices) == 3);
    CHECK(listed[0] == context(1));
    CHECK(listed[1] == context(2));
    CHECK(listed[2] == nullptr);
    CHECK(devices[1] == 6);
    CHECK(devices[2] == -1);
    CHECK(contexts.list(listed, 3) == 3);
    CHECK(listed[2] == context(3));
    CHECK(contexts.any_on(6));
    CHECK_FALSE(contexts.any_on(8));
    CHECK(contexts.handle_of(two) == context(2));
    contexts.ended(context(2));
    CHECK(contexts.handle_of(two) == nullptr);
    CHECK_FALSE(contexts.any_on(6));
    CHECK(contexts.list(listed, 3) == 2);
    CHECK(contexts.handle_of(0) == nullptr);
    CHECK(contexts.handle_of(100) == nullptr);
    contexts.ended(nullptr);
    CHECK(contexts.device_of(nullptr) == -1);
    CHECK_FALSE(contexts.is_name(nullptr));
    contexts.name_ended(nullptr);
}

TEST_CASE("the only context is known as long as it is that, whatever it is called besides") {
    Contexts contexts;
    CHECK(contexts.sole() == nullptr);
    contexts.id_of(context(1), 0);
    CHECK(contexts.sole() == context(1));
    contexts.add_name(context(7), context(1), 0);
    CHECK(contexts.sole() == context(1));
    contexts.id_of(context(2), 0);
    CHECK(contexts.sole() == nullptr);
    contexts.ended(context(1));
    CHECK(contexts.sole() == context(2));
    contexts.ended(context(2));
    CHECK(contexts.sole() == nullptr);
}
