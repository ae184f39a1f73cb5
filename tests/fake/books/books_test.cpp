// SPDX-License-Identifier: Apache-2.0
// The books between processes: shared capacity, exact take-back however a process ends.

#include "fake/books/books.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include "fake/books/file_lock.h"
#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/fake/books/scene.h"
#include "tests/soon.h"

using namespace cuslice::fake;
using fake_test::in_child;
using fake_test::Report;
using namespace fake_test::books;

TEST_CASE("charges stay within the capacity and come back") {
    CHECK(in_child({}, [](const Report& report) {
              Books books;
              open_books(report, books);
              EXPECT(books.charge(600 * MiB));
              EXPECT(!books.charge(401 * MiB));
              EXPECT(books.charge(400 * MiB));
              EXPECT(!books.charge(1));
              EXPECT_EQUAL(books.used_by_all(), capacity);
              books.release(600 * MiB);
              EXPECT_EQUAL(books.used_by_all(), 400 * MiB);
              EXPECT_EQUAL(books.holders().at(0).peak, capacity);
          }) == "");
}

TEST_CASE("processes share the capacity") {
    CHECK(in_child({}, [](const Report& report) {
              const pid_t child = holder(report, 700 * MiB, [](Books&) { pause(); });
              Books books;
              open_books(report, books);
              EXPECT_EQUAL(books.used_by_all(), 700 * MiB);
              EXPECT(!books.charge(301 * MiB));
              EXPECT(books.charge(300 * MiB));
              kill(child, SIGKILL);
              wait_for(child);
              EXPECT_EQUAL(books.used_by_all(), 300 * MiB);
              EXPECT(books.charge(700 * MiB));
          }) == "");
}

