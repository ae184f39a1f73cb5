// SPDX-License-Identifier: Apache-2.0
// Least size of a module's variables, from images as tools write them, and from input that is no image.
#include "virtual_gpu/gpu/image_size.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/fake/driver/made_up_cubin.h"
#include "tests/fake/driver/made_up_fat_binary.h"
#include "tests/refused_calls.h"
#include "virtual_gpu/gpu/ptx_size.h"

using namespace cuslice;

namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

uint64_t ptx(const std::string& text) { return least_size_of_image((kHead + text).c_str()); }

}  // namespace

TEST_CASE("the variables of a PTX text that a compiler has to keep are added up") {
    CHECK(ptx(".visible .global .align 4 .b8 big[64424509440];\n") == 64424509440ull);
    CHECK(ptx(".visible .global .align 8 .f64 table[3][5];") == 120);
    CHECK(ptx(".visible .global .u32 one; .weak .global .v4 .f32 four[2];") == 4 + 32);
    CHECK(ptx(".visible .global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};\n.visible .global .b16 x;") == 8);
    CHECK(ptx(".visible .global .u32 a[2], b[3];") == 20);
    CHECK(ptx(".visible .global .v2 .u32 a[2] = {1, {2}}, b;") == 24);
    // Not counted: variables that a compiler may leave out or that lie elsewhere, and text that declares none.
    CHECK(ptx(".global .b8 unused[100];") == 0);
    CHECK(ptx(".extern .global .b8 elsewhere[100];") == 0);
    CHECK(ptx(".visible .global .attribute(.managed) .b8 hosts[100];") == 0);
    CHECK(ptx(".visible .const .b8 constant[100];") == 0);
    CHECK(ptx("// .visible .global .b8 a[100];\n/* .visible .global .b8 b[100]; */") == 0);
    CHECK(ptx("/*/ .visible .global .b8 a[100]; */// .visible .global .b8 b[100];\n") == 0);
    CHECK(ptx(".file 1 \";.visible .global .b8 c[100];\"\n") == 0);
    CHECK(ptx(".visible .entry k(.param .u64 .ptr .global .align 4 p) { ld.global.u32 %r1, [%rd1]; ret; }\n"
              ".visible .global .b8 after[7];") == 7);
    CHECK(ptx(".visible .global .b8 huge[99999999999999999999999];") == 0);
}

