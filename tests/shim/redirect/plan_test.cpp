// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/plan.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace cuslice {

namespace {

constexpr uintptr_t kBase = 0x10000;

// A program with functions one after the other, 16 bytes each, and a shared runtime that has some of their names.
struct Program {
    std::vector<Elf64_Sym> symbols;
    std::string texts = std::string(1, '\0');
    std::vector<std::string> shared;
    SymbolTable table;
    RedirectPlan plan;
    Reason why;

    Elf64_Sym& add(const std::string& name, uint64_t size = 16, unsigned char type = STT_FUNC) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(texts.size());
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, type));
        symbol.st_shndx = 1;
        symbol.st_value = 0x100 + symbols.size() * 16;
        symbol.st_size = size;
        texts += name + '\0';
        symbols.push_back(symbol);
        return symbols.back();
    }
    Elf64_Sym& add_shared(const std::string& name, uint64_t size = 16) {
        shared.push_back(name);
        return add(name, size);
    }
    const SymbolTable& look() {
        table = {symbols, {texts.data(), texts.size()}, kBase, {kBase, kBase + 0x1000}, {kBase, kBase + 0x1000}};
        return table;
    }
    static void* find(const char* name, void* self) {
        const auto& names = static_cast<Program*>(self)->shared;
        const auto found = std::ranges::find(names, name);
        return found == names.end() ? nullptr : const_cast<std::string*>(&*found);
    }
    bool make(void* lacking = nullptr) { return plan.make(look(), {"/lib/libcudart.so.13", find, this, lacking}, why); }
};

}  // namespace

TEST_CASE("each function of the runtime leads to the shared one's of its name, in the order of addresses") {
    Program program;
    program.add("main");
    program.add_shared("cudaMalloc");
    program.add("libcudart_static_00aa");
    program.add_shared("__cudaRegisterFatBinary");
    REQUIRE(program.make());
    REQUIRE(program.plan.all().size() == 2);
    CHECK(program.plan.all()[0].from == kBase + 0x110);
    CHECK(program.plan.all()[0].to == &program.shared[0]);
    CHECK(program.plan.all()[1].from == kBase + 0x130);
    CHECK(program.plan.all()[1].to == &program.shared[1]);
}

TEST_CASE("what a program calls like the runtime's functions, but elsewhere, is its own") {
    Program program;
    program.add("cudaOfMine");
    program.add_shared("cudaMalloc");
    program.add_shared("cudaFree");
    program.add("__cudaRegisterLinkedBinary_00aa");
    program.add("_Z10cudaMallocIfE9cudaErrorPPT_m");
    CHECK(program.make());
    CHECK(program.plan.all().size() == 2);
}

TEST_CASE("what a runtime lacks leads to the function that it has for that, with the name") {
    Program program;
    program.add_shared("cudaMalloc");
    program.add("cudaNotYetInvented");
    program.add_shared("cudaFree");
    program.add("cudaOfMine");
    REQUIRE(program.make(&program));
    REQUIRE(program.plan.all().size() == 3);
    const Redirection& newer = program.plan.all()[1];
    CHECK(newer.from == kBase + 0x110);
    CHECK(newer.to == &program);
    CHECK(newer.lacking);
    CHECK(std::string(newer.name) == "cudaNotYetInvented");
    CHECK_FALSE(program.plan.all()[0].lacking);
    CHECK_FALSE(program.plan.all()[2].lacking);
}

