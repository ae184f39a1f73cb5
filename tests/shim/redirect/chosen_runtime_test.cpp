// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/chosen_runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <string>

#include "tests/catch.h"

namespace cuslice {

namespace {

const std::string kFake = CUSLICE_TEST_FAKE_FOLDER;

// A variable of this process's environment, for a test.
struct Variable {
    Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    const char* name_;
};

// A library with one function of a runtime's, in this process's list of objects behind the others.
struct Library {
    explicit Library(const std::string& function) : texts('\0' + function + '\0') {
        symbol.st_name = 1;
        symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_LOCAL, STT_FUNC));
        symbol.st_shndx = 1;
        symbol.st_value = 0x100;
        symbol.st_size = 16;
        auto* last = static_cast<link_map*>(dlopen(nullptr, RTLD_LAZY));
        while (last->l_next)
            last = last->l_next;
        map.l_prev = last;
        map.l_name = path.data();
    }
    bool choose(int major) {
        const SymbolTable table{{&symbol, 1}, {texts.data(), texts.size()}, 0x1000, {0x1000, 0x2000}, {0x1000, 0x2000}};
        why.clear();
        return chosen.choose(major, table, map, plan, why);
    }

    std::string texts, path = "/opt/packages/library.so";
    Elf64_Sym symbol{};
    link_map map{};
    RedirectPlan plan;
    ChosenRuntime chosen;
    Reason why;
};

}  // namespace

TEST_CASE("the runtime that is named is chosen, if it is of the library's major version and has its functions") {
    const std::string path = kFake + "/libcudart.so.13";
    const Variable named("CUSLICE_RUNTIME", path);
    Library library("cudaMalloc");
    REQUIRE(library.choose(13));
    CHECK(library.chosen.path() == path);
    CHECK(library.plan.all().size() == 1);
    CHECK_FALSE(library.choose(12));
    CHECK(library.why.view() ==
          "CUSLICE_RUNTIME: " + path + ": can't be read, or is no libcudart.so.12, which the library's own would be");
}

TEST_CASE("a runtime is chosen where it is loaded, where the loader looks, and where packages and toolkits have it") {
    Library library("cudaMany");
    const std::string there = CUSLICE_TEST_LATE_RUNTIME;
    CHECK_FALSE(library.choose(99));
    CHECK(library.why.view().find("there is no libcudart.so.99 here") == 0);
    SECTION("beside the package") {
        library.path = std::string(CUSLICE_TEST_TOOLKIT) + "/site-packages/cupy/core/library.so";
        library.map.l_name = library.path.data();
        REQUIRE(library.choose(99));
        CHECK(library.chosen.path() ==
              std::string(CUSLICE_TEST_TOOLKIT) + "/site-packages/nvidia/cu13/lib/libcudart.so.99");
    }
    SECTION("loaded") {
        void* const loaded = dlopen(there.c_str(), RTLD_LAZY);
        REQUIRE(loaded != nullptr);
        REQUIRE(library.choose(99));
        CHECK(library.chosen.path() == there);
        dlclose(loaded);
    }
    SECTION("in a toolkit") {
        const Variable home("CUDA_HOME", CUSLICE_TEST_TOOLKIT);
        Library other("cudaMalloc");
        REQUIRE(other.choose(13));
        CHECK(std::string(other.chosen.path()).ends_with("/libcudart.so.13"));
    }
}

TEST_CASE("a runtime that lacks one of the library's functions is passed over, and the line names the function") {
    const Variable named("CUSLICE_RUNTIME", CUSLICE_TEST_LATE_RUNTIME);
    Library library("cudaMany");
    REQUIRE(library.choose(99));
    // The stand-in's functions have other names, so one more lies among the library's own.
    Elf64_Sym both[] = {library.symbol, library.symbol, library.symbol};
    library.texts += "cudaNewer";
    library.texts += '\0';
    library.texts += "cudaLarge";
    library.texts += '\0';
    both[1].st_name = 10;
    both[1].st_value = 0x110;
    both[2].st_name = 20;
    both[2].st_value = 0x120;
    const SymbolTable table{
        both, {library.texts.data(), library.texts.size()}, 0x1000, {0x1000, 0x2000}, {0x1000, 0x2000}};
    Reason why;
    CHECK_FALSE(library.chosen.choose(99, table, library.map, library.plan, why));
    CHECK(why.view().find("its runtime has cudaNewer, which " + std::string(CUSLICE_TEST_LATE_RUNTIME) + " lacks") ==
          0);
}

}  // namespace cuslice
