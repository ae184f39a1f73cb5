// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "config/uuid/fake.h"
#include "fake/spec/gpu_spec.h"
#include "tests/catch.h"

using namespace cuslice::fake;

TEST_CASE("PCI addresses are read in every usual form") {
    PciAddress pci;
    for (const char* text : {"0000:81:00.0", "00000000:81:00.0", "81:00.0", "81:00", "0000:81:00"}) {
        INFO(text);
        pci = {};
        CHECK(parse_pci(text, pci));
        CHECK(pci == PciAddress{0, 0x81, 0});
    }
    for (const char* text : {"", "81", "81:00.1", "0000:81:00.0x", "zz:00.0"}) {
        INFO(text);
        CHECK_FALSE(parse_pci(text, pci));
    }
}

TEST_CASE("a UUID survives being written and read") {
    Uuid uuid{}, read{};
    for (size_t i = 0; i < uuid.size(); i++)
        uuid[i] = static_cast<unsigned char>(17 * i);
    CHECK(parse_uuid(uuid_text(uuid), read));
    CHECK(read == uuid);
    CHECK_FALSE(parse_uuid("GPU-0123", read));
    CHECK_FALSE(parse_uuid(uuid_text(uuid) + "0", read));
}

TEST_CASE("a made-up UUID says that it is fake, and no other one does") {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; i++) {
        const Uuid uuid = made_up_uuid("gpu " + std::to_string(i));
        const std::string text = uuid_text(uuid);
        CAPTURE(text);
        CHECK(cuslice::is_fake_uuid(text));
        CHECK(cuslice::is_fake_uuid("MIG-" + text.substr(4)));
        CHECK(seen.insert(text).second);
        for (const size_t byte : {0, 3, 9, 10, 15}) {
            Uuid other = uuid;
            other[byte] ^= 0x10;
            CHECK_FALSE(cuslice::is_fake_uuid(uuid_text(other)));
        }
    }
    CHECK_FALSE(cuslice::is_fake_uuid(""));
    CHECK_FALSE(cuslice::is_fake_uuid("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"));
    CHECK_FALSE(cuslice::is_fake_uuid("GPU-zzzzzzzz-zzzz-zzzz-zzzz-zzzzzzzzzzzz"));
}
