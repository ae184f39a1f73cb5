// SPDX-License-Identifier: Apache-2.0
// Recordings that are written into mapped memory: where windows meet, where space ends, and in children.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "policy/trace/log.h"
#include "tests/allowed.h"
#include "tests/bench/recorded_rows.h"
#include "tests/policy/trace/recordings.h"
#include "tests/skip.h"

namespace cuslice::trace {
namespace {

File::Appended append(Log& log, const Row& row) {
    int error = 0;
    return log.append(row, error);
}

// A reader's view of a file: by thread, the addresses in the order of the file.
using Seen = std::map<uint32_t, std::vector<uint64_t>>;
Seen seen_in(const std::string& path) {
    Seen seen;
    const std::string text = read(path);
    if (bench::is_compact(text)) {
        std::vector<bench::RecordedRow> rows;
        std::string why;
        REQUIRE(bench::read_compact(text, rows, why));
        for (const auto& row : rows)
            seen[row.thread].push_back(row.address);
        return seen;
    }
    std::istringstream lines(text);
    std::string line, before;
    std::getline(lines, line);
    for (; std::getline(lines, line) && !lines.eof(); before = line) {  // a last one that is cut off is none
        if (line.empty())
            continue;
        RowText whole;
        const auto number = std::stoull(line.substr(line.find(",0x") + 3), nullptr, 16);
        const auto thread = static_cast<uint32_t>(std::stoul(line));
        write_row(whole, row_of(thread, number));
        if (line + "\n" != whole.view())
            FAIL(line);
        seen[thread].push_back(number);
    }
    return seen;
}

std::string end_of(Form form) { return form == Form::csv ? "a.csv" : "a.trace"; }

// In a child, as it changes what is the process's own; its exit code.
int in_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0)
        _exit(work());
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Rows until one can't be written; how many could. More than three windows' worth is endless.
uint64_t rows_until_full(Log& log, int& error) {
    constexpr uint64_t kMost = 100'000;
    for (uint64_t number = 1; number <= kMost; number++)
        if (log.append(row_of(7, number), error) != File::Appended::done)
            return number - 1;
    return kMost;
}

size_t mappings_of(const std::string& path) {
    std::istringstream maps(read("/proc/self/maps"));
    size_t count = 0;
    for (std::string line; std::getline(maps, line);)
        count += line.ends_with(path);
    return count;
}

mode_t mode_of(const std::string& path) {
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    return info.st_mode & 07777;
}

}  // namespace

TEST_CASE("while a recording is written nothing but filler follows its rows and nobody may write, and nothing later") {
    const Form form = GENERATE(Form::csv, Form::compact);
    const TestFolder folder;
    const std::string path = folder.at(end_of(form));
    Log log;
    Reason why;
    REQUIRE(log.make(path, why));
    for (uint64_t i = 1; i <= 3; i++)
        REQUIRE(append(log, row_of(7, i)) == File::Appended::done);
    CHECK(std::filesystem::file_size(path) >= Windows::kFirst);
    CHECK((mode_of(path) & 0222) == 0);
    const std::string text = read(path);
    const char filler = form == Form::csv ? '\n' : '\0';
    CHECK(text.find_last_not_of(filler) < 1000);
    CHECK(seen_in(path)[7] == std::vector<uint64_t>{1, 2, 3});

    log.finish();
    CHECK(std::filesystem::file_size(path) < 1000);
    CHECK((mode_of(path) & 0200) == 0200);
    CHECK(append(log, row_of(7, 4)) == File::Appended::done);
    CHECK(read(path).find("\n\n") == std::string::npos);
    CHECK(seen_in(path)[7] == std::vector<uint64_t>{1, 2, 3, 4});
    if (form == Form::compact)
        CHECK(std::filesystem::file_size(path) % sizeof(Record) == 0);
}

