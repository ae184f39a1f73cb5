// SPDX-License-Identifier: Apache-2.0
#include "cli/launch/elf_file.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/elf/made_up_file.h"

namespace cuslice::tests {
namespace {

using cli::ElfFile;

std::string c_library() {
    Dl_info info{};
    REQUIRE(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info) != 0);
    return info.dli_fname;
}

MadeUpFile library() {
    MadeUpFile made;
    made.name(DT_NEEDED, "libcudart.so.12");
    made.name(DT_SONAME, "libown.so.1");
    made.name(DT_RPATH, "/old");
    made.name(DT_RUNPATH, "$ORIGIN:/new");
    const uint64_t interpreter = MadeUpFile::kTextsAt + made.texts.size();
    made.texts += "/lib/loader";
    made.segments.push_back(MadeUpFile::segment(PT_INTERP, interpreter, 0, 12));
    return made;
}

}  // namespace

TEST_CASE("a library's file says what it is called, what it needs and where it looks for that") {
    const Folder folder;
    const ElfFile file(folder.write("library", library().bytes()));
    CHECK(file.is_elf());
    CHECK(file.is_native());
    CHECK(file.soname() == "libown.so.1");
    CHECK(file.interpreter() == "/lib/loader");
    CHECK(file.search_path(DT_RPATH) == "/old");
    CHECK(file.search_path(DT_RUNPATH) == "$ORIGIN:/new");
    CHECK(file.needs("libcudart.so"));
    CHECK_FALSE(file.needs("libcudart.so.13"));
    CHECK_FALSE(file.has_section(".text"));
}

TEST_CASE("symbols are told apart by whose they are") {
    const ElfFile library(c_library()), program("/proc/self/exe");
    CHECK(library.exports("puts"));
    CHECK_FALSE(library.exports("put"));
    CHECK_FALSE(library.exports("puts_of_nobody"));
    CHECK_FALSE(library.asks_for("puts"));
    CHECK(program.asks_for("dladdr"));
    CHECK_FALSE(program.exports("dladdr"));
    CHECK(library.has_section(".dynsym"));
}

TEST_CASE("of what is no file of 64 bits nothing is known") {
    const Folder folder;
    MadeUpFile other = library();
    other.header.e_machine = EM_S390;
    CHECK_FALSE(ElfFile(folder.write("other", other.bytes())).is_native());
    CHECK(ElfFile(folder.write("other", other.bytes())).soname() == "libown.so.1");
    other.header.e_ident[EI_CLASS] = ELFCLASS32;
    const ElfFile narrow(folder.write("narrow", other.bytes()));
    CHECK(narrow.is_elf());
    CHECK_FALSE(narrow.is_native());
    CHECK(narrow.soname().empty());
    const std::string pipe = folder.path() + "/pipe";
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    for (const std::string& path :
         {folder.path(), folder.path() + "/none", folder.write("text", "#!/bin/sh\n"), pipe}) {
        const ElfFile file(path);
        CHECK_FALSE(file.is_elf());
        CHECK(file.interpreter().empty());
        CHECK_FALSE(file.exports("puts"));
        CHECK_FALSE(file.contains("libcuda"));
    }
}

TEST_CASE("a file that becomes shorter while it is read is one that ends there") {
    const Folder folder;
    const std::string path = folder.write("cut", read_text(c_library()));
    const ElfFile file(path);
    REQUIRE(file.exports("puts"));
    REQUIRE(truncate(path.c_str(), 4096) == 0);
    CHECK(file.is_native());
    CHECK_FALSE(file.exports("puts"));
    CHECK_FALSE(file.has_section(".dynsym"));
    CHECK_FALSE(file.contains("puts_of_nobody"));
}

TEST_CASE("bytes are found wherever they lie, also where two reads meet") {
    constexpr size_t kMiB = 1 << 20;
    const Folder folder;
    const std::string wanted = "libcuda.so";
    for (size_t at = kMiB - wanted.size() - 1; at <= kMiB + 1; ++at) {
        std::string bytes(2 * kMiB, '.');
        bytes.replace(at, wanted.size(), wanted);
        CHECK(ElfFile(folder.write("bytes", bytes)).contains(wanted));
    }
    CHECK_FALSE(ElfFile(folder.write("bytes", std::string(2 * kMiB, '.'))).contains(wanted));
}

}  // namespace cuslice::tests
