// SPDX-License-Identifier: Apache-2.0
// Every object of this process, and every function of the C library, as the loader has them. tests/virtual_gpu/driver
// has versions, and tables of either kind.
#include "elf/object.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace cuslice::tests {
namespace {

template <typename Visit>
void each_object(Visit visit) {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* argument) {
            (*static_cast<Visit*>(argument))(*info);
            return 0;
        },
        &visit);
}

}  // namespace

TEST_CASE("every loaded object can be read, the kernel's own among them") {
    int objects = 0;
    each_object([&](const dl_phdr_info& info) {
        const elf_object object = elf_object_of(&info);
        CAPTURE(info.dlpi_name);
        CHECK(object.dynamic != nullptr);
        CHECK(elf_holds(&info, object.dynamic));
        CHECK(elf_find_symbol(&object, "nothing_of_that_name", elf_gnu_hash("nothing_of_that_name")) == nullptr);
        objects++;
    });
    CHECK(objects > 2);
}

TEST_CASE("an object holds what lies in it, and nothing else") {
    const int on_the_stack = 0;
    int holding = 0;
    each_object([&](const dl_phdr_info& info) {
        CHECK_FALSE(elf_holds(&info, &on_the_stack));
        CHECK_FALSE(elf_holds(&info, nullptr));
        holding += elf_holds(&info, reinterpret_cast<void*>(&elf_holds));
    });
    CHECK(holding == 1);
}

TEST_CASE("the C library's names are its own") {
    each_object([](const dl_phdr_info& info) {
        const elf_object object = elf_object_of(&info);
        if (object.soname == nullptr || std::strcmp(object.soname, "libc.so.6") != 0)
            return;
        const ElfW(Sym)* const found = elf_find_symbol(&object, "puts", elf_gnu_hash("puts"));
        REQUIRE(found != nullptr);
        CHECK(elf_holds(&info, reinterpret_cast<void*>(object.base + found->st_value)));
        CHECK(std::string(object.texts + found->st_name) == "puts");
        CHECK(object.runpath == nullptr);
    });
}

TEST_CASE("without a dynamic section there are no names") {
    const elf_object object = elf_object_at(0x1000, nullptr);
    const ElfW(Dyn) entry{};
    CHECK(elf_find_symbol(&object, "puts", elf_gnu_hash("puts")) == nullptr);
    CHECK(elf_object_text(&object, &entry) == nullptr);
    CHECK(object.soname == nullptr);
}

}  // namespace cuslice::tests
