#include "virtual_gpu/gpu/contexts.h"

#include "tests/catch.h"

using cuslice::Contexts;

namespace {

CUcontext context(std::uintptr_t number) { return reinterpret_cast<CUcontext>(number << 4); }

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
