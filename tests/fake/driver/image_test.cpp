// SPDX-License-Identifier: Apache-2.0
// Cubins and fat binaries, made here byte by byte as the tools write them.

#include "fake/driver/image.h"

#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tests/catch.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/made_up_fat_binary.h"

using namespace cuslice::fake;
using fake_test::container;
using fake_test::Cubin;
using fake_test::entry;

TEST_CASE("a cubin tells its kernels, their parameters and limits, and its variables") {
    for (const unsigned char abi : {7, 8}) {
        const std::string cubin = Cubin(86, abi).bytes();
        Image image;
        REQUIRE(read_image(cubin.data(), 86, image) == CUDA_SUCCESS);
        CHECK(image.capability == 86);
        REQUIRE(image.kernels.size() == 1);
        const KernelInfo& kernel = image.kernels[0];
        CHECK(kernel.name == "kernel");
        CHECK(kernel.registers == 18);
        CHECK(kernel.max_threads == 256);
        CHECK(kernel.shared_bytes == 512);
        REQUIRE(kernel.parameters.size() == 2);
        CHECK(kernel.parameters[0].size == 8);
        CHECK(kernel.parameters[1].offset == 8);
        CHECK(kernel.parameters[1].size == 4);
        REQUIRE(image.variables.size() == 1);
        CHECK(image.variables[0].name == "answer");
        CHECK(image.variables[0].contents == std::vector<unsigned char>{42, 0, 0, 0});
    }
}

TEST_CASE("a kernel's registers and memory are read where the cubin has them") {
    for (const unsigned capability : {80U, 90U, 120U}) {
        const std::string cubin = Cubin(capability, 8).bytes();
        Image image;
        REQUIRE(read_image(cubin.data(), static_cast<int>(capability), image) == CUDA_SUCCESS);
        REQUIRE(image.kernels.size() == 1);
        CHECK(image.kernels[0].registers == 18);
        CHECK(image.kernels[0].shared_bytes == 512);
        CHECK(image.kernels[0].const_bytes == 80);
        CHECK(image.kernels[0].local_bytes == (capability >= 90 ? 64 : 0));
    }
}

