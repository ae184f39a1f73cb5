// SPDX-License-Identifier: Apache-2.0
// Programs that have closed their standard streams: what is opened in between has one of those numbers, and is as good
// as under any other; and none of what is kept open is there, where the program writes to.
#include <errno.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>

#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"
#include "policy/trace/file.h"
#include "policy/trace/row.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/place.h"
#include "tests/policy/ledger/steps.h"

using namespace cuslice::ledger;
using namespace cuslice::tests;

namespace {

constexpr unsigned kStranger = 60002;

void close_streams() {
    for (int file = 0; file <= 2; file++)
        close(file);
}

bool streams_are_closed() {
    bool closed = true;
    for (int file = 0; file <= 2; file++)
        closed = closed && fcntl(file, F_GETFD) < 0;
    return closed;
}

// Step of a member without streams that looks whether it still has none.
constexpr char kCheckStreams = 'x';
constexpr char kStreamsOpen = 'n';

// A member that has no streams.
std::function<char(char)> bare_member(const LedgerFolder& folder) {
    return [inner = member(folder), closed = false](char step) mutable {
        if (!closed)
            close_streams();
        closed = true;
        if (step == kCheckStreams)
            return streams_are_closed() ? Answer::closed : kStreamsOpen;
        errno = EWOULDBLOCK;  // whatever the program was told last
        return inner(step);
    };
}

// Result of `act` in a child without standard streams; -1 if the child did not exit by itself.
template <typename Act>
int without_streams(Act act) {
    const pid_t child = fork();
    if (child == 0) {
        close_streams();
        _exit(act());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("a member without standard streams shares the limit, and has no descriptor in their place") {
    const LedgerFolder folder;
    Child bare(bare_member(folder)), other(member(folder));
    REQUIRE(bare.ask(Step::join) == Answer::joined);
    CHECK(bare.ask(kCheckStreams) == Answer::closed);
    REQUIRE(other.ask(Step::join) == Answer::joined);
    REQUIRE(other.ask(Step::reserve_5_gib) == Answer::reserved);
    CHECK(bare.ask(Step::read_total) == gib(5));
    CHECK(bare.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
    SECTION("what the dead held is taken back") {
        other.kill();
        CHECK(bare.ask(Step::take_back_dead) == Answer::taken_back);
        CHECK(bare.ask(Step::reserve_5_gib) == Answer::reserved);
    }
    SECTION("the ledger is opened again where the program has closed its descriptor") {
        CHECK(bare.ask(Step::close_descriptors) == Answer::closed);
        CHECK(bare.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        other.kill();
        CHECK(bare.ask(Step::take_back_dead) == Answer::taken_back);
    }
    SECTION("a ledger that was removed is put back with what others hold") {
        std::filesystem::remove(folder.file());
        CHECK(bare.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(std::filesystem::exists(folder.file()));
        Child newcomer(bare_member(folder));
        REQUIRE(newcomer.ask(Step::join) == Answer::joined);
        CHECK(newcomer.ask(Step::read_total) == gib(5));
        CHECK(newcomer.ask(kCheckStreams) == Answer::closed);
    }
    SECTION("and found where somebody else has put it back, and the program has closed its descriptor") {
        CHECK(bare.ask(Step::close_descriptors) == Answer::closed);
        std::filesystem::remove(folder.file());
        other.ask(Step::take_back_dead);
        CHECK(bare.ask(Step::take_back_dead) == Answer::nothing_to_take_back);
        CHECK(bare.ask(Step::reserve_1_gib) == Answer::reserved);
        CHECK(other.ask(Step::read_total) == gib(6));
    }
    SECTION("and so it is by whoever comes first") {
        std::filesystem::remove(folder.file());
        Child newcomer(bare_member(folder));
        REQUIRE(newcomer.ask(Step::join) == Answer::joined);
        CHECK(newcomer.ask(Step::read_total) == gib(5));
        CHECK(newcomer.ask(kCheckStreams) == Answer::closed);
    }
    CHECK(bare.ask(kCheckStreams) == Answer::closed);
}

TEST_CASE("a process without standard streams sees what other users have reserved") {
    if (!can_be_other_users())
        return;
    const LedgerFolder folder;
    std::filesystem::permissions(folder.path, std::filesystem::perms(01777));
    Child stranger([&, place = std::make_shared<Place>()](char) {
        return setresgid(kStranger, kStranger, kStranger) == 0 && setresuid(kStranger, kStranger, kStranger) == 0 &&
                       place->open(folder) && place->join("job", 10 * kGiB, 10 * kGiB, AccountKind::job) == Joined::yes
                   ? Answer::joined
                   : Answer::refused;
    });
    REQUIRE(stranger.ask(Step::join) == Answer::joined);
    CHECK(without_streams([&] {
              Place place;
              if (!place.open(folder))
                  return 1;
              if (place.join("job", 10 * kGiB, 10 * kGiB, AccountKind::job) != Joined::refused)
                  return 2;
              return place.available == kCapacity - 10 * kGiB && streams_are_closed() ? 0 : 3;
          }) == 0);
}

TEST_CASE("a ledger is read under any descriptor, if it is whole") {
    const LedgerFolder folder;
    Place place;
    REQUIRE(place.open(folder));
    const std::string path = folder.file();
    CHECK(without_streams([&] {
              bool missing = true;
              if (open_foreign(path.c_str(), geteuid(), &missing, nullptr) != 0 || missing)
                  return 1;
              close(0);
              LedgerError why;
              if (open_foreign((path + "x").c_str(), geteuid(), &missing, &why) >= 0 || !missing)
                  return 2;
              if (std::string(why.text) != "can't open " + path + "x: No such file or directory")
                  return 3;
              if (truncate(path.c_str(), 5000) != 0)
                  return 4;
              if (open_foreign(path.c_str(), geteuid(), &missing, &why) >= 0 || missing)
                  return 5;
              return why.text == path + " is damaged" && streams_are_closed() ? 0 : 6;
          }) == 0);
}

TEST_CASE("figures are made, and those of the dead removed, by a process without standard streams") {
    const LedgerFolder folder;
    cuslice::stats::NameText dead;
    cuslice::stats::write_name({read_pid_namespace(), 0x7fffffff, 1}, dead);
    std::ofstream(folder.path + "/" + dead) << "x";
    CHECK(without_streams([&] {
              LedgerError why;
              return cuslice::stats::make_own(folder.path.c_str(), &why) && streams_are_closed() ? 0 : 1;
          }) == 0);
    CHECK_FALSE(std::filesystem::exists(folder.path + "/" + dead));
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), std::filesystem::directory_iterator()) == 1);
}

TEST_CASE(
    "a descriptor stays where it is if there is no higher number, and goes with an exec unless it is to be kept") {
    CHECK(without_streams([&] {
              for (const bool keep : {false, true}) {
                  const int low = open("/dev/null", O_RDWR | O_CLOEXEC);
                  const int moved = cuslice::keep_descriptor(low, keep);
                  if (moved < 10 || fcntl(moved, F_GETFD) != (keep ? 0 : FD_CLOEXEC))
                      return 1;
                  if (!streams_are_closed())
                      return 2;
                  close(moved);
              }
              const rlimit few{8, 8};
              if (setrlimit(RLIMIT_NOFILE, &few) != 0)
                  return 3;
              for (const bool keep : {false, true}) {
                  const int low = open("/dev/null", O_RDWR | O_CLOEXEC);
                  if (cuslice::keep_descriptor(low, keep) != low || fcntl(low, F_GETFD) != (keep ? 0 : FD_CLOEXEC))
                      return 4;
                  close(low);
              }
              return 0;
          }) == 0);
}

TEST_CASE("a recording goes on under any descriptor, also where a process may have no other than those of streams") {
    const LedgerFolder folder;
    const std::string path = folder.path + "/rows";
    const std::string first = "7,09:12:03.000417,allocate,0x200,512,0x0,,,\n";
    const std::string second = "7,09:12:03.000532,free,0x200,512,0x0,,,\n";
    CHECK(without_streams([&] {
              const rlimit few{3, 3};
              if (setrlimit(RLIMIT_NOFILE, &few) != 0)
                  return 1;
              cuslice::trace::File file;
              cuslice::Reason why;
              int error = 0;
              if (!file.make(path, why))
                  return 2;
              if (file.append(first, error) != cuslice::trace::File::Appended::done)
                  return 3;
              close_streams();  // the program, which doesn't know that one of them is in use
              if (file.append(second, error) != cuslice::trace::File::Appended::done)
                  return 4;
              file.finish();
              return fcntl(0, F_GETFD) >= 0 ? 0 : 5;
          }) == 0);
    std::ifstream file(path);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) ==
          std::string(cuslice::trace::header_for(cuslice::trace::Columns::usual)) + first + second);
}