TEST_CASE("threads that meet where a window ends lose no row and tear none, and windows don't stay") {
    const Form form = GENERATE(Form::csv, Form::compact);
    constexpr uint64_t kRows = 5'000;
    const TestFolder folder;
    const std::string path = folder.at(end_of(form));
    Log log;
    Reason why;
    REQUIRE(log.make(path, why));
    std::vector<std::thread> threads;
    std::atomic<unsigned> failed{0};
    for (uint32_t thread = 1; thread <= 8; thread++)
        threads.emplace_back([&, thread] {
            for (uint64_t i = 1; i <= kRows; i++)
                failed += append(log, row_of(thread, i)) != File::Appended::done;
        });
    for (std::thread& thread : threads)
        thread.join();
    CHECK(failed == 0);
    CHECK(mappings_of(path) <= 3);
    const auto check = [&] {
        Seen seen = seen_in(path);
        CHECK(seen.size() == 8);
        for (const auto& [thread, numbers] : seen) {
            REQUIRE(numbers.size() == kRows);
            for (uint64_t i = 0; i < kRows; i++)
                if (numbers[i] != i + 1)
                    FAIL("thread " << thread << ": row " << i);
        }
    };
    check();
    log.finish();
    check();
}

TEST_CASE("threads that go on while their program ends lose no row, and have none behind filler") {
    const Form form = GENERATE(Form::csv, Form::compact);
    constexpr uint64_t kRows = 3'000;
    for (unsigned round = 0; round < 10; round++) {
        const TestFolder folder;
        const std::string path = folder.at(end_of(form));
        Log log;
        Reason why;
        REQUIRE(log.make(path, why));
        std::atomic<unsigned> failed{0};
        std::atomic<uint64_t> begun{0};
        std::vector<std::thread> threads;
        for (uint32_t thread = 1; thread <= 4; thread++)
            threads.emplace_back([&, thread] {
                for (uint64_t i = 1; i <= kRows; i++) {
                    begun++;
                    failed += append(log, row_of(thread, i)) != File::Appended::done;
                }
            });
        while (begun < round * 1000)
            sched_yield();
        log.finish();
        for (std::thread& thread : threads)
            thread.join();
        CHECK(failed == 0);
        Seen seen = seen_in(path);
        for (uint32_t thread = 1; thread <= 4; thread++)
            CHECK(seen[thread].size() == kRows);
        if (form == Form::csv)
            CHECK(read(path).find("\n\n") == std::string::npos);
    }
}

