// SPDX-License-Identifier: Apache-2.0
// Exports of a loaded library, read from its own image and compared with the C library's look-up.
#include "virtual_gpu/driver/loaded_object.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "tests/catch.h"

namespace cuslice {

namespace {

int call(void* function) { return reinterpret_cast<int (*)()>(function)(); }

}  // namespace

TEST_CASE("functions are found in their default version, by either kind of hash table") {
    const char* const file = GENERATE(CUSLICE_TEST_GNU, CUSLICE_TEST_SYSV);
    CAPTURE(file);
    void* const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    const LoadedObject object = object_of(handle);
    REQUIRE(object);
    CHECK(std::string(object.path()) == file);
    CHECK(object.find("answer") == dlsym(handle, "answer"));
    CHECK(call(object.find("answer")) == 2);
    CHECK(object.find("cuInit") == dlsym(handle, "cuInit"));
    CHECK(call(object.find("chosen")) == 4);
    // An old version alone is for those who were linked to it.
    CHECK(object.find("withdrawn") == nullptr);
    CHECK(object.find("nothing_of_that_name") == nullptr);
    CHECK(object.find("") == nullptr);
}

TEST_CASE("what a library merely uses or needs is not its own, unlike for dlsym") {
    void* const handle = dlopen(CUSLICE_TEST_GNU, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(handle != nullptr);
    const LoadedObject object = object_of(handle);
    CHECK(dlsym(handle, "puts") != nullptr);
    CHECK(object.find("puts") == nullptr);
    CHECK(object.needs("libc.so.6"));
    CHECK_FALSE(object.needs("libc.so"));
    CHECK(object.holds(object.find("cuInit")));
    CHECK_FALSE(object.holds(dlsym(handle, "puts")));
    // From its first segment to its last.
    Dl_info info{};
    REQUIRE(dladdr(dlsym(handle, "cuInit"), &info));
    CHECK(object.range().begin == reinterpret_cast<uintptr_t>(info.dli_fbase));
    CHECK(object.range().has(object.find("cuInit")));
    CHECK_FALSE(object.range().has(dlsym(handle, "puts")));
    CHECK(LoadedObject().range().size == 0);
}

TEST_CASE("every exported function of the C library is where dlsym has it") {
    void* const handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(handle != nullptr);
    const LoadedObject object = object_of(handle);
    CHECK(std::string(object.soname()) == "libc.so.6");
    // Some are chosen for the CPU when they are looked up, some have several versions.
    for (const char* name : {"dlopen", "dlsym", "malloc", "memcpy", "strlen", "pthread_create", "environ", "puts"}) {
        CAPTURE(name);
        if (dlsym(RTLD_DEFAULT, name) != dlsym(handle, name))
            continue;  // a sanitizer stands before it
        CHECK(object.find(name) == dlsym(handle, name));
    }
}

TEST_CASE("an object is told by any address in it, and none by others") {
    static const int here = 0;
    const int on_the_stack = 0;
    CHECK(object_at(&here));
    CHECK(std::string(object_at(&here).path()).empty());  // the program
    CHECK_FALSE(object_at(&on_the_stack));
    CHECK_FALSE(object_of(nullptr));
    // Each of them can be asked, the kernel's own among them.
    unsigned objects = 0;
    CHECK_FALSE(any_object([&](const LoadedObject& object) {
        objects++;
        return object.find("nothing_of_that_name") != nullptr;
    }));
    CHECK(objects > 2);
}

TEST_CASE(
    "an object holds what is loaded of it, whatever else its table names, and from its first segment to its last") {
    constexpr uintptr_t kBase = 0x7f0000000000;
    const auto segment = [](uint32_t type, uint32_t flags, uintptr_t at, size_t size) {
        ElfW(Phdr) made{};
        made.p_type = type;
        made.p_flags = flags;
        made.p_vaddr = at;
        made.p_memsz = size;
        return made;
    };
    const ElfW(Phdr) segments[] = {segment(PT_GNU_STACK, PF_R | PF_W | PF_X, 0x90000, 0x1000),
                                   segment(PT_LOAD, PF_R, 0x1000, 0x1000),
                                   segment(PT_LOAD, PF_R | PF_X, 0x4000, 0x2000),
                                   segment(PT_LOAD, PF_R | PF_X, 0x8000, 0x1000),
                                   segment(PT_LOAD, PF_R | PF_W, 0xa000, 0x800),
                                   segment(PT_NOTE, PF_R | PF_X, 0x80000, 0x1000)};
    dl_phdr_info info{};
    info.dlpi_addr = kBase;
    info.dlpi_phdr = segments;
    info.dlpi_phnum = sizeof segments / sizeof segments[0];
    const LoadedObject object(info);
    REQUIRE(object);
    CHECK(std::string(object.path()).empty());
    CHECK(std::string(object.soname()).empty());
    const auto holds = [&](uintptr_t at) { return object.holds(reinterpret_cast<const void*>(kBase + at)); };
    for (const uintptr_t at : {0x1000, 0x1fff, 0x4000, 0x5fff, 0x8000, 0x8fff, 0xa000, 0xa7ff}) {
        CAPTURE(at);
        CHECK(holds(at));
        CHECK(object.range().has(reinterpret_cast<const void*>(kBase + at)));
    }
    for (const uintptr_t at : {0x0, 0xfff, 0x2000, 0x3fff, 0x6000, 0x9000, 0xa800, 0x80000, 0x90000, 0x90fff}) {
        CAPTURE(at);
        CHECK_FALSE(holds(at));
    }
    CHECK(object.range().begin == kBase + 0x1000);
    CHECK(object.range().size == 0xa800 - 0x1000);
    // Without a dynamic section it has no names, needs nothing and exports nothing.
    CHECK_FALSE(object.needs("libc.so.6"));
    CHECK(object.find("cuInit") == nullptr);
}

}  // namespace cuslice
