// SPDX-License-Identifier: Apache-2.0
// For whom the folder of ledgers is made, and what files in it are called.
#include "policy/ledger/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "policy/base/own_descriptors.h"
#include "policy/ledger/layout.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/skip.h"

using namespace cuslice::ledger;

namespace {

// Stands for somebody who changes a folder after its creation and before its permissions are checked.
std::function<void(const char*)> exchange_made;

}  // namespace

// The linker gives folder.cpp this one for mkdir().
extern "C" int __real_mkdir(const char*, mode_t);
extern "C" int __wrap_mkdir(const char* path, mode_t mode) {
    const int made = __real_mkdir(path, mode);
    if (made == 0 && exchange_made)
        exchange_made(path);
    return made;
}

namespace {

mode_t mode_of(const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// In a process with a /dev/shm of its own, to which everybody can write and that isn't sticky. Nothing where none can
// be made here.
std::optional<bool> on_own_shm(const std::function<bool()>& holds) {
    constexpr int kImpossible = 77;
    const pid_t child = fork();
    if (child == 0) {
        const int spaces = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
        const bool own = cuslice::tests::enter_namespaces(spaces) &&
                         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("own", "/dev/shm", "tmpfs", 0, "mode=0777") == 0;
        _exit(own ? !holds() : kImpossible);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kImpossible)
        return std::nullopt;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("the usual folder is everybody's, and one that somebody names is that user's") {
    CHECK(folder_mode("/dev/shm/cuslice") == 01777);
    CHECK(folder_mode("/dev/shm/cuslice/..") == 0700);
    CHECK(folder_mode("/etc/systemd/system/ssh.service.d") == 0700);
}

TEST_CASE("a ledger's name has its user, its GPU and its version, and comes back as it was") {
    const std::string end = "." + std::to_string(kVersion) + ".ledger";
    const auto numbered = [](const std::string& number) {
        return "1000-G." + std::to_string(kVersion) + "-" + number + ".ledger";
    };
    char path[kPathBytes];
    REQUIRE(ledger_path("/dev/shm/x", 1000, "GPU-5f", path));
    CHECK(path == "/dev/shm/x/1000-GPU-5f" + end);
    unsigned user = 0;
    char uuid[64] = {};
    REQUIRE(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid));
    CHECK(user == 1000);
    CHECK(std::string(uuid) == "GPU-5f");
    unsigned number = 7;
    CHECK(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid, &number));
    CHECK(number == 0);
    REQUIRE(ledger_path("/dev/shm/x", 1000, "GPU-5f", path, kMaxNames - 1));
    CHECK(std::string(path) ==
          "/dev/shm/x/1000-GPU-5f." + std::to_string(kVersion) + "-" + std::to_string(kMaxNames - 1) + ".ledger");
    CHECK(parse_ledger_name(strrchr(path, '/') + 1, &user, uuid, &number));
    CHECK(number == kMaxNames - 1);
    CHECK(std::string(uuid) == "GPU-5f");
    CHECK(parse_ledger_name(("0-G" + end).c_str(), &user, uuid));
    CHECK(parse_ledger_name(("4294967295-" + std::string(63, 'G') + end).c_str(), &user, uuid));
    CHECK(user == 4294967295u);
    CHECK(std::string(uuid) == std::string(63, 'G'));
    for (const std::string& wrong : {std::string(),
                                     end,
                                     "-G" + end,
                                     "1000" + end,
                                     "1000-" + end,
                                     "1000G" + end,
                                     " 1000-G" + end,
                                     "+1000-G" + end,
                                     "01000-G" + end,
                                     "4294967296-G" + end,
                                     "1000-" + std::string(64, 'G') + end,
                                     std::string("1000-G.ledger"),
                                     "1000-G." + std::to_string(kVersion + 1) + ".ledger",
                                     "1000-G" + end + ".7-1f",
                                     "x-G" + end,
                                     numbered("0"),
                                     numbered("01"),
                                     numbered(""),
                                     numbered("x"),
                                     numbered(std::to_string(kMaxNames)),
                                     numbered("1-1")}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_ledger_name(wrong.c_str(), &user, uuid));
    }
    CHECK_FALSE(ledger_path(std::string(kPathBytes, 'f').c_str(), 1, "G", path));
}

