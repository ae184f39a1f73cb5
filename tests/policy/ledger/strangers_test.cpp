// SPDX-License-Identifier: Apache-2.0
// Files that anybody may put into the ledgers' folder: no process waits for them or believes them.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <fstream>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr unsigned kStranger = 60002;

// Far more than is waited for, and far less than what a stranger could keep somebody waiting for.
constexpr unsigned kGuard = 30;  // seconds; a lease keeps an open waiting for 45

// Keeps a file locked or leased in a process of its own.
struct FileKeeper {
    FileKeeper(const std::string& path, bool lease)
        : child([path, lease](char) {
              signal(SIGIO, SIG_IGN);  // told to give up its lease
              const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
              struct flock lock {};
              lock.l_type = F_WRLCK;
              lock.l_len = 1;
              return (lease ? fcntl(file, F_SETLEASE, F_WRLCK) : fcntl(file, F_SETLK, &lock)) == 0 ? Answer::locked
                                                                                                   : Answer::not_locked;
          }) {
        REQUIRE(child.ask(Step::keep_locked) == Answer::locked);
    }
    ~FileKeeper() { child.kill(); }
    Child child;
};

// Opens and joins with a reservation, which looks at everybody's files, in a process that is ended if it hangs.
std::string join_reserving(const LedgerFolder& folder) {
    int out[2];
    REQUIRE(pipe(out) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(kGuard);
        Place place;
        std::string answer = "joined";
        if (!place.open(folder) || place.join("job", kGiB, kGiB, AccountKind::job) != Joined::yes)
            answer = place.failure.text;
        _exit(write(out[1], answer.data(), answer.size()) < 0);
    }
    close(out[1]);
    std::string text(1024, '\0');
    const ssize_t count = read(out[0], text.data(), text.size());
    close(out[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status))
        return "(hangs)";
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
}

void make_ledger(const LedgerFolder& folder) {
    Place place;
    REQUIRE(place.open(folder));
    place.ledger.close();
}

uint64_t size_of_ledger(const LedgerFolder& folder) {
    make_ledger(folder);
    const uint64_t size = std::filesystem::file_size(folder.file());
    std::filesystem::remove(folder.file());
    return size;
}

}  // namespace

TEST_CASE("nobody waits for what another user put under their own name") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const std::string path = folder.file_of(kStranger),
                      what = GENERATE("fifo", "lease", "lock", "folder", "link", "huge");
    CAPTURE(what);
    std::unique_ptr<FileKeeper> keeper;
    if (what == "fifo")
        REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    if (what == "folder")
        REQUIRE(mkdir(path.c_str(), 0777) == 0);
    if (what == "link")
        REQUIRE(symlink("/dev/zero", path.c_str()) == 0);
    if (what == "huge") {
        std::ofstream(path) << "x";
        std::filesystem::resize_file(path, 1ull << 40);
    }
    if (what == "lease" || what == "lock") {
        make_ledger(folder);
        std::filesystem::rename(folder.file(), path);
        keeper = std::make_unique<FileKeeper>(path, what == "lease");
    }
    REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0);
    CHECK(join_reserving(folder) == "joined");
}

TEST_CASE("nobody waits for what lies under the own name, and it is said what it is") {
    const LedgerFolder folder;
    const std::string path = folder.file(), what = GENERATE("fifo", "folder", "link", "lease");
    CAPTURE(what);
    std::unique_ptr<FileKeeper> keeper;
    if (what == "fifo")
        REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    if (what == "folder")
        REQUIRE(mkdir(path.c_str(), 0777) == 0);
    if (what == "link")
        REQUIRE(symlink("/dev/zero", path.c_str()) == 0);
    if (what == "lease") {
        make_ledger(folder);
        keeper = std::make_unique<FileKeeper>(path, true);
    }
    const std::string said = join_reserving(folder);
    CAPTURE(said);
    CHECK(said.find(path) != said.npos);
    if (what == "fifo")
        CHECK(said == path + " is no regular file");
}