TEST_CASE("all of a runtime or nothing") {
    Program program;
    program.add_shared("cudaMalloc");
    SECTION("a function that the shared one lacks") {
        program.add("cudaNotYetInvented");
        program.add_shared("cudaFree");
        CHECK_FALSE(program.make());
        CHECK(
            program.why.view() ==
            "its runtime has cudaNotYetInvented, which /lib/libcudart.so.13 lacks: name a newer one of the same major "
            "version with --runtime FILE");
    }
    SECTION("a function that the shared one lacks, at the runtime's end") {
        program.add("cudaNotYetInvented");
        program.add("libcudart_static_00aa");
        CHECK_FALSE(program.make());
    }
    SECTION("a name that is no function like others") {
        program.add("cudaMemcpy", 16, STT_GNU_IFUNC);
        program.shared.push_back("cudaMemcpy");
        program.add_shared("cudaFree");
        CHECK_FALSE(program.make());
        CHECK(program.why.view() == "its cudaMemcpy is no function like others");
    }
    SECTION("two names at one place") {
        program.add_shared("cudaFree").st_value = program.symbols[0].st_value;
        CHECK_FALSE(program.make());
        CHECK(program.why.view().ends_with(" lie at one place"));
    }
    SECTION("one name at two places") {
        program.add("cudaMalloc");
        CHECK_FALSE(program.make());
        CHECK(program.why.view() == "it has cudaMalloc twice");
    }
    SECTION("a function outside the code") {
        program.add_shared("cudaFree").st_value = 0x1000 - kJumpBytes + 1;
        CHECK_FALSE(program.make());
        CHECK(program.why.view() == "its symbol table has cudaFree outside its code");
    }
    CHECK(program.plan.all().empty());
}

TEST_CASE("a function that is shorter than a jump has to have nobody's bytes behind it") {
    Program program;
    program.add_shared("cudaFree");
    const uint64_t short_one = program.add_shared("__cudaGetProcAddress", 3).st_value;
    SECTION("up to the next function") {
        program.add_shared("cudaMalloc");
        CHECK(program.make());
    }
    SECTION("a function that begins before") {
        program.add("helper").st_value = short_one + kJumpBytes - 1;
        CHECK_FALSE(program.make());
        CHECK(program.why.view() == "its __cudaGetProcAddress is too short to be led elsewhere");
    }
    SECTION("a name of anything else there") {
        program.add("table", 8, STT_OBJECT).st_value = short_one + 3;
        CHECK_FALSE(program.make());
    }
}

TEST_CASE("a runtime's major version is told by names that one version alone has") {
    Program program;
    program.add("main");
    CHECK_FALSE(static_runtime_of(program.look()).there);
    program.add("cudaGetDeviceCount");
    // A tool that stands before the runtime has its public names too.
    CHECK_FALSE(static_runtime_of(program.look()).there);
    program.add("libcudart_static_abc");
    CHECK(static_runtime_of(program.look()).there);
    CHECK(static_runtime_of(program.look()).major == 0);
    SECTION("12") {
        program.add("cudaGetDeviceProperties_v2");
        CHECK(static_runtime_of(program.look()).major == 12);
    }
    SECTION("13") {
        program.add("cudaMemGetDefaultMemPool");
        CHECK(static_runtime_of(program.look()).major == 13);
    }
    SECTION("both: none that is known") {
        program.add("cudaGetDeviceProperties_v2");
        program.add("cudaMemGetDefaultMemPool");
        CHECK(static_runtime_of(program.look()).major == 0);
    }
    SECTION("a program that is linked to a shared runtime names what it lacks") {
        for (Elf64_Sym& symbol : program.symbols)
            symbol.st_shndx = SHN_UNDEF;
        CHECK_FALSE(static_runtime_of(program.look()).there);
    }
}

TEST_CASE("a table that lies about its texts is read within them") {
    Program program;
    program.add_shared("cudaMalloc");
    program.symbols[0].st_name = 0x7fffffff;
    CHECK_FALSE(program.make());
    CHECK(program.why.view() == "its runtime has no function of /lib/libcudart.so.13");
    CHECK(program.plan.all().empty());
}

TEST_CASE("more functions than any runtime has are none") {
    Program program;
    for (size_t i = 0; i <= RedirectPlan::kMost; i++)
        program.add_shared("cuda" + std::to_string(i)).st_value = 0x100 + i * 8 % 0xe00;
    CHECK_FALSE(program.make());
    CHECK(program.why.view() == "its symbol table has more functions of a runtime than any version has");
}

}  // namespace cuslice