TEST_CASE("where a process's limit for files is reached, all rows up to it are there, and no signal comes") {
    const Form form = GENERATE(Form::csv, Form::compact);
    const uint64_t limit = GENERATE(2'000, 70'000, 200'000);
    const bool later = GENERATE(false, true);  // once the first window is there
    const TestFolder folder;
    const std::string path = folder.at(end_of(form));
    const int code = in_child([&] {
        const rlimit most{limit, RLIM_INFINITY};
        static Log log;
        Reason why;
        if (!later)
            setrlimit(RLIMIT_FSIZE, &most);
        if (!log.make(path, why))
            return 1;
        if (later && append(log, row_of(7, 1'000'000)) != File::Appended::done)
            return 2;
        setrlimit(RLIMIT_FSIZE, &most);
        int error = 0;
        const uint64_t rows = rows_until_full(log, error);
        if (error != EFBIG || rows < 10)
            return 3;
        const uint64_t extra = later;
        log.finish();
        const uint64_t most_bytes = later ? std::max<uint64_t>(limit, Windows::kFirst + 8192) : limit;
        return seen_in(path)[7].size() == rows + extra && std::filesystem::file_size(path) <= most_bytes ? 0 : 4;
    });
    CHECK(code == 0);
}

TEST_CASE("where the disk is full, all rows up to it are there, and the program goes on") {
    if (!tests::can_unshare(CLONE_NEWNS | CLONE_NEWUSER))
        return;
    const Form form = GENERATE(Form::csv, Form::compact);
    const TestFolder folder;
    const int code = in_child([&] {
        if (!tests::enter_namespaces(CLONE_NEWNS | CLONE_NEWUSER))
            return 1;
        if (mount("none", folder.path, "tmpfs", 0, "size=300k") != 0)
            return 2;
        static Log log;
        Reason why;
        if (!log.make(folder.at(end_of(form)), why))
            return 3;
        int error = 0;
        const uint64_t rows = rows_until_full(log, error);
        if (error != ENOSPC || rows < 1000)
            return 4;
        log.finish();
        return seen_in(folder.at(end_of(form)))[7].size() == rows ? 0 : 5;
    });
    CHECK(code == 0);
}

TEST_CASE("a user whose descriptors are all closed gets his next windows, and the end of his file") {
    if (!tests::can_be_other_users())
        return;
    const TestFolder folder;
    const std::string path = folder.at("a.csv");
    REQUIRE(chown(folder.path, 4711, 4711) == 0);
    const int code = in_child([&] {
        if (setgid(4711) != 0 || setuid(4711) != 0)
            return 1;
        static Log log;
        Reason why;
        if (!log.make(path, why))
            return 2;
        for (uint64_t i = 1; i <= 2000; i++) {
            if (i % 100 == 0)
                for (int file = 3; file < 64; file++)
                    close(file);
            if (append(log, row_of(7, i)) != File::Appended::done)
                return 3;
        }
        if ((mode_of(path) & 0222) != 0)
            return 4;
        for (int file = 3; file < 64; file++)
            close(file);
        log.finish();
        return seen_in(path)[7].size() == 2000 && !read(path).ends_with("\n\n") && mode_of(path) & 0200 ? 0 : 5;
    });
    CHECK(code == 0);
}

TEST_CASE("where a window can't be had, rows are written") {
#if defined(__SANITIZE_THREAD__)
    tests::skip("ThreadSanitizer ends a process that gets no memory");
#else
    const TestFolder folder;
    const std::string path = folder.at(end_of(GENERATE(Form::csv, Form::compact)));
    const int code = in_child([&] {
        static Log log;
        Reason why;
        if (!log.make(path, why))
            return 1;
        if (append(log, row_of(7, 1)) != File::Appended::done)
            return 2;
        const rlimit none{0, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &none);  // nothing more is mapped
        for (uint64_t i = 2; i <= 3000; i++)
            if (append(log, row_of(7, i)) != File::Appended::done)
                return 3;
        const rlimit plenty{RLIM_INFINITY, RLIM_INFINITY};
        setrlimit(RLIMIT_AS, &plenty);
        log.finish();
        return seen_in(path)[7].size() == 3000 && !read(path).ends_with("\n\n") ? 0 : 4;
    });
    CHECK(code == 0);
#endif
}

TEST_CASE("a child that the C library doesn't know of claims nothing and cuts nothing, however much it has to say") {
    const Form form = GENERATE(Form::csv, Form::compact);
    const TestFolder folder;
    const std::string path = folder.at(end_of(form));
    Log log;
    Reason why;
    REQUIRE(log.make(path, why));
    for (uint64_t i = 1; i <= 2; i++)
        REQUIRE(append(log, row_of(7, i)) == File::Appended::done);
    const auto size = std::filesystem::file_size(path);
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
        bool wrote = false;
        for (uint64_t i = 1; i <= 10'000; i++)
            wrote |= append(log, row_of(8, i)) != File::Appended::not_ours;
        log.finish();
        syscall(SYS_exit_group, wrote);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(std::filesystem::file_size(path) == size);
    for (uint64_t i = 3; i <= 3000; i++)
        REQUIRE(append(log, row_of(7, i)) == File::Appended::done);
    log.finish();
    Seen seen = seen_in(path);
    CHECK(seen.size() == 1);
    CHECK(seen[7].size() == 3000);
}

}  // namespace cuslice::trace