TEST_CASE("what another user put under the own name is passed by, and all of the own processes meet elsewhere") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const uint64_t size = size_of_ledger(folder);
    const std::string what = GENERATE("file", "lock", "fifo", "folder", "link", "ledger");
    const unsigned count = GENERATE(1u, 3u, kMaxNames - 1);
    CAPTURE(what, count);
    std::unique_ptr<FileKeeper> keeper;
    for (unsigned i = 0; i < count; i++) {
        const std::string path = folder.file_of(geteuid(), i);
        if (what == "fifo")
            REQUIRE(mkfifo(path.c_str(), 0666) == 0);
        if (what == "folder")
            REQUIRE(mkdir(path.c_str(), 0777) == 0);
        if (what == "link")
            REQUIRE(symlink("/dev/zero", path.c_str()) == 0);
        if (what == "file" || what == "lock")
            std::ofstream(path) << "x";
        if (what == "ledger") {
            std::ofstream(path) << "x";
            std::filesystem::resize_file(path, size);
        }
        if (what == "lock" && i == 0)
            keeper = std::make_unique<FileKeeper>(path, false);
        REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0);
    }
    CHECK(join_reserving(folder) == "joined");
    Child one(member(folder)), other(member(folder));
    REQUIRE(one.ask(Step::join) == Answer::joined);
    REQUIRE(other.ask(Step::join) == Answer::joined);
    CHECK(one.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(other.ask(Step::reserve_5_gib) == Answer::refused);
    // The name is free again, and nobody takes it.
    std::filesystem::remove(folder.file());
    Child late(member(folder));
    REQUIRE(late.ask(Step::join) == Answer::joined);
    CHECK(late.ask(Step::read_total) == gib(5));
    CHECK_FALSE(std::filesystem::exists(folder.file()));
}

namespace {

// In everybody's folder, as a user without rights, once `put` has put something there for this process's pid.
std::string open_among_strangers(const LedgerFolder& folder, const std::function<void(pid_t)>& put) {
    constexpr unsigned kUser = 60001;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    int go[2], out[2];
    REQUIRE(pipe(go) == 0);
    REQUIRE(pipe(out) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(kGuard);
        char letter = 0;
        if (setresgid(kUser, kUser, kUser) != 0 || setresuid(kUser, kUser, kUser) != 0)
            _exit(1);
        if (read(go[0], &letter, 1) != 1)
            _exit(1);
        Place place;
        const std::string said = place.open(folder) ? "opened" : place.failure.text;
        _exit(write(out[1], said.data(), said.size()) < 0);
    }
    put(child);
    REQUIRE(write(go[1], "g", 1) == 1);
    for (const int file : {go[0], go[1], out[1]})
        close(file);
    std::string text(1024, '\0');
    const ssize_t count = read(out[0], text.data(), text.size());
    close(out[0]);
    waitpid(child, nullptr, 0);
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
}

void put_strangers_thing(const std::string& path, const std::string& what) {
    if (what == "fifo")
        REQUIRE(mkfifo(path.c_str(), 0666) == 0);
    if (what == "folder")
        REQUIRE(mkdir(path.c_str(), 0777) == 0);
    if (what == "link")
        REQUIRE(symlink("/dev/zero", path.c_str()) == 0);
    if (what == "file")
        std::ofstream(path) << "x";
    if (what == "socket") {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        REQUIRE(path.copy(address.sun_path, sizeof address.sun_path - 1) == path.size());
        const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        REQUIRE(bind(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        close(file);
    }
    REQUIRE(lchown(path.c_str(), kStranger, kStranger) == 0);
}

}  // namespace

TEST_CASE("what another user put where a process makes its ledger, or puts a bad one aside, is passed by") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const std::string what = GENERATE("file", "fifo", "folder", "link");
    const bool bad = GENERATE(false, true);
    CAPTURE(what, bad);
    const std::string path = folder.file_of(60001);
    char space[32];
    snprintf(space, sizeof space, "%llx", static_cast<unsigned long long>(read_pid_namespace()));
    const auto put = [&](pid_t pid) {
        const std::string made = path + "." + std::to_string(pid) + "-" + space;
        put_strangers_thing(bad ? made + ".aside" : made, what);
        if (!bad)
            return;
        std::ofstream(path) << "no ledger";
        REQUIRE(chown(path.c_str(), 60001, 60001) == 0);
    };
    CHECK(open_among_strangers(folder, put) == "opened");
    // The stranger's and the ledger, and nothing that was in the making.
    CHECK(folder.count() == 2);
}

TEST_CASE("a ledger that is gone is put back by who has closed its descriptor, whatever another user puts there") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    const std::string what = GENERATE("file", "fifo", "folder", "link", "socket");
    CAPTURE(what);
    Child one(member(folder)), other(member(folder));
    REQUIRE(one.ask(Step::join) == Answer::joined);
    REQUIRE(other.ask(Step::join) == Answer::joined);
    REQUIRE(other.ask(Step::reserve_5_gib) == Answer::reserved);
    REQUIRE(one.ask(Step::close_descriptors) == Answer::closed);
    std::filesystem::remove(folder.file());
    put_strangers_thing(folder.file(), what);
    other.kill();
    CHECK(one.ask(Step::reserve_5_gib) == Answer::refused);
    one.ask(Step::take_back_dead);
    CHECK(std::filesystem::exists(folder.file_of(geteuid(), 1)));
    CHECK(one.ask(Step::reserve_5_gib) == Answer::reserved);
}

