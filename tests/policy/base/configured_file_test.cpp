// SPDX-License-Identifier: Apache-2.0
// Files that a setting names, in folders that others can write to: nothing of theirs is followed, opened or waited for.
#include "policy/base/configured_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/skip.h"

namespace cuslice {
namespace {

namespace fs = std::filesystem;
using tests::skip;

constexpr unsigned kStranger = 64999;

struct Folder {
    Folder() {
        char name[] = "/tmp/cuslice-test-XXXXXX";
        path = mkdtemp(name);
        shared = path + "/shared";
        fs::create_directory(shared);
        std::ofstream(path + "/precious") << "precious";
    }
    ~Folder() { fs::remove_all(path); }
    std::string precious() const {
        std::ifstream file(path + "/precious");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    // Makes `shared` a folder that others can write to. False, and the case is skipped, where only root can.
    bool open_to_others(const std::string& how) const {
        if (how == "sticky")
            return chmod(shared.c_str(), 01777) == 0;
        if (how == "everybody")
            return chmod(shared.c_str(), 0777) == 0;
        if (!tests::can_be_other_users())
            return false;
        if (how == "group")
            return chown(shared.c_str(), -1, kStranger) == 0 && chmod(shared.c_str(), 0770) == 0;
        return chown(shared.c_str(), kStranger, -1) == 0;  // "owner"
    }
    std::string path, shared;
};

// Appends a line as log and record do.
std::string write_to(const std::string& path) {
    FileError error;
    const int file = ConfiguredFile(path).append_or_make(error);
    if (file < 0)
        return error.text();
    const bool written = write(file, "line\n", 5) == 5;
    close(file);
    return written ? "written" : "not written";
}

const std::string kLink = "a symbolic link leads there, in a folder that others can write to";
const std::string kTwoNames = "it has another name too, in a folder that others can write to";
const std::string kForeign = "it is another user's, in a folder that others can write to";

}  // namespace

TEST_CASE("configured file: in a folder that others can write to, no link leads anywhere") {
    const std::string how = GENERATE("sticky", "everybody", "group", "owner");
    const std::string attack = GENERATE("link", "chain", "dangling link", "relative link", "link to a device",
                                        "link to a FIFO", "link to a folder", "link further up");
    CAPTURE(how, attack);
    const Folder folder;
    if (!folder.open_to_others(how))
        return;
    const std::string precious = folder.path + "/precious";
    std::string log = folder.shared + "/log";
    if (attack == "link")
        fs::create_symlink(precious, log);
    if (attack == "chain") {
        fs::create_symlink("second", log);
        fs::create_symlink(precious, folder.shared + "/second");
    }
    if (attack == "dangling link")
        fs::create_symlink(folder.path + "/new", log);
    if (attack == "relative link")
        fs::create_symlink("../precious", log);
    if (attack == "link to a device")
        fs::create_symlink("/dev/null", log);
    if (attack == "link to a FIFO") {
        REQUIRE(mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
        fs::create_symlink(folder.path + "/fifo", log);
    }
    if (attack == "link to a folder" || attack == "link further up") {
        fs::create_directory(folder.path + "/private");
        fs::create_symlink(folder.path + (attack == "link to a folder" ? "" : "/private"), folder.shared + "/sub");
        log = folder.shared + (attack == "link to a folder" ? "/sub/precious" : "/sub/../precious");
    }
    CHECK(write_to(log) == kLink);
    CHECK(folder.precious() == "precious");
    CHECK_FALSE(fs::exists(folder.path + "/new"));
}

TEST_CASE("configured file: in a folder that others can write to, no other name of a file is one") {
    const std::string how = GENERATE("sticky", "everybody", "group", "owner");
    CAPTURE(how);
    const Folder folder;
    if (!folder.open_to_others(how))
        return;
    fs::create_hard_link(folder.path + "/precious", folder.shared + "/log");
    CHECK(write_to(folder.shared + "/log") == kTwoNames);
    CHECK(folder.precious() == "precious");
}

TEST_CASE("configured file: another user's file, FIFO or device is not written to in a folder of everybody's") {
    const Folder folder;
    if (!tests::can_be_other_users())
        return;
    REQUIRE(folder.open_to_others("sticky"));
    const std::string log = folder.shared + "/log";
    const std::string kind = GENERATE("file", "readable file", "FIFO", "device");
    CAPTURE(kind);
    if (kind == "device") {
        if (mknod(log.c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0)
            return skip("no device can be made here");
        CHECK(write_to(log) == "it is a device, in a folder that others can write to");
        return;
    }
    if (kind == "FIFO")
        REQUIRE(mkfifo(log.c_str(), 0666) == 0);
    else
        std::ofstream(log).put('x');
    chmod(log.c_str(), kind == "readable file" ? 0644 : 0666);
    REQUIRE(chown(log.c_str(), kStranger, kStranger) == 0);
    const int reader = kind == "FIFO" ? open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
    CHECK(write_to(log) == kForeign);
    if (reader >= 0)
        close(reader);
}

TEST_CASE("configured file: one's own files are written to wherever they lie, and new ones made") {
    const std::string how = GENERATE("own folder", "sticky", "everybody", "group", "owner");
    CAPTURE(how);
    const Folder folder;
    if (how != "own folder" && !folder.open_to_others(how))
        return;
    const std::string log = folder.shared + "/log";
    CHECK(write_to(log) == "written");
    CHECK(write_to(log) == "written");
    CHECK(fs::file_size(log) == 10);
    fs::create_directory(folder.shared + "/own");
    CHECK(write_to(folder.shared + "/own/../own/./log") == "written");
    // A FIFO is not waited for.
    const std::string fifo = folder.shared + "/fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    CHECK(write_to(fifo) == strerror(ENXIO));
    const int reader = open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    CHECK(write_to(fifo) == "written");
    close(reader);
}

TEST_CASE("configured file: in one's own folder links, other names and devices are one's own choice") {
    const Folder folder;
    const std::string target = folder.path + "/target";
    fs::create_symlink("../target", folder.shared + "/link");
    fs::create_symlink(folder.shared + "/link", folder.shared + "/chain");
    fs::create_symlink(folder.shared, folder.path + "/sub");
    std::ofstream(target).put('x');
    fs::create_hard_link(target, folder.path + "/name");
    fs::create_symlink("/dev/null", folder.path + "/null");
    for (const char* name :
         {"/shared/link", "/shared/chain", "/sub/link", "/sub//chain", "/sub/../shared/link", "/name", "/null"}) {
        CAPTURE(name);
        CHECK(write_to(folder.path + name) == "written");
    }
    CHECK(fs::file_size(target) == 31);
    CHECK(write_to("/dev/null") == "written");
    fs::create_symlink(folder.path + "/new", folder.path + "/dangling");
    CHECK(write_to(folder.path + "/dangling") == "written");
    CHECK(fs::file_size(folder.path + "/new") == 5);
}

TEST_CASE("configured file: a block device is never opened") {
    const Folder folder;
    const std::string disk = folder.path + "/disk";
    if (geteuid() != 0 || mknod(disk.c_str(), S_IFBLK | 0600, makedev(7, 250)) != 0)
        return skip("no device can be made here");
    CHECK(write_to(disk) == "it is a block device");
    fs::create_symlink(disk, folder.path + "/link");
    CHECK(write_to(folder.path + "/link") == "it is a block device");
}

TEST_CASE("configured file: descriptors of the process can be named") {
    const Folder folder;
    const std::string log = folder.path + "/log";
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    CHECK(write_to("/proc/self/fd/" + std::to_string(file)) == "written");
    CHECK(write_to("/dev/fd/" + std::to_string(file)) == "written");
    CHECK(fs::file_size(log) == 10);
    close(file);
}

TEST_CASE("configured file: paths that are none are refused with the kernel's reason") {
    const Folder folder;
    fs::create_symlink("loop", folder.path + "/loop");
    CHECK(write_to("") == strerror(ENOENT));
    CHECK(write_to("/") == strerror(EISDIR));
    CHECK(write_to(folder.shared) == strerror(EISDIR));
    CHECK(write_to(folder.shared + "/") == strerror(EISDIR));
    CHECK(write_to(folder.path + "/nowhere/log") == strerror(ENOENT));
    CHECK(write_to(folder.path + "/precious/log") == strerror(ENOTDIR));
    CHECK(write_to(folder.path + "/loop") == strerror(ELOOP));
    CHECK(write_to(folder.path + "/loop/log") == strerror(ELOOP));
    CHECK(write_to(folder.path + "/" + std::string(300, 'x')) == strerror(ENAMETOOLONG));
    CHECK(write_to(std::string(5000, '/') + "log") == strerror(ENAMETOOLONG));
}

TEST_CASE("configured file: a new one replaces nothing, and is removed from where it was made") {
    const Folder folder;
    FileError error;
    ConfiguredFile there(folder.path + "/precious");
    CHECK(there.make(error) == -1);
    CHECK(error.error == EEXIST);
    fs::create_symlink(folder.path + "/new", folder.path + "/dangling");
    CHECK(ConfiguredFile(folder.path + "/nowhere/x").append(error) == -1);

    // The folder becomes another one in between.
    ConfiguredFile made(folder.shared + "/precious");
    const int file = made.make(error);
    REQUIRE(file >= 0);
    close(file);
    fs::rename(folder.shared, folder.path + "/moved");
    fs::create_symlink(folder.path, folder.shared);
    made.remove();
    CHECK(folder.precious() == "precious");
    CHECK(fs::is_empty(folder.path + "/moved"));
}

TEST_CASE("configured file: whoever exchanges the file all the time gets nothing written elsewhere") {
    const std::string attack = GENERATE("symlink", "hard link", "folder");
    CAPTURE(attack);
    const Folder folder;
    REQUIRE(folder.open_to_others("sticky"));
    const std::string log = folder.shared + (attack == "folder" ? "/sub/precious" : "/log");
    const pid_t attacker = fork();
    if (attacker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const std::string trap = folder.shared + "/trap", sub = folder.shared + "/sub", own = folder.shared + "/own";
        std::error_code ignored;
        for (;;) {
            if (attack == "folder") {
                fs::create_directory(sub, ignored);
                fs::rename(sub, own, ignored);
                fs::create_symlink(folder.path, sub, ignored);
                fs::remove(sub, ignored);
                fs::remove_all(own, ignored);
                continue;
            }
            if (attack == "symlink")
                fs::create_symlink(folder.path + "/precious", trap, ignored);
            if (attack == "hard link")
                fs::create_hard_link(folder.path + "/precious", trap, ignored);
            fs::rename(trap, log, ignored);
            fs::remove(trap, ignored);
            fs::remove(log, ignored);
        }
    }
    for (int round = 0; round < 5000; ++round)
        write_to(log);
    kill(attacker, SIGKILL);
    waitpid(attacker, nullptr, 0);
    CHECK(folder.precious() == "precious");
}

}  // namespace cuslice