TEST_CASE("a cubin's variables are added up, and a fat binary takes what each of its parts does") {
    using fake_test::Cubin;
    const std::string cubin = Cubin(90, 8).bytes(), text = std::string(kHead) + ".visible .global .b8 a[1000];";
    CHECK(least_size_of_image(cubin.data()) == 4);
    const auto part = [](unsigned short kind, uint64_t flags, const std::string& code) {
        std::string entry(64, '\0');
        const uint32_t head = 64;
        const uint64_t size = code.size();
        std::memcpy(entry.data(), &kind, sizeof kind);
        std::memcpy(entry.data() + 4, &head, sizeof head);
        std::memcpy(entry.data() + 8, &size, sizeof size);
        std::memcpy(entry.data() + 40, &flags, sizeof flags);
        return entry + code;
    };
    const auto least = [](const std::string& parts) {
        std::string all("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
        const uint64_t size = parts.size();
        all.append(reinterpret_cast<const char*>(&size), sizeof size);
        all += parts;
        struct {
            uint32_t magic = 0x466243b1, version = 1;
            const void* container;
            const void* name = nullptr;
        } wrapper;
        wrapper.container = all.data();
        CHECK(least_size_of_image(&wrapper) == least_size_of_image(all.data()));
        return least_size_of_image(all.data());
    };
    constexpr uint64_t kCompressed = 0x2000;
    CHECK(least(part(2, 0, cubin)) == 4);
    CHECK(least(part(1, 0, text)) == 1000);
    CHECK(least(part(2, 0, cubin) + part(1, 0, text)) == 4);
    CHECK(least(part(1, 0, text) + part(2, kCompressed, cubin)) == 0);
    CHECK(least("") == 0);
    std::string no_elf = cubin;
    no_elf[0] = 0;
    CHECK(least(part(2, 0, no_elf)) == 0);
    std::string short_head = part(1, 0, text);
    short_head[4] = 63;  // an entry's head has 64 bytes
    CHECK(least(short_head) == 0);
}

TEST_CASE("a PTX text may be cut anywhere") {
    const std::string text = std::string(kHead) +
                             ".visible .global .align 4 .b8 a[1000]; // note\n.visible .entry k() { ret; }\n"
                             "/* c */ .weak .global .f64 b[4] = {1.0, 2.0};";
    for (size_t cut = 0; cut <= text.size(); cut++) {
        PtxSize size;
        size.add(std::string_view(text).substr(0, cut));
        size.add(std::string_view(text).substr(cut));
        CHECK(size.bytes() == 1032);
    }
}

TEST_CASE("a PTX text may begin with the variable") {
    PtxSize size;
    size.add(".visible .global .b8 a[7];");
    CHECK(size.bytes() == 7);
}

TEST_CASE("an image that ends where memory ends, or is none, ends nobody") {
    auto* pages = static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(mprotect(pages + 4096, 4096, PROT_NONE) == 0);
    const std::string text = std::string(kHead) + ".visible .global .b8 a[1000];";
    char* at = pages + 4096 - text.size() - 1;
    std::memcpy(at, text.c_str(), text.size() + 1);
    CHECK(least_size_of_image(at) == 1000);
    std::memcpy(at + 1, text.c_str(), text.size());  // without its end
    CHECK(least_size_of_image(at + 1) == 1000);
    for (const char* head : {"\x7f"
                             "ELF",
                             "\x50\xed\x55\xba", "\xb1\x43\x62\x46", "x   "}) {
        std::memset(pages, 0xff, 4096);
        std::memcpy(pages + 4092, head, 4);
        CHECK(least_size_of_image(pages + 4092) == 0);
        std::memcpy(pages, head, 4);
        CHECK(least_size_of_image(pages) == 0);
    }
    CHECK(least_size_of_image(pages + 4096) == 0);
    CHECK(least_size_of_image(nullptr) == 0);
    munmap(pages, 8192);
}

namespace {

// Bytes right before memory that nobody may touch.
const char* before_guard(const std::string& bytes) {
    constexpr size_t kRoom = 1 << 20, kGuard = 65536;
    static auto* const pages = [] {
        auto* const made = static_cast<char*>(
            mmap(nullptr, kRoom + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        mprotect(made + kRoom, kGuard, PROT_NONE);
        return made;
    }();
    REQUIRE(bytes.size() <= kRoom);
    return static_cast<const char*>(std::memcpy(pages + kRoom - bytes.size(), bytes.data(), bytes.size()));
}

std::string fat_binary() {
    using fake_test::Cubin;
    using fake_test::entry;
    const std::string text = std::string(kHead) + ".visible .global .b8 a[1000];";
    return fake_test::container(entry(2, 86, 0, Cubin(86, 7).bytes()) + entry(1, 80, 0, text) +
                                entry(2, 90, 0, Cubin(90, 8).bytes()));
}

}  // namespace

TEST_CASE("an image that is cut anywhere takes no more than the whole one, in memory and in a file") {
    char path[] = "/tmp/cuslice-image-XXXXXX";
    close(mkstemp(path));
    for (const std::string& whole : {fake_test::Cubin(90, 8).bytes(), fat_binary()}) {
        CHECK(least_size_of_image(before_guard(whole)) == 4);
        for (size_t length = 1; length <= whole.size(); length++) {
            const std::string cut = whole.substr(0, length);
            std::ofstream(path, std::ios::trunc) << cut;
            const uint64_t bytes = least_size_of_image(before_guard(cut));
            if (bytes > 4 || bytes != least_size_of_image_file(path))
                FAIL("cut to " << length << ": " << bytes);
        }
        CHECK(least_size_of_image_file(path) == 4);
    }
    std::remove(path);
}

TEST_CASE("an image that is damaged anywhere ends nobody") {
    std::mt19937_64 random(20260702);  // the standard says what follows
    const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
    for (const std::string& whole : {fake_test::Cubin(86, 7).bytes(), fake_test::Cubin(90, 8).bytes(), fat_binary()}) {
        for (int round = 0; round < 3000; round++) {
            static constexpr uint64_t kWords[] = {0, 1, 0xff, 0xffff, 0x7fffffff, ~0ull, 1ull << 63, ~0ull - 63};
            std::string bytes = whole;
            for (size_t change = 0; change <= below(4); change++) {
                const size_t size = size_t{1} << below(4);
                const uint64_t word = below(2) ? random() : kWords[below(8)];
                std::memcpy(bytes.data() + below(bytes.size() - size), &word, size);
            }
            least_size_of_image(before_guard(bytes));
        }
    }
}

TEST_CASE("a part of a fat binary is read to its own end") {
    using fake_test::entry;
    // A cubin that is cut, with the rest of it behind the part.
    const std::string cubin = fake_test::Cubin(90, 8).bytes();
    std::string parts = entry(2, 90, 0, cubin);
    const uint64_t size = cubin.size() - 64;
    std::memcpy(parts.data() + 8, &size, sizeof size);
    CHECK(least_size_of_image(fake_test::container(parts).data()) == 0);
}

TEST_CASE("an image is read also where a sandbox refuses process_vm_readv, or the kernel lacks it") {
    if (!cuslice::tests::can_filter_calls())
        return;
    const unsigned error = GENERATE(EPERM, EACCES, ENOSYS);
    CAPTURE(error);
    const std::string text = std::string(kHead) + std::string(10'000, '\n') + ".visible .global .b8 a[1000];";
    auto* pages = static_cast<char*>(mmap(nullptr, 20480, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(mprotect(pages + 16384, 4096, PROT_NONE) == 0);
    char* at = pages + 16384 - text.size();  // without its end
    std::memcpy(at, text.data(), text.size());
    const pid_t child = fork();
    if (child == 0) {
        if (!cuslice::tests::refuse_call(SYS_process_vm_readv, error))
            _exit(9);
        const int next = dup(0);
        if (ptx(".visible .global .b8 big[64424509440];") != 64424509440ull)
            _exit(1);
        if (least_size_of_image(at) != 1000)
            _exit(2);
        if (least_size_of_image(pages + 16384) != 0)
            _exit(3);
        close(next);
        if (dup(0) != next)
            _exit(4);  // no descriptor is left
        for (int file = dup(0); file >= 0;)
            file = dup(0);
        if (least_size_of_image(at) != 0)
            _exit(5);  // none can be had: nothing is known
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    munmap(pages, 20480);
}

TEST_CASE("a file is read as memory is, and one that isn't there takes nothing") {
    char path[] = "/tmp/cuslice-image-XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    const std::string text = std::string(kHead) + std::string(9000, ' ') + ".visible .global .b8 a[1000];";
    REQUIRE(write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(file);
    CHECK(least_size_of_image_file(path) == 1000);
    std::remove(path);
    CHECK(least_size_of_image_file(path) == 0);
    CHECK(least_size_of_image_file("/dev/null") == 0);
    CHECK(least_size_of_image_file(nullptr) == 0);
}

TEST_CASE("a cubin's file that was cut off before its symbols takes nothing") {
    std::string cubin = fake_test::Cubin(90, 8).bytes();
    Elf64_Ehdr header;
    std::memcpy(&header, cubin.data(), sizeof header);
    for (unsigned i = 0; i < header.e_shnum; i++) {
        char* const at = cubin.data() + header.e_shoff + i * sizeof(Elf64_Shdr);
        Elf64_Shdr section;
        std::memcpy(&section, at, sizeof section);
        if (section.sh_type == SHT_SYMTAB)
            section.sh_offset = cubin.size();
        std::memcpy(at, &section, sizeof section);
    }
    char path[] = "/tmp/cuslice-image-XXXXXX";
    const int file = mkstemp(path);
    REQUIRE(file >= 0);
    REQUIRE(write(file, cubin.data(), cubin.size()) == static_cast<ssize_t>(cubin.size()));
    close(file);
    CHECK(least_size_of_image_file(path) == 0);
    std::remove(path);
}