TEST_CASE("where another user has every name nothing is granted, and it is said who has") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    for (unsigned i = 0; i < kMaxNames; i++) {
        const std::string path = folder.file_of(geteuid(), i);
        std::ofstream(path) << "x";
        REQUIRE(chown(path.c_str(), kStranger, kStranger) == 0);
    }
    Place place;
    CHECK_FALSE(place.open(folder));
    CHECK(place.failure.stranger);
    CHECK(place.failure.stranger_user == kStranger);
    CHECK(std::string(place.failure.text).find("user 60002 has taken every name") != std::string::npos);
}

TEST_CASE("who has the ledger locked is named, and whether that process is stopped") {
    const LedgerFolder folder;
    make_ledger(folder);
    const bool stopped = GENERATE(false, true);
    Keeper keeper(folder, stopped);
    const std::string pid = std::to_string(keeper.child.pid());
    CHECK(join_reserving(folder) == "the ledger is locked by pid " + pid + ", which " +
                                        (stopped ? "is stopped (kill -CONT lets it go on)" : "does not let go of it"));
}

TEST_CASE("what is no ledger is replaced once, by whoever comes first, however many come") {
    constexpr int kProcesses = 8, kRounds = 20;
    for (int round = 0; round < kRounds; round++) {
        const LedgerFolder folder;
        std::ofstream(folder.file()) << "no ledger";
        std::vector<std::unique_ptr<Child>> children;
        for (int i = 0; i < kProcesses; i++) {
            children.push_back(std::make_unique<Child>(member(folder, kProcesses * kGiB)));
            REQUIRE(children.back()->tell(Step::join));
        }
        for (const auto& child : children)
            REQUIRE(child->hear() == Answer::joined);
        for (const auto& child : children)
            REQUIRE(child->ask(Step::reserve_1_gib) == Answer::reserved);
        CHECK(children.front()->ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(children.front()->ask(Step::read_total) == gib(0) + kProcesses);
    }
}

TEST_CASE("where the ledger's lock can't be had nothing is known of others, and nothing is kept") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    place.ledger.queue_up(kGiB, nullptr);
    place.available = 1;
    REQUIRE(place.ledger.look(0, &place.committed, &place.available));
    CHECK(place.available == kCapacity);
    place.committed.keeps = true;
    place.committed.count = 7;
    Keeper keeper(folder);
    CHECK_FALSE(place.ledger.look(0, &place.committed, &place.available));
    CHECK_FALSE(place.committed.keeps);
    CHECK(place.committed.count == 0);
    CHECK(place.committed.left_out == 0);
    CHECK(place.committed.promised == 0);
}

