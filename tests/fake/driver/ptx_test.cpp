// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/image.h"
#include "fake/driver/ptx_text.h"
#include "tests/catch.h"
#include "tests/fake/driver/sample_ptx.h"

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
    const size_t expected[5][2] = {{0, 8}, {8, 8}, {16, 4}, {24, 24}, {48, 1}};
    for (size_t i = 0; i < 5; i++) {
        CHECK(add.parameters[i].offset == expected[i][0]);
        CHECK(add.parameters[i].size == expected[i][1]);
    }
    CHECK(add.shared_bytes == 256);
    CHECK(add.const_bytes == 20);
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
    for (size_t length = 0; length < sample.size(); length++) {
        const std::string part(sample.data(), length);
        Image image;
        read_ptx(part.data(), part.size(), image);
    }
}

TEST_CASE("shared and local memory of a kernel are read, wherever its body declares them") {
    const Image image = read(
        ".entry a() { .local .align 8 .b8 __local_depot0[256]; { .shared .b32 s[100]; } ret; }\n.entry b() { ret; }");
    REQUIRE(image.kernels.size() == 2);
    CHECK(image.kernels[0].local_bytes == 256);
    CHECK(image.kernels[0].shared_bytes == 400);
    CHECK(image.kernels[1].local_bytes == 0);
}

TEST_CASE("a text that a compiler takes has no fault") {
    CHECK(check_ptx(fake_test::sample_ptx) == "");
    // Constructs that compilers write: debug lines, predicates, labels, vectors, tables, calls, comments of inline
    // assembly.
    CHECK(check_ptx(R"(
        .version 8.0
        .target sm_90a, debug
        .address_size 64
        .file 1 "/a/b.cu", 1, 2
        .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b) ;
        .extern .shared .align 16 .b8 dynamic[];
        .visible .global .align 8 .u64 pointers[2] = {generic(a), generic(b)+8};
        .weak .func w();
        .visible .entry f(
            .param .u64 .ptr .global .align 4 p
        )
        .maxntid 256, 1, 1
        .minnctapersm 2
        {
            .reg .pred %p<3>;
            .reg .b32 %r<7>;
            .loc 1 4 7, function_name $L__info0, inlined_at 1 2 3
            ld.param.u64 %rd1, [p];
            @!%p1 bra $L__BB0_2;
        $L__BB0_1:
            ld.global.v2.f32 {%f1, %f2}, [%rd1+8];
            // begin inline asm
            { .reg .b16 l; mov.b32 {l, _}, %r1; }
            { // callseq 0, 0
                .param .b64 param0;
                call.uni (retval0), vprintf, (param0, param1);
            }
            prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _);
            tbl: .branchtargets $L__BB0_1, $L__BB0_2;
            @%p2 bra.uni $L__BB0_1;
            mbarrier.arrive.shared::cta.b64 %rd6, [%r23], %r24;
            wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1}, %rd1, %rd2, p, 1, 1, 0, 1;
        $L__BB0_2:
            ret;
        }
        .section .debug_abbrev
        {
            .b8 1, 17, 1
            .b64 f
        }
    )") == "");
    // A version that came later may have instructions that nobody knows here.
    CHECK(check_ptx(".version 9.9\n.target sm_50\n.entry f() { unheard.of %r1; }") == "");
}

TEST_CASE("nonsense in a text is found, with its line") {
    const std::string head = ".version 8.0\n.target sm_50\n";
    CHECK(check_ptx("") == "line 1: '': the text ends in the middle of a statement");
    CHECK(check_ptx("\nnonsense") == "line 2: 'nonsense': a text begins with .version");
    CHECK(check_ptx(".version nonsense") == "line 1: 'nonsense': no version of PTX");
    CHECK(check_ptx(".version 8.0\n.entry f() { ret; }") == "line 2: '.entry': .target follows .version");
    CHECK(check_ptx(".version 8.0\n.target nonsense\n") == "line 2: 'nonsense': no target");
    CHECK(check_ptx(head + "nonsense") == "line 3: 'nonsense': not expected here");
    CHECK(check_ptx(head + ".nonsense;") == "line 3: '.nonsense': not expected here");
    CHECK(check_ptx(head + ".version 8.0") == "line 3: '.version': not expected here");
    CHECK(check_ptx(head + ".entry f() {\n nonsense;\n}") == "line 4: 'nonsense': no instruction");
    CHECK(check_ptx(head + ".entry f() {\n @%p1 nonsense.u32 %r1;\n}") == "line 4: 'nonsense.u32': no instruction");
    CHECK(check_ptx(head + ".entry f() { ret\n}") == "line 4: '}': not expected here");
    CHECK(check_ptx(head + ".entry f() { ret;") == "line 3: '': the text ends in the middle of a statement");
    CHECK(check_ptx(head + ".entry f() { 5; }") == "line 3: '5': not expected here");
    CHECK(check_ptx(head + ".global .u32 x") == "line 3: '': the text ends in the middle of a statement");
    CHECK(check_ptx(head + ".entry f() }") == "line 3: '}': not expected here");
    const std::string sample = fake_test::sample_ptx;
    for (size_t length = 0; length < sample.size(); length++)
        check_ptx(sample.substr(0, length));
}

TEST_CASE("a text's header can be left out") {
    CHECK(ptx_without_header(".version 8.0\n.target sm_50\n.address_size 64\n.entry f;") == ".entry f;");
    CHECK(ptx_without_header(".version 8.0\n.target sm_50, debug\n.entry f;") == ".entry f;");
    CHECK(ptx_without_header(".version 8.0\n.target sm_50\n") == "");
}
