// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/split/pci_address.h"

#include "tests/catch.h"

using cuslice::PciAddress;
using cuslice::read_pci;

TEST_CASE("a PCI address is read in every form that the driver and NVML take") {
    PciAddress a;
    REQUIRE(read_pci("0001:8A:1f.7", &a));
    CHECK(a == PciAddress{0x1, 0x8a, 0x1f, 7});
    REQUIRE(read_pci("00000001:81:00.0", &a));  // NVML's
    CHECK(a == PciAddress{1, 0x81, 0, 0});
    REQUIRE(read_pci("0002:81:03", &a));
    CHECK(a == PciAddress{2, 0x81, 3, 0});
    REQUIRE(read_pci("81:03.1", &a));
    CHECK(a == PciAddress{0, 0x81, 3, 1});
    REQUIRE(read_pci("81:03", &a));
    CHECK(a == PciAddress{0, 0x81, 3, 0});
}

TEST_CASE("what is no PCI address leaves the place for one as it was") {
    for (const char* text : {"", "81", "81:", "0:0:0:0", "0000:81:00.0 ", "0000:81:00.0x", "-1:0:0.0", "0x1:0:0.0",
                             "0000:81:00.", "81:00.0.0", "GPU-30aa", ".", ":", "81:00.0:"}) {
        CAPTURE(text);
        PciAddress a{9, 9, 9, 9};
        CHECK_FALSE(read_pci(text, &a));
        CHECK(a == PciAddress{9, 9, 9, 9});
    }
}