TEST_CASE("what a killed process held is there for the next, even before it is waited for") {
    CHECK(in_child({}, [](const Report& report) {
              Books books;
              open_books(report, books);
              for (int round = 0; round < 20; round++) {
                  const pid_t child = holder(report, 900 * MiB, [](Books& own) {
                      for (;;) {  // killed anywhere in here
                          own.release(900 * MiB);
                          own.charge(900 * MiB);
                      }
                  });
                  usleep(200);
                  kill(child, SIGKILL);
                  siginfo_t info;
                  EXPECT(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // still a zombie
                  EXPECT(books.charge(capacity));
                  books.release(capacity);
                  EXPECT_EQUAL(books.used_by_all(), uint64_t{0});
                  wait_for(child);
              }
          }) == "");
}

TEST_CASE("a slot that another process is just claiming is left to it") {
    CHECK(in_child({}, [](const Report& report) {
              Books books;
              open_books(report, books, false);
              int ready[2];
              EXPECT(pipe(ready) == 0);
              const pid_t child = fork();
              if (child == 0) {  // has locked the first slot, and not said so in it yet
                  prctl(PR_SET_PDEATHSIG, SIGKILL);
                  const std::string path = books_folder() + "/" + uuid_text(small_gpu()) + ".lock";
                  EXPECT(set_lock(open(path.c_str(), O_RDWR | O_CLOEXEC), 1, F_WRLCK, F_SETLK) == 0);
                  EXPECT(write(ready[1], "x", 1) == 1);
                  pause();
              }
              char byte = 0;
              EXPECT(read(ready[0], &byte, 1) == 1);
              std::string error;
              const bool claimed = books.claim_slot(error);
              kill(child, SIGKILL);
              wait_for(child);
              EXPECT_EQUAL(error, std::string());
              EXPECT(claimed && books.charge(capacity));
              EXPECT_EQUAL(books.used_by_all(), capacity);
          }) == "");
}

TEST_CASE("the last figures stay readable after the end") {
    CHECK(in_child({}, [](const Report& report) {
              const pid_t child = holder(report, 700 * MiB, [](Books& own) {
                  own.release(600 * MiB);
                  own.end_slot();
              });
              wait_for(child);
              Books books;
              open_books(report, books, false);
              const auto holders = books.holders();
              EXPECT_EQUAL(holders.size(), size_t{1});
              EXPECT_EQUAL(holders.at(0).pid, child);
              EXPECT(!holders.at(0).live);
              EXPECT_EQUAL(holders.at(0).peak, 700 * MiB);
              EXPECT_EQUAL(holders.at(0).used, 100 * MiB);
              EXPECT_EQUAL(holders.at(0).ancestors.at(0), getpid());
          }) == "");
}

TEST_CASE("a process that closes all its files keeps what it holds") {
    CHECK(in_child({}, [](const Report& report) {
              constexpr int kLast = 255;
              int closes[2];
              EXPECT(pipe(closes) == 0);
              EXPECT(dup2(closes[1], kLast) == kLast);
              close(closes[1]);
              const pid_t child = holder(report, 700 * MiB, [](Books&) {
                  for (int file = 3; file <= kLast; file++)
                      close(file);
                  pause();
              });
              close(kLast);
              char byte = 0;
              EXPECT(read(closes[0], &byte, 1) == 0);  // the child's was the last end to be written to
              Books books;
              open_books(report, books);
              EXPECT_EQUAL(books.used_by_all(), 700 * MiB);
              EXPECT(!books.charge(301 * MiB));
              kill(child, SIGKILL);
              wait_for(child);
              EXPECT_EQUAL(books.used_by_all(), uint64_t{0});
          }) == "");
}

// A process gets no answer from its own lock, so looks from inside the holder fall back on /proc.
TEST_CASE("a process whose /proc is another pid namespace's keeps what it holds") {
    const int namespaces = CLONE_NEWPID | CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (!cuslice::tests::can_unshare(namespaces))
        return;
    CHECK(in_child({}, [&](const Report& report) {
              // The process that unshares ends by _exit: LeakSanitizer can't start its thread after that.
              const pid_t outermost = fork();
              if (outermost == 0) {
                  EXPECT(unshare(namespaces) == 0);
                  EXPECT(mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0);
                  const pid_t outer = fork();
                  if (outer == 0) {
                      EXPECT(mount("proc", "/proc", "proc", 0, nullptr) == 0);
                      EXPECT(unshare(CLONE_NEWPID) == 0);
                      const pid_t inner = fork();
                      if (inner == 0) {
                          EXPECT_EQUAL(getpid(), 1);
                          Books books, others;
                          open_books(report, books);
                          EXPECT(books.charge(300 * MiB));
                          open_books(report, others, false);
                          for (int look = 0; look < 2; ++look)
                              EXPECT_EQUAL(others.used_by_all(), 300 * MiB);
                          EXPECT(others.holders().at(0).live);
                          _exit(0);
                      }
                      wait_for(inner);
                      _exit(0);
                  }
                  wait_for(outer);
                  _exit(0);
              }
              wait_for(outermost);
          }) == "");
}

TEST_CASE("a process that becomes another program gives up what it held") {
    CHECK(in_child({}, [](const Report& report) {
              const pid_t child = holder(report, 700 * MiB, [](Books&) { execlp("sleep", "sleep", "1000", nullptr); });
              Books books;
              open_books(report, books);
              EXPECT(cuslice::tests::soon([&] { return books.used_by_all() == 0; }));
              EXPECT(kill(child, 0) == 0);
              kill(child, SIGKILL);
              wait_for(child);
          }) == "");
}

TEST_CASE("a forked child neither keeps nor ends its parent's slot") {
    CHECK(in_child({}, [](const Report& report) {
              int ended[2];
              EXPECT(pipe(ended) == 0);
              const pid_t child = holder(report, 700 * MiB, [&](Books& own) {
                  if (fork() == 0) {
                      prctl(PR_SET_PDEATHSIG, SIGKILL);
                      own.end_slot();  // as the library does when the child exits
                      EXPECT(write(ended[1], "x", 1) == 1);
                      pause();
                  }
                  pause();
              });
              char byte = 0;
              EXPECT(read(ended[0], &byte, 1) == 1);
              Books books;
              open_books(report, books);
              EXPECT_EQUAL(books.used_by_all(), 700 * MiB);
              kill(child, SIGKILL);
              wait_for(child);
              EXPECT_EQUAL(books.used_by_all(), uint64_t{0});
          }) == "");
}

TEST_CASE("of two that want what only one can have, one gets it") {
    CHECK(in_child({}, [](const Report& report) {
              // Rounds: both try at once, then both give back. Counted by what each got.
              constexpr int rounds = 300;
              int go[2][2], got[2];
              EXPECT(pipe(got) == 0);
              for (auto& pair : go)
                  EXPECT(pipe(pair) == 0);
              for (int i = 0; i < 2; i++) {
                  if (fork() != 0)
                      continue;
                  auto& books = *new Books;
                  open_books(report, books);
                  char byte = 0;
                  while (read(go[i][0], &byte, 1) == 1 && byte == 't') {
                      const bool mine = books.charge(600 * MiB);
                      EXPECT(write(got[1], mine ? "y" : "n", 1) == 1);
                      EXPECT(read(go[i][0], &byte, 1) == 1);
                      if (mine)
                          books.release(600 * MiB);
                      EXPECT(write(got[1], "d", 1) == 1);
                  }
                  _exit(0);
              }
              int winners = 0;
              for (int round = 0; round < rounds; round++) {
                  for (auto& pair : go)
                      EXPECT(write(pair[1], "t", 1) == 1);
                  for (int i = 0; i < 2; i++) {
                      char byte = 0;
                      EXPECT(read(got[0], &byte, 1) == 1);
                      winners += byte == 'y';
                  }
                  for (auto& pair : go)
                      EXPECT(write(pair[1], "r", 1) == 1);
                  for (int i = 0; i < 2; i++) {
                      char byte = 0;
                      EXPECT(read(got[0], &byte, 1) == 1);
                  }
              }
              EXPECT_EQUAL(winners, rounds);
              for (auto& pair : go)
                  EXPECT(write(pair[1], "e", 1) == 1);
              while (wait(nullptr) > 0) {
              }
          }) == "");
}

TEST_CASE("a request that fits is not refused because of a claim that is about to be withdrawn") {
    CHECK(in_child({}, [](const Report& report) {
              const pid_t other = holder(report, 100 * MiB, [](Books&) { pause(); });
              Books books;
              open_books(report, books);
              // Plays the other process, which claims what it can't have and is slow to notice.
              const std::string path = books_folder() + "/" + uuid_text(small_gpu().uuid);
              const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
              void* mapped = mmap(nullptr, sizeof(BooksFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
              EXPECT(mapped != MAP_FAILED);
              Slot& slot = static_cast<BooksFile*>(mapped)->slots[0];
              EXPECT_EQUAL(slot.pid.load(), other);
              for (int i = 0; i < 5; i++) {
                  slot.claim = Claim::pending(950 * MiB, 1);
                  std::thread withdraws([&] {
                      usleep(3000);
                      slot.claim = Claim::committed(100 * MiB);
                  });
                  EXPECT(books.charge(500 * MiB));
                  withdraws.join();
                  books.release(500 * MiB);
              }
              slot.claim = Claim::pending(950 * MiB, 1);
              EXPECT(!books.charge(901 * MiB));  // what is truly used leaves no room: refused at once
              kill(other, SIGKILL);
              wait_for(other);
              EXPECT(books.charge(900 * MiB));  // a dead one's claim is nobody's
          }) == "");
}

namespace {

/// The file of the small GPU, as another process maps it.
BooksFile& mapped_file(const Report& report) {
    const std::string path = books_folder() + "/" + uuid_text(small_gpu().uuid);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const mapped = mmap(nullptr, sizeof(BooksFile), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(mapped != MAP_FAILED);
    close(file);
    return *static_cast<BooksFile*>(mapped);
}

int lock_file() { return open((books_folder() + "/" + uuid_text(small_gpu()) + ".lock").c_str(), O_RDWR | O_CLOEXEC); }

/// Stands still here, until it is killed or goes on.
void stop_here(int ready) {
    if (write(ready, "x", 1) != 1)
        _exit(1);
    raise(SIGSTOP);
}

}  // namespace

TEST_CASE("a process that is stopped anywhere in the books holds up no other") {
    const std::string where = GENERATE("the first free slot's byte", "a claim", "the making of shared memory");
    const bool killed = GENERATE(false, true);
    CAPTURE(where, killed);
    CHECK(in_child({}, [&](const Report& report) {
              alarm(20);  // ends whoever waits for ever
              Books before;
              open_books(report, before);
              EXPECT(before.charge(100 * MiB));
              int ready[2];
              EXPECT(pipe(ready) == 0);
              const pid_t stopped = fork();
              if (stopped == 0) {
                  prctl(PR_SET_PDEATHSIG, SIGKILL);
                  BooksFile& file = mapped_file(report);
                  auto& own = *new Books;
                  if (where != "the first free slot's byte") {
                      open_books(report, own);
                      EXPECT(own.charge(200 * MiB));
                  }
                  if (where == "the first free slot's byte")
                      EXPECT(set_lock(lock_file(), 2, F_WRLCK, F_SETLK) == 0);
                  if (where == "a claim")
                      file.slots[1].claim = Claim::pending(900 * MiB, 1);
                  if (where == "the making of shared memory") {
                      EXPECT(own.share(11, MiB));
                      file.shared[0].id = 1ULL << 63 | 1;
                  }
                  stop_here(ready[1]);
                  _exit(0);
              }
              char byte = 0;
              EXPECT(read(ready[0], &byte, 1) == 1);
              siginfo_t info;
              EXPECT(waitid(P_PID, static_cast<id_t>(stopped), &info, WSTOPPED | WNOWAIT) == 0);
              const uint64_t theirs = where == "the first free slot's byte" || killed ? 0 : 200 * MiB;
              if (killed) {
                  kill(stopped, SIGKILL);
                  EXPECT(waitid(P_PID, static_cast<id_t>(stopped), &info, WEXITED | WNOWAIT) == 0);
              }
              EXPECT_EQUAL(before.used_by_all(), 100 * MiB + theirs);
              EXPECT(before.charge(500 * MiB));
              EXPECT(!before.charge(capacity - 600 * MiB - theirs + 1));
              EXPECT(before.share(12, MiB));
              before.drop(12, false);
              const pid_t late = fork();
              if (late == 0) {
                  Books books;
                  open_books(report, books);
                  EXPECT(books.charge(100 * MiB));
                  EXPECT(!books.charge(capacity - 700 * MiB - theirs + 1));
                  EXPECT_EQUAL(books.used_by_all(), 700 * MiB + theirs);
                  books.end_slot();
                  _exit(0);
              }
              int status = -1;
              waitpid(late, &status, 0);
              EXPECT_EQUAL(status, 0);
              EXPECT_EQUAL(before.holders().size(), where == "the first free slot's byte" ? size_t{2} : size_t{3});
              // The stopped process ends by itself or by the kill: either way the books come out right.
              kill(stopped, SIGCONT);
              kill(stopped, SIGKILL);
              wait_for(stopped);
              EXPECT_EQUAL(before.used_by_all(), 600 * MiB);
          }) == "");
}

TEST_CASE("slots are used again, the least recently ended first, and a thousand processes fit") {
    CHECK(in_child({}, [](const Report& report) {
              for (int i = 0; i < 200; i++) {
                  wait_for(holder(report, MiB, [](Books& own) { own.end_slot(); }));
              }
              Books books;
              open_books(report, books);
              const auto holders = books.holders();
              EXPECT(holders.size() <= kBooksKeptEnded + 1);
              EXPECT(holders.size() >= kBooksKeptEnded);
              uint64_t oldest = ~0ULL;
              for (const Holder& one : holders) {
                  if (!one.live)
                      oldest = std::min(oldest, one.order);
              }
              EXPECT_EQUAL(oldest, uint64_t{200 - kBooksKeptEnded + 2});
          }) == "");
}

TEST_CASE("a file that is no book is refused by name") {
    CHECK(in_child({}, [](const Report& report) {
              const std::string path = books_folder() + "/" + uuid_text(small_gpu().uuid);
              std::ofstream(path) << std::string(sizeof(BooksFile), 'x');
              Books books;
              std::string error;
              EXPECT(!books.open(small_gpu(), error));
              EXPECT(error.find(path + " is not the books of a fake GPU") == 0);
          }) == "");
}

TEST_CASE("books that can't be made say why") {
    CHECK(in_child({{"CUSLICE_FAKE_DIR", "/proc/no/such"}}, [](const Report& report) {
              Books books;
              std::string error;
              EXPECT(!books.open(small_gpu(), error));
              EXPECT(error.find("/proc/no/such (CUSLICE_FAKE_DIR)") != std::string::npos);
          }) == "");
}
