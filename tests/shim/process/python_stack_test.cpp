// SPDX-License-Identifier: Apache-2.0
// Python's frames as they might be in memory, whatever that is. tests/preload has the interpreters themselves.
#include "shim/process/python_stack.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "virtual_gpu/driver/scratch.h"

namespace {

const char* said_version = "3.11.2 (main)";
void* thread_state = nullptr;
int asked_position = -1;

}  // namespace

// The exports of an interpreter, found as they are in a program that has one.
extern "C" {
[[gnu::visibility("default")]] char PyCode_Type[8], PyUnicode_Type[8];
[[gnu::visibility("default")]] const char* Py_GetVersion() { return said_version; }
[[gnu::visibility("default")]] void* PyGILState_GetThisThreadState() { return thread_state; }
[[gnu::visibility("default")]] int PyCode_Addr2Line(void*, int position) { return asked_position = position; }
}

namespace cuslice {
namespace {

std::string stack() {
    const Scratch<PythonStack> stack;
    REQUIRE(stack);
    return std::string(stack->read());
}

// Objects of CPython 3.11, in pages behind which nothing is mapped.
class Objects {
  public:
    Objects() {
        base_ =
            static_cast<char*>(mmap(nullptr, kSize + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        REQUIRE(mprotect(base_ + kSize, 4096, PROT_NONE) == 0);
        thread_state = base_;
    }
    ~Objects() {
        munmap(base_, kSize + 4096);
        thread_state = nullptr;
    }
    template <typename T>
    void put(size_t at, T value) {
        std::memcpy(base_ + at, &value, sizeof value);
    }
    char* at(size_t offset) { return base_ + offset; }
    void text(size_t at, const std::string& text) {
        put(at + 8, static_cast<const void*>(PyUnicode_Type));
        put(at + 16, text.size());
        put(at + 32, uint32_t{1 << 2 | 1 << 5 | 1 << 6});
        std::memcpy(base_ + at + 48, text.data(), text.size());
    }
    void code(size_t at, size_t file, size_t function) {
        put(at + 8, static_cast<const void*>(PyCode_Type));
        put(at + 16, uint64_t{100});
        put(at + 112, base_ + file);
        put(at + 128, base_ + function);
    }
    void frame(size_t at, size_t code, size_t back) {
        put(at + 32, base_ + code);
        put(at + 48, back ? base_ + back : nullptr);
        put(at + 56, base_ + code + 184 + 2 * 21);
    }
    void innermost(size_t frame) {
        put(56, base_ + 512);
        put(512 + 8, base_ + frame);
    }
    // A function that calls itself, by way of main.
    void usual() {
        text(2048, "/home/a/train.py");
        text(2304, "main");
        text(2560, "step");
        code(3072, 2048, 2304);
        code(3584, 2048, 2560);
        frame(1024, 3584, 1152);
        frame(1152, 3072, 0);
        innermost(1024);
    }
    static constexpr size_t kSize = 8192;

  private:
    char* base_;
};

constexpr char kUsual[] = "main (/home/a/train.py:42);step (/home/a/train.py:42)";

}  // namespace

TEST_CASE("frames are read outermost first, and errno stays") {
    Objects objects;
    objects.usual();
    errno = 77;
    CHECK(stack() == kUsual);
    CHECK(errno == 77);
    CHECK(asked_position == 42);
}

TEST_CASE("an interpreter whose layout isn't known has no stacks") {
    Objects objects;
    objects.usual();
    for (const char* version : {"3.7.9 (x)", "3.14.0 (x)", "3.1", "2.7.18", "", "3.", "4.11.0", "311",
                                "3.13.0 experimental free-threading build (x)"}) {
        said_version = version;
        INFO(version);
        CHECK(stack().empty());
    }
    said_version = "3.11.2 (main)";
    CHECK(stack() == kUsual);
}

TEST_CASE("a thread that Python doesn't know, or that runs none, has no stack") {
    CHECK(stack().empty());
    Objects objects;
    objects.put(56, objects.at(512));
    CHECK(stack().empty());
}

TEST_CASE("what is no frame, code or text is not taken for one, and frames that go round come to an end") {
    Objects objects;
    objects.usual();
    SECTION("the outer frame's code is of another type") {
        objects.put(3072 + 8, objects.at(0));
        CHECK(stack() == "step (/home/a/train.py:42)");
    }
    SECTION("a name is none") {
        objects.put(2560 + 8, objects.at(0));
        CHECK(stack() == "main (/home/a/train.py:42); (/home/a/train.py:42)");
    }
    SECTION("a name ends where memory ends") {
        objects.text(Objects::kSize - 52, "step");
        objects.put(3584 + 128, objects.at(Objects::kSize - 52));
        CHECK(stack() == kUsual);
        objects.put(Objects::kSize - 52 + 16, uint64_t{5});
        CHECK(stack() == "main (/home/a/train.py:42); (/home/a/train.py:42)");
    }
    SECTION("an instruction lies outside of the code") {
        objects.put(1024 + 56, objects.at(3584 + 184 + 200));
        CHECK(stack() == "main (/home/a/train.py:42);step (/home/a/train.py)");
    }
    SECTION("a frame is its own caller") {
        objects.frame(1024, 3584, 1024);
        CHECK(stack().find("…;step (/home/a/train.py:42);step") == 0);
    }
    SECTION("frames that don't count go round") {
        objects.put(1152 + 69, uint8_t{3});
        objects.put(1152 + 48, objects.at(1152));
        CHECK(stack() == "step (/home/a/train.py:42)");
    }
    SECTION("the caller lies nowhere") {
        objects.put(1024 + 48, objects.at(Objects::kSize - 8));
        CHECK(stack() == "step (/home/a/train.py:42)");
    }
}

TEST_CASE("memory of any bytes gives a stack or none, and ends nobody") {
    std::mt19937_64 random(7);
    for (const char* version : {"3.8.1", "3.9.1", "3.10.1", "3.11.1", "3.12.1", "3.13.1"}) {
        said_version = version;
        for (int round = 0; round < 300; round++) {
            Objects objects;
            objects.usual();
            for (size_t changes = random() % 200; changes != 0; changes--)
                objects.put(random() % (Objects::kSize / 8) * 8, objects.at(random() % (Objects::kSize / 8) * 8));
            for (size_t changes = random() % 20; changes != 0; changes--)
                objects.put(random() % (Objects::kSize - 8), random());
            CHECK(stack().size() <= trace::kMostOfStack);
        }
    }
    said_version = "3.11.2 (main)";
}

}  // namespace cuslice