TEST_CASE("code runs on the devices that it was made for") {
    const std::string cubin = Cubin(80, 8).bytes();
    Image image;
    CHECK(read_image(cubin.data(), 86, image) == CUDA_SUCCESS);
    CHECK(read_image(cubin.data(), 90, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(read_image(cubin.data(), 75, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);
    CHECK(runs_on(true, 75, 90));
    CHECK_FALSE(runs_on(true, 90, 75));
    std::string other = cubin;
    other[18] = 62;  // x86-64
    CHECK(read_image(other.data(), 80, image) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE("a fat binary is read from a part that isn't compressed") {
    const std::string ptx = ".version 8.0\n.target sm_80\n.visible .entry from_ptx() { ret; }\n";
    Image image;
    const std::string both =
        container(entry(1, 80, 0x8011, "zzzz") + entry(2, 75, 0x11, Cubin(75, 8).bytes()) + entry(1, 80, 0x11, ptx));
    REQUIRE(read_image(both.data(), 75, image) == CUDA_SUCCESS);
    CHECK(image.opaque.empty());
    REQUIRE(image.kernels.size() == 1);
    CHECK(image.kernels[0].name == "kernel");
    REQUIRE(read_image(both.data(), 86, image) == CUDA_SUCCESS);  // the cubin is for another device
    CHECK(image.kernels[0].name == "from_ptx");
    CHECK(read_image(both.data(), 70, image) == CUDA_ERROR_NO_BINARY_FOR_GPU);

    const std::string text = container(entry(1, 80, 0x11, ptx));
    image = {};
    REQUIRE(read_image(text.data(), 86, image) == CUDA_SUCCESS);
    CHECK(image.kernels[0].name == "from_ptx");

    const std::string packed = container(entry(1, 80, 0x2011, "zzzz"));
    image = {};
    REQUIRE(read_image(packed.data(), 86, image) == CUDA_SUCCESS);
    CHECK_FALSE(image.opaque.empty());

    struct {
        unsigned magic = 0x466243b1, version = 1;
        const void* data = nullptr;
        void* name = nullptr;
    } wrapper;
    wrapper.data = text.data();
    image = {};
    REQUIRE(read_image(&wrapper, 86, image) == CUDA_SUCCESS);
    CHECK(image.kernels[0].name == "from_ptx");
}

TEST_CASE("of a fat binary's parts the one that the device takes is read") {
    const std::string ptx = ".version 8.0\n.target sm_80\n.visible .entry kernel() { .shared .b8 s[7]; ret; }\n";
    const std::string several = container(entry(2, 75, 0x11, Cubin(75, 8).bytes()) + entry(1, 80, 0x11, ptx) +
                                          entry(2, 90, 0x11, Cubin(90, 8).bytes()) + entry(2, 100, 0x8011, "zzzz"));
    for (const auto& [device, code, is_ptx] :
         {std::tuple{75, 75, false}, {86, 80, true}, {90, 90, false}, {100, 80, true}, {120, 80, true}}) {
        Image image;
        REQUIRE(read_image(several.data(), device, image) == CUDA_SUCCESS);
        CHECK(image.capability == code);
        CHECK(image.is_ptx == is_ptx);
        // A library is read before its devices are known.
        const auto library = std::make_shared<Image>();
        REQUIRE(read_image(several.data(), 0, *library) == CUDA_SUCCESS);
        const auto chosen = image_for(library, device);
        REQUIRE(chosen != nullptr);
        CHECK(chosen->capability == code);
        CHECK(chosen->kernels[0].shared_bytes == (is_ptx ? 7 : 512));
        CHECK(image_for(library, 70) == nullptr);
    }
}

TEST_CASE("an image knows the PTX that it was compiled from") {
    const auto of = [](const std::string& bytes, int device) {
        Image image;
        REQUIRE(read_image(bytes.data(), device, image) == CUDA_SUCCESS);
        return image;
    };
    CHECK(of(Cubin(90, 8, 80).bytes(), 90).ptx_capability == 80);
    CHECK(of(Cubin(90, 8).bytes(), 90).ptx_capability == 0);
    CHECK(of(Cubin(86, 7).bytes(), 86).ptx_capability == 80);  // in its flags
    CHECK(of(".version 8.0\n.target sm_75\n.visible .entry kernel() { ret; }\n", 90).ptx_capability == 75);
    // The entries say what compressed code is for.
    const std::string packed = container(entry(1, 75, 0x8011, "zzzz") + entry(2, 80, 0x8011, "zzzz"));
    CHECK(of(packed, 75).is_ptx);
    CHECK(of(packed, 75).ptx_capability == 75);
    CHECK_FALSE(of(packed, 86).is_ptx);
    CHECK(of(packed, 86).capability == 80);
    CHECK(of(packed, 90).ptx_capability == 75);
}

TEST_CASE("a text with a fault in a fat binary is refused where a device would take it, and only there") {
    const std::string wrong = ".version 8.0\n.target sm_80\n.golbal .f32 x;\n.visible .entry from_ptx() { ret; }\n";
    const std::string both = container(entry(2, 75, 0x11, Cubin(75, 8).bytes()) + entry(1, 80, 0x11, wrong));
    Image image;
    CHECK(read_image(both.data(), 75, image) == CUDA_SUCCESS);
    CHECK(image.fault.empty());
    CHECK(read_image(both.data(), 86, image) == CUDA_ERROR_INVALID_PTX);
    CHECK(image.fault.find("line 3") != image.fault.npos);
    // A library's devices aren't known yet, and its names are those of what can be read.
    const std::string text_first = container(entry(1, 80, 0x11, wrong) + entry(2, 75, 0x11, Cubin(75, 8).bytes()));
    const auto library = std::make_shared<Image>();
    REQUIRE(read_image(text_first.data(), 0, *library) == CUDA_SUCCESS);
    REQUIRE(library->kernels.size() == 1);
    CHECK(library->kernels[0].name == "kernel");
    REQUIRE(image_for(library, 86) != nullptr);
    CHECK_FALSE(image_for(library, 86)->fault.empty());
    CHECK(image_for(library, 75)->fault.empty());
}

TEST_CASE("a container that runs past its end is refused") {
    std::string broken = container(entry(1, 80, 0x11, "text"));
    broken[16 + 8] = 0x7f;  // the entry is longer than the container
    Image image;
    CHECK(read_image(broken.data(), 86, image) == CUDA_ERROR_INVALID_IMAGE);
}
