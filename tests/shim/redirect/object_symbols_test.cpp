// SPDX-License-Identifier: Apache-2.0
#include "shim/redirect/object_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/catch.h"

namespace cuslice {

namespace {

using Found = ObjectSymbols::Found;

// A library of the tests' own, as the loader has mapped it.
struct Loaded {
    Loaded() : handle(dlopen(CUSLICE_TEST_LATE_RUNTIME, RTLD_LAZY)) { REQUIRE(handle != nullptr); }
    ~Loaded() { dlclose(handle); }
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    const link_map& map() const { return *static_cast<link_map*>(handle); }
    void* handle;
};

// The first page of a library, in which something else is written.
struct alignas(4096) Page {
    explicit Page(const link_map& library) {
        std::memcpy(bytes, reinterpret_cast<const void*>(library.l_addr), sizeof bytes);
        header = reinterpret_cast<Elf64_Ehdr*>(bytes);
        map = library;
        map.l_addr = reinterpret_cast<uintptr_t>(bytes);
        // As far from the beginning as in the library: nothing of the dynamic section is looked at before.
        map.l_ld = reinterpret_cast<ElfW(Dyn)*>(bytes + (reinterpret_cast<uintptr_t>(library.l_ld) - library.l_addr));
    }
    Found read() const {
        ObjectSymbols symbols;
        return symbols.read_library(map);
    }
    unsigned char bytes[4096];
    unsigned char more[65536]{};  // where the dynamic section would lie: an empty one
    Elf64_Ehdr* header;
    link_map map;
};

}  // namespace

TEST_CASE("a library's symbols are where its functions are, and its file is the one that is mapped") {
    const Loaded library;
    ObjectSymbols symbols;
    REQUIRE(symbols.read_library(library.map()) == Found::table);
    const SymbolTable& table = symbols.table();
    const auto many = reinterpret_cast<uintptr_t>(dlsym(library.handle, "cudaMany"));
    const bool found = std::any_of(table.all.begin(), table.all.end(), [&](const Elf64_Sym& symbol) {
        return table.address_of(symbol) == many && std::string(table.name_of(symbol)) == "cudaMany";
    });
    CHECK(found);
    CHECK(table.code.holds(many, 1));
    CHECK_FALSE(symbols.text_changes());
    link_map other = library.map();
    std::string path = CUSLICE_TEST_FAKE_FOLDER "/libcudart.so.13";
    other.l_name = path.data();
    ObjectSymbols of_other, of_none;
    CHECK(of_other.read_library(other) == Found::no_file);
    path = "/nowhere";
    other.l_name = path.data();
    CHECK(of_none.read_library(other) == Found::unreadable);
}

TEST_CASE("a library whose header isn't where libraries have it, or lies, has no symbols that are known") {
    const Loaded library;
    Page page(library.map());
    CHECK(page.read() != Found::no_file);
    SECTION("no header") { page.header->e_ident[0] = 0; }
    SECTION("segments at an odd place") { page.header->e_phoff = 65; }
    SECTION("segments behind the page") { page.header->e_phoff = 4096; }
    SECTION("more segments than there is room for") { page.header->e_phnum = 0xffff; }
    SECTION("segments of another size") { page.header->e_phentsize = 64; }
    SECTION("another dynamic section") { page.map.l_ld++; }
    CHECK(page.read() == Found::no_file);
}

}  // namespace cuslice
