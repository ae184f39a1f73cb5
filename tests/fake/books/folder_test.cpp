// SPDX-License-Identifier: Apache-2.0
// The folder of the books, which anybody may have made first.
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fake/books/books.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/fake/child.h"

using namespace cuslice::fake;
using fake_test::in_child;
using fake_test::Report;

namespace {

GpuSpec small_gpu() {
    GpuSpec gpu;
    gpu.name = "small";
    gpu.memory = 1 << 30;
    gpu.uuid[0] = 7;
    return gpu;
}

/// A /dev/shm of this process's own, by root's rights or in a user namespace; false where there can't be one.
bool enter_own_shared_memory() {
    const int namespaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    return cuslice::tests::enter_namespaces(namespaces) &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777") == 0;
}

const std::string usual = "/dev/shm/cuslice-fake-0", victim = "/dev/shm/victim";

/// The accounting can't be had there, and the file that a neighbour's link leads to is as it was.
void expect_refused(const Report& report) {
    Books books;
    std::string error;
    EXPECT(!books.open(small_gpu(), error));
    EXPECT(error.find(usual + ": it is another user's, or no folder (CUSLICE_FAKE_DIR)") != std::string::npos);
    EXPECT_EQUAL(std::filesystem::file_size(victim), 8U);
    EXPECT(!std::filesystem::exists(victim + ".lock"));
}

/// Lets `make` put something of another user's in the place of the usual folder, and checks that the books refuse it.
/// Checks nothing if `make` returns false.
std::string in_folder_of_others(const std::function<bool(const Report&)>& make) {
    if (!cuslice::tests::can_unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS))
        return "";
    return in_child({{"CUSLICE_FAKE_DIR", ""}}, [&](const Report& report) {
        EXPECT(enter_own_shared_memory());
        std::ofstream(victim) << "precious";
        if (make(report))
            expect_refused(report);
    });
}

}  // namespace

TEST_CASE("books are not kept in a usual folder that somebody else has made first") {
    const std::string accounting = "/" + uuid_text(small_gpu());
    CHECK(in_folder_of_others([&](const Report& report) {  // with links to the user's own files
              EXPECT(mkdir(usual.c_str(), 0777) == 0);
              EXPECT(symlink(victim.c_str(), (usual + accounting).c_str()) == 0);
              if (!cuslice::tests::can_be_other_users())
                  return false;
              EXPECT(chown(usual.c_str(), 1234, 1234) == 0);
              return true;
          }) == "");
    CHECK(in_folder_of_others([&](const Report& report) {  // a link to a folder with such a link
              EXPECT(mkdir("/dev/shm/theirs", 0777) == 0);
              EXPECT(symlink(victim.c_str(), ("/dev/shm/theirs" + accounting).c_str()) == 0);
              EXPECT(symlink("/dev/shm/theirs", usual.c_str()) == 0);
              return true;
          }) == "");
    CHECK(in_folder_of_others([&](const Report& report) {  // a file
              EXPECT(std::ofstream(usual).good());
              return true;
          }) == "");
    CHECK(in_child({{"CUSLICE_FAKE_DIR", ""}}, [](const Report& report) {
              Books books;
              std::string error;
              if (enter_own_shared_memory())
                  EXPECT(books.open(small_gpu(), error));
          }) == "");
}
