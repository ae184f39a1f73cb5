// SPDX-License-Identifier: Apache-2.0
// The timekeeper as the driver starts it.

#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fake/books/byte_lock.h"
#include "tests/catch.h"
#include "tests/fake/child.h"

using namespace fake_test;

namespace {

/// The process that has byte 0 of the lock.
pid_t keeper_of(const std::string& folder) {
    // Left open: closing it would drop the driver's own lock.
    const int file = open((folder + "/time.lock").c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock = cuslice::fake::lock_of(F_WRLCK, 0);
    return fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

}  // namespace

TEST_CASE("a timekeeper has nothing of the program that started it") {
    const Folder folder;
    const Environment timed = {
        {"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_COST", "*=1ms"}, {"CUSLICE_FAKE_DIR", folder.path()}};
    CHECK(in_child(timed, [&](const Report& report) {
              const int file = open("/etc/passwd", O_RDONLY);  // without O_CLOEXEC
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              const pid_t keeper = keeper_of(folder.path());
              EXPECT(keeper != 0);
              const std::string proc = "/proc/" + std::to_string(keeper);
              std::ifstream environment(proc + "/environ");
              EXPECT_EQUAL(std::string(std::istreambuf_iterator(environment), {}), std::string());
              EXPECT_EQUAL(std::filesystem::read_symlink(proc + "/cwd"), std::filesystem::path("/"));
              EXPECT_EQUAL(getsid(keeper), keeper);
              for (const auto& entry : std::filesystem::directory_iterator(proc + "/fd")) {
                  const std::string path = std::filesystem::read_symlink(entry.path());
                  EXPECT(path == "/dev/null" || path.starts_with(folder.path() + "/time"));
              }
              close(file);
          }) == "");
}

TEST_CASE("work takes time in a folder that nobody has used yet") {
    const Folder folder;
    const std::string unused = folder.path() + "/unused";
    const Environment timed = {{"CUSLICE_FAKE", "t4"}, {"CUSLICE_FAKE_COST", "*=1ms"}, {"CUSLICE_FAKE_DIR", unused}};
    CHECK(in_child(timed, [&](const Report& report) {
              EXPECT_EQUAL(cuInit(0), CUDA_SUCCESS);
              EXPECT(keeper_of(unused) != 0);
          }) == "");
}