TEST_CASE("a lock that could not be had is not waited for again at once") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", kGiB) == Joined::yes);
    Keeper keeper(folder);
    CHECK_FALSE(place.ledger.take_back_dead());
    // A thread that waits for the lock sleeps in between. (A machine on which these calls take five seconds and more
    // may wait again in that time.)
    const auto sleeps = [] {
        rusage usage{};
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
    };
    int waited = 0;
    for (int i = 0; i < 20; i++) {
        const long before = sleeps();
        CHECK_FALSE(place.ledger.take_back_dead());
        waited += sleeps() - before > 2;
    }
    CHECK(waited < 10);
}

TEST_CASE("once a lock that could not be had is free, the dead are taken back and a lost ledger is put back") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    REQUIRE(place.join("lab", 8 * kGiB) == Joined::yes);
    const bool lost = GENERATE(false, true);
    CAPTURE(lost);
    {
        Child other(member(folder));
        REQUIRE(other.ask(Step::join) == Answer::joined);
        REQUIRE(other.ask(Step::reserve_5_gib) == Answer::reserved);
        Keeper keeper(folder);
        CHECK_FALSE(place.ledger.take_back_dead());
        other.kill();
    }
    CHECK_FALSE(place.membership.reserve(5 * kGiB, 0, nullptr));
    if (lost)
        std::filesystem::remove(folder.file());
    CHECK(place.ledger.take_back_dead() != lost);
    CHECK(place.membership.reserve(5 * kGiB, 0, nullptr));
    CHECK(std::filesystem::exists(folder.file()));
}

TEST_CASE("a ledger of another version stays as it is, and is used by its own") {
    const LedgerFolder folder;
    const std::string name = std::to_string(geteuid()) + "-" + kUuid;
    // Before versions had names of their own, and after this one.
    const std::string others[] = {folder.path + "/" + name + ".ledger",
                                  folder.path + "/" + name + "." + std::to_string(kVersion + 1) + ".ledger"};
    for (const std::string& other : others)
        std::ofstream(other) << "another version's";
    Place place;
    REQUIRE(place.open(folder));
    CHECK(place.ledger.found() == Found::made);
    CHECK(place.join("lab", kGiB) == Joined::yes);
    for (const std::string& other : others) {
        std::ifstream file(other);
        CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "another version's");
    }
}

TEST_CASE("a ledger takes little space, and more as more processes come") {
    const LedgerFolder folder;
    const auto space = [&] {
        struct stat info {};
        REQUIRE(stat(folder.file().c_str(), &info) == 0);
        return static_cast<uint64_t>(info.st_blocks) * 512;
    };
    std::vector<std::unique_ptr<Place>> places;
    const auto join = [&] {
        places.push_back(std::make_unique<Place>());
        return places.back()->open(folder) && places.back()->join("lab", kGiB) == Joined::yes;
    };
    REQUIRE(join());
    CHECK(space() <= 264 << 10);  // docs/sharing.md
    constexpr uint64_t kCount = 500, kBytes = 1 << 20;
    while (places.size() < kCount)
        REQUIRE(join());
    for (const auto& place : places)
        CHECK(place->membership.reserve(kBytes, 0, nullptr));
    CHECK(places[0]->membership.used() == kCount * kBytes);
    CHECK(space() <= 1 << 20);
    CHECK(std::filesystem::file_size(folder.file()) >= space());
}

TEST_CASE("where files may not be as large as a ledger it is said, and no signal comes") {
    const LedgerFolder folder;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        const rlimit small{64 << 10, RLIM_INFINITY};
        if (setrlimit(RLIMIT_FSIZE, &small) != 0)
            _exit(2);
        Place place;
        _exit(place.open(folder) || std::string(place.failure.text).find("File too large") == std::string::npos);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    CHECK(std::filesystem::is_empty(folder.path));
}