TEST_CASE("a folder is made where there is none, and it is said where there can't be one") {
    const cuslice::tests::LedgerFolder folder;
    const std::string inner = folder.path + "/inner";
    LedgerError why;
    CHECK(make_folder(inner.c_str(), &why));
    CHECK(make_folder(inner.c_str(), nullptr));
    CHECK_FALSE(make_folder((folder.path + "/no/such").c_str(), &why));
    CHECK(why.no_place);  // another folder may do
    CHECK(std::string(why.text) == "can't make the folder " + folder.path + "/no/such: No such file or directory");
    LedgerError file;
    std::ofstream(folder.path + "/file") << "x";
    CHECK_FALSE(make_folder((folder.path + "/file").c_str(), &file));
    CHECK_FALSE(file.no_place);
    CHECK(std::string(file.text) == "can't use " + folder.path + "/file: Not a directory");
    REQUIRE(chmod(inner.c_str(), 0777) == 0);
    CHECK_FALSE(make_folder(inner.c_str(), nullptr));
    REQUIRE(chmod(inner.c_str(), 01777) == 0);
    CHECK(make_folder(inner.c_str(), nullptr));
}

TEST_CASE("whoever exchanges a folder that is being made has no rights of another one changed") {
    const std::string what = GENERATE("a link to a folder", "a link to a file", "another folder", "a private folder");
    CAPTURE(what);
    const auto holds = [&](const std::string& parent) {
        const std::string folder = parent + "/cuslice", victim = parent + "/victim";
        if (what == "a link to a file")
            std::ofstream(victim) << "x";
        if (what != "a link to a file")
            std::filesystem::create_directory(victim);
        const mode_t before = what == "a private folder" ? 0700 : 0755;
        chmod(victim.c_str(), before);
        const bool moved = what.find("link") == what.npos;
        exchange_made = [&](const char* made) {
            std::filesystem::rename(made, parent + "/away");
            if (moved)
                std::filesystem::rename(victim, made);
            if (!moved)
                std::filesystem::create_symlink(victim, made);
        };
        LedgerError why;
        const bool usable = make_folder(folder.c_str(), &why);
        exchange_made = nullptr;
        // A folder of this user's own, for this user alone, is what was asked for where nobody else is to have it.
        const bool as_made = before == folder_mode(folder.c_str());
        return mode_of(moved ? folder : victim) == before && usable == (moved && as_made);
    };
    const cuslice::tests::LedgerFolder named;
    CHECK(holds(named.path));
    const std::optional<bool> usual = on_own_shm([&] { return holds("/dev/shm"); });
    if (!usual)
        return cuslice::tests::skip("no mount namespace can be made here");
    CHECK(*usual);
}

TEST_CASE("a folder that is made has its rights whatever the umask") {
    const mode_t mask = GENERATE(0, 022, 077, 0177);
    CAPTURE(mask);
    const auto holds = [&](const std::string& folder) {
        const mode_t before = umask(mask);
        const bool made = make_folder(folder.c_str(), nullptr);
        umask(before);
        return made && mode_of(folder) == folder_mode(folder.c_str());
    };
    const cuslice::tests::LedgerFolder named;
    CHECK(holds(named.path + "/inner"));
    const std::optional<bool> usual = on_own_shm([&] { return holds("/dev/shm/cuslice"); });
    if (!usual)
        return cuslice::tests::skip("no mount namespace can be made here");
    CHECK(*usual);
}

TEST_CASE("a file without a name that the program has under the folder's number stays the program's") {
    const cuslice::tests::LedgerFolder folder;
    FolderHandle handle;
    REQUIRE(handle.open(folder.path.c_str()));
    const int number = handle.descriptor();
    const cuslice::FileIdentity ours = cuslice::identity_of(number);
    const int removed = open(folder.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    REQUIRE(dup2(removed, number) == number);
    const int again = handle.descriptor();
    CHECK(cuslice::identity_of(number) == cuslice::identity_of(removed));
    CHECK(again != number);
    CHECK(cuslice::identity_of(again) == ours);
    handle.close();
    close(number);
    close(removed);
}

TEST_CASE("only where there is no room, or nobody may write, another folder may have some") {
    for (const int error : {ENOSPC, EDQUOT, EROFS})
        CHECK(means_no_room(error));
    for (const int error : {0, EACCES, EPERM, ENOENT, EMFILE, ENOMEM})
        CHECK_FALSE(means_no_room(error));
}
