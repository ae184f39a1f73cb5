// SPDX-License-Identifier: Apache-2.0
// A file of settings that the user can't reach, and one that they can't read.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/cli/child.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

// An installation and a home folder that is somebody else's, for a user whom permissions bind. The tree may lie where
// such a user can't go, so the launcher is one that needs nothing of it: the system's file would be in this folder.
class Stranger {
  public:
    Stranger() {
        namespace fs = std::filesystem;
        fs::copy(kTree, installed_, fs::copy_options::recursive);
        fs::copy_file(CUSLICE_TEST_LAUNCHER_ANYWHERE, launcher_, fs::copy_options::overwrite_existing);
        file_ = folder_.write("home/.config/cuslice/cuslice.toml", "[memory]\nlimit = \"3GiB\"\n", 0);
        REQUIRE(::chmod(folder_.path().c_str(), 0755) == 0);
    }
    ~Stranger() { close_home(0755); }

    void close_home(unsigned mode) const { REQUIRE(::chmod((folder_.path() + "/home").c_str(), mode) == 0); }
    Outcome run(const Words& options) const {
        const Words command = with(with({launcher_, "run"}, options), {"--", "/bin/echo", "started"});
        // Permissions don't bind root: another user has to run it.
        const Words nobody = {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"};
        return tests::run(::geteuid() == 0 ? with(nobody, command) : command,
                          plain_environment(folder_.path() + "/home"), folder_.path());
    }
    const std::string& file() const { return file_; }

  private:
    Folder folder_;
    std::string installed_ = folder_.path() + "/installed", launcher_ = installed_ + "/bin/cuslice", file_;
};

}  // namespace

TEST_CASE(
    "a home folder that can't be entered has no settings, and a line at info says so; a file there must be read") {
    if (::geteuid() == 0 && !can_be_other_users())
        return;
    const Stranger stranger;
    stranger.close_home(0);
    const Outcome closed = stranger.run({});
    CHECK(closed.out == "started\n");
    CHECK(closed.err.empty());
    const Outcome told = stranger.run({"--log=info"});
    CHECK(told.out == "started\n");
    CHECK(told.err == "cuslice: " + stranger.file() + ": skipped: a folder on its path can't be entered\n");

    stranger.close_home(0755);
    const Outcome there = stranger.run({});
    CHECK(there.exit_code == 78);
    CHECK(there.out.empty());
    CHECK(there.err == "cuslice: " + stranger.file() + ": cannot be read: permission denied\n");
}

}  // namespace cuslice::tests
