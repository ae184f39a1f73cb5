// SPDX-License-Identifier: Apache-2.0
// The removal of stats files whose processes were killed, also in pid namespaces that nobody can look into.
#include "cli/ledger/dead_stats.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"
#include "tests/catch.h"
#include "tests/skip.h"

namespace cuslice::tests {
namespace {

struct MemoryFolder {
    MemoryFolder() {
        char name[] = "/dev/shm/cuslice-test-XXXXXX";
        if (mkdtemp(name) != nullptr)
            path = name;
        struct statfs system {};
        in_memory = !path.empty() && statfs(path.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC;
    }
    ~MemoryFolder() {
        if (!path.empty())
            std::filesystem::remove_all(path);
    }
    std::string path;
    bool in_memory = false;
};

std::string file_of(const std::string& folder, uint64_t space, int pid) {
    stats::NameText name;
    stats::write_name({space, pid, 1}, name);
    return folder + "/" + name;
}

// A process that has the file mapped, as one of cuslice's has, until it is killed.
pid_t writer(const std::string& path, bool keep_open) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        if (ftruncate(file, 4096) != 0)
            _exit(1);
        if (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED)
            _exit(1);
        if (!keep_open)
            close(file);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    char byte = 0;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    return child;
}

void kill_and_wait(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

}  // namespace

TEST_CASE("dead stats: the file of a process in another pid namespace goes once it was killed, and not before") {
    const bool keep_open = GENERATE(false, true);
    CAPTURE(keep_open);
    const MemoryFolder folder;
    if (!folder.in_memory)
        return skip("/dev/shm is no file system in memory here");
    const std::string path = file_of(folder.path, ledger::read_pid_namespace() + 1, 7);
    const pid_t child = writer(path, keep_open);
    cli::remove_dead_stats(folder.path);
    CHECK(std::filesystem::exists(path));
    kill(child, SIGSTOP);  // stands still, and lives
    cli::remove_dead_stats(folder.path);
    CHECK(std::filesystem::exists(path));
    kill_and_wait(child);
    cli::remove_dead_stats(folder.path);
    CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("dead stats: files of the dead here go, and nothing that only lies in the folder") {
    const MemoryFolder folder;
    if (!folder.in_memory)
        return skip("/dev/shm is no file system in memory here");
    const uint64_t here = ledger::read_pid_namespace();
    const std::string dead = file_of(folder.path, here, 0x7fffffff), fifo = file_of(folder.path, here + 1, 2),
                      link = file_of(folder.path, here + 1, 3), other = folder.path + "/1000-GPU-5f.ledger";
    std::ofstream(dead).put('x');
    std::ofstream(other).put('x');
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    std::filesystem::create_symlink(other, link);
    cli::remove_dead_stats(folder.path);
    CHECK_FALSE(std::filesystem::exists(dead));
    CHECK(std::filesystem::exists(fifo));
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::exists(other));
    cli::remove_dead_stats("/nowhere");
}

TEST_CASE("dead stats: whoever wants to write to a file while it is looked at ends nobody by a signal") {
    const MemoryFolder folder;
    if (!folder.in_memory)
        return skip("/dev/shm is no file system in memory here");
    const std::string path = file_of(folder.path, ledger::read_pid_namespace() + 1, 7);
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            if (file >= 0)
                close(file);
        }
    }
    for (int round = 0; round < 2000; ++round)
        cli::remove_dead_stats(folder.path);
    kill_and_wait(child);
}

}  // namespace cuslice::tests
