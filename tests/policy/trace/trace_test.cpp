// SPDX-License-Identifier: Apache-2.0
// Rows and names of recordings.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "config/gpu_selector.h"
#include "policy/trace/file.h"
#include "policy/trace/row.h"
#include "tests/catch.h"
#include "tests/policy/trace/recordings.h"

namespace cuslice::trace {
namespace {

std::string text_of(const Row& row) {
    RowText text;
    write_row(text, row);
    return std::string(text.view());
}

}  // namespace

TEST_CASE("a row has the columns of RMM's log and what is known of its GPU, whatever its numbers") {
    CHECK(text_of({812, 32'523'000'417, Action::allocate, 0x7f3a40000000, 1048576, 0}) ==
          "812,09:02:03.000417,allocate,0x7f3a40000000,1048576,0x0,,,,\n");
    CHECK(text_of({1, 0, Action::free, 1, 1, 2}) == "1,00:00:00.000000,free,0x1,1,0x2,,,,\n");
    CHECK(text_of({0, 86'399'999'999, Action::allocate_failure, 0, 0, 0xf0}) ==
          "0,23:59:59.999999,allocate failure,0x0,0,0xf0,,,,\n");
    CHECK(text_of({0, 86'400'000'000, Action::free, 16, 0, 0}) == "0,00:00:00.000000,free,0x10,0,0x0,,,,\n");
    CHECK(text_of({1, 0, Action::free, 1, 1, 2, "GPU-5f", 0, 7}) == "1,00:00:00.000000,free,0x1,1,0x2,GPU-5f,0,7,\n");
    CHECK(text_of({1, 0, Action::free, 1, 1, 2, "GPU-5f"}) == "1,00:00:00.000000,free,0x1,1,0x2,GPU-5f,,,\n");
    constexpr uint64_t kMax = ~0ull;
    const std::string uuid(sizeof(GpuIdentity::uuid) - 1, 'f');
    const Row longest{~0u, kMax, Action::allocate_failure, kMax, kMax, kMax, uuid, kMax - 1, kMax - 1};
    CHECK(text_of(longest).find(",allocate failure,0xffffffffffffffff,18446744073709551615,0xffffffffffffffff," + uuid +
                                ",18446744073709551614,18446744073709551614,\n") != std::string::npos);
    const std::string too_long(200, 'f');
    const Row cut{~0u, kMax, Action::allocate_failure, kMax, kMax, kMax, too_long, kMax - 1, kMax - 1};
    CHECK(text_of(cut) == text_of(longest));
}

TEST_CASE("a field can't end its row, another field or a frame, whatever it says") {
    FixedText<64> field;
    append_field(field, "f (a,b;\"100%\"\n\x7f\x1b)");
    append_field(field, " é");
    CHECK(field.view() == "f (a%2Cb%3B%22100%25%22%0A%7F%1B) é");
}

TEST_CASE("a file's name has the pid where it says so, and another one after each that is taken") {
    const auto name = [](std::string_view given, unsigned attempt) {
        return std::string(file_name(given, 812, attempt).view());
    };
    CHECK(name("/tmp/a.csv", 0) == "/tmp/a.csv");
    CHECK(name("/tmp/a.csv", 1) == "/tmp/a.csv.812");
    CHECK(name("/tmp/a.csv", 2) == "/tmp/a.csv.812.2");
    CHECK(name("/tmp/%p/a-%p.csv", 0) == "/tmp/812/a-812.csv");
    CHECK(name("/tmp/a-%p.csv", 1) == "/tmp/a-812.csv.2");
    CHECK(name("/tmp/a-%p.csv", 2) == "/tmp/a-812.csv.3");
    CHECK(name("/tmp/100%", 0) == "/tmp/100%");
    CHECK(name("/tmp/%%p", 0) == "/tmp/%812");
    CHECK(file_name(std::string(5000, 'a'), 812, 0).cut());
}

TEST_CASE("a file that is there is never touched, and what can't be made is told with its name") {
    const TestFolder folder;
    Reason why;
    std::ofstream(folder.at("a")) << "somebody's";
    File first, second;
    REQUIRE(first.make(folder.at("a"), why));
    REQUIRE(second.make(folder.at("a"), why));
    const std::string own = folder.at("a") + "." + std::to_string(getpid());
    CHECK(first.path().view() == own);
    CHECK(second.path().view() == own + ".2");
    CHECK(append(first, "812,row\n") == File::Appended::done);
    CHECK(rows_in(own) == std::string(header_for(Columns::usual)) + "812,row\n");
    CHECK(read(own + ".2") == header_for(Columns::usual));
    CHECK(read(folder.at("a")) == "somebody's");

    errno = 4711;
    File none;
    CHECK_FALSE(none.make(folder.at("nowhere/b"), why));
    CHECK(why.view() == "can't make " + folder.at("nowhere/b") + ": No such file or directory");
    REQUIRE(mkfifo(folder.at("pipe").c_str(), 0600) == 0);
    CHECK_FALSE(none.make(folder.at("pipe"), why));
    CHECK(why.view() == folder.at("pipe") + " is not a regular file");
    CHECK_FALSE(none.make("/dev/full", why));
    CHECK(why.view() == "can't write to /dev/full: No space left on device");
    CHECK(errno == 4711);
}

TEST_CASE("rows go into the file that was made, whatever becomes of the descriptor and the name") {
    const TestFolder folder;
    Reason why;
    File file;
    REQUIRE(file.make(folder.at("a"), why));
    // The lowest free number is the file's, and then another's.
    const int next = open(folder.at("other").c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(dup2(next, next - 1) == next - 1);
    REQUIRE(append(file, "812,one\n") == File::Appended::done);
    CHECK(read(folder.at("other")).empty());
    CHECK(rows_in(folder.at("a")) == std::string(header_for(Columns::usual)) + "812,one\n");

    REQUIRE(rename(folder.at("a").c_str(), folder.at("b").c_str()) == 0);
    CHECK(append(file, "812,two\n") == File::Appended::done);
    CHECK(rows_in(folder.at("b")) == std::string(header_for(Columns::usual)) + "812,one\n812,two\n");
    close(next);
    close(next - 1);
}

TEST_CASE("a child that the C library doesn't know of writes nothing into its parent's file") {
    const TestFolder folder;
    Reason why;
    File file;
    REQUIRE(file.make(folder.at("a"), why));
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0)
        syscall(SYS_exit_group, append(file, "812,child\n") == File::Appended::not_ours ? 0 : 1);
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(append(file, "812,parent\n") == File::Appended::done);
    CHECK(rows_in(folder.at("a")) == std::string(header_for(Columns::usual)) + "812,parent\n");
}

}  // namespace cuslice::trace
