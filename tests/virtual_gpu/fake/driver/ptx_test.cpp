#include "tests/catch.h"
#include "tests/virtual_gpu/fake/driver/sample_ptx.h"
#include "virtual_gpu/fake/driver/image.h"

using namespace cuslice::fake;

namespace {

Image read(const std::string& text) {
    Image image;
    REQUIRE(read_ptx(text.data(), text.size(), image));
    return image;
}

bool refused(const std::string& text) {
    Image image;
    return !read_ptx(text.data(), text.size(), image);
}

}  // namespace

TEST_CASE("kernels, parameters, variables and limits are read") {
    const Image image = read(fake_test::sample_ptx);
    CHECK(image.capability == 75);
    REQUIRE(image.kernels.size() == 2);
    const KernelInfo& add = image.kernels[0];
    CHECK(add.name == "add");
    REQUIRE(add.parameters.size() == 5);
    const std::size_t expected[5][2] = {{0, 8}, {8, 8}, {16, 4}, {24, 24}, {48, 1}};
    for (std::size_t i = 0; i < 5; i++) {
        CHECK(add.parameters[i].offset == expected[i][0]);
        CHECK(add.parameters[i].size == expected[i][1]);
    }
    CHECK(add.shared_bytes == 256);
    CHECK(image.kernels[1].max_threads == 128);
    CHECK(image.kernels[1].parameters_known);
    REQUIRE(image.variables.size() == 4);
    CHECK(image.variables[0].contents == std::vector<unsigned char>{7, 0, 0, 0});
    CHECK(image.variables[1].contents.size() == 20);
    CHECK(image.variables[2].size == 80);
    CHECK(image.variables[3].managed);
}

TEST_CASE("a kernel without a list has unknown parameters; an empty list has none") {
    const Image image = read(".entry a\n.entry b()\n.visible .entry c;\n.global .b8 x[16];");
    REQUIRE(image.kernels.size() == 3);
    CHECK_FALSE(image.kernels[0].parameters_known);
    CHECK(image.kernels[1].parameters_known);
    CHECK_FALSE(image.kernels[2].parameters_known);
    REQUIRE(image.variables.size() == 1);
    CHECK(image.variables[0].size == 16);
}

TEST_CASE("initial values: nested, negative, floating, by length") {
    const Image image = read(
        ".global .s16 a = -2;\n.global .f32 b[2] = {0f3F800000, 0f40000000};\n.global .u8 c[] = {1, 2, 3};\n"
        ".global .u32 d[2][2] = {{1, 2}, {3}};\n.global .u64 e = generic(other);\n.global .v4 .f32 f;\n");
    REQUIRE(image.variables.size() == 6);
    CHECK(image.variables[0].contents == std::vector<unsigned char>{0xfe, 0xff});
    CHECK(image.variables[1].contents == std::vector<unsigned char>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40});
    CHECK(image.variables[2].size == 3);
    CHECK(image.variables[3].size == 16);
    CHECK(image.variables[3].contents[8] == 3);
    CHECK(image.variables[4].size == 8);
    CHECK(image.variables[5].size == 16);
}

TEST_CASE("what can't be read is refused, whatever it is") {
    CHECK(refused(".entry f(.param .nonsense x)"));
    CHECK(refused(".entry f(.param .u32"));
    CHECK(refused(".entry f(nothing"));
    CHECK(refused(".entry"));
    CHECK(refused(".global .u32 x[4"));
    CHECK(refused(".global"));
    // Cut anywhere, the sample must be read or refused, and not run past its end.
    const std::string sample = fake_test::sample_ptx;
    for (std::size_t length = 0; length < sample.size(); length++) {
        const std::string part(sample.data(), length);
        Image image;
        read_ptx(part.data(), part.size(), image);
    }
}
