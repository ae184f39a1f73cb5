// SPDX-License-Identifier: Apache-2.0
// The books of processes that are stopped, as a debugger stops them.

#include <fcntl.h>
#include <sys/prctl.h>

#include <csignal>
#include <vector>

#include "fake/books/file_lock.h"
#include "tests/catch.h"
#include "tests/fake/books/scene.h"

using namespace cuslice::fake;
using namespace fake_test::books;
using fake_test::in_child;
using fake_test::Report;

TEST_CASE("a process that is stopped with the lock of the books holds up no other") {
    CHECK(in_child({}, [](const Report& report) {
              alarm(20);  // ends whoever waits for ever
              Books books;
              open_books(report, books);
              const pid_t stopped = holder(report, 200 * MiB, [&](Books&) {
                  prctl(PR_SET_PDEATHSIG, SIGKILL);
                  const std::string path = books_folder() + "/" + uuid_text(small_gpu()) + ".lock";
                  EXPECT(set_lock(open(path.c_str(), O_RDWR | O_CLOEXEC), 0, F_WRLCK, F_SETLK) == 0);
                  raise(SIGSTOP);
              });
              siginfo_t info;
              EXPECT(waitid(P_PID, static_cast<id_t>(stopped), &info, WSTOPPED | WNOWAIT) == 0);
              EXPECT(books.share(12, MiB));
              books.drop(12, false);
              Books late;
              open_books(report, late);
              EXPECT(late.charge(300 * MiB));
              EXPECT_EQUAL(late.used_by_all(), 500 * MiB);
              late.end_slot();
              kill(stopped, SIGKILL);
              wait_for(stopped);
              EXPECT_EQUAL(books.used_by_all(), uint64_t{0});
          }) == "");
}

TEST_CASE("looks at processes that are stopped at any moment are answered, and right") {
    CHECK(in_child({}, [](const Report& report) {
              alarm(60);
              constexpr int count = 4;
              Books books;
              open_books(report, books);
              std::vector<pid_t> children;
              for (int i = 0; i < count; i++) {
                  children.push_back(holder(report, 100 * MiB, [i](Books& own) {
                      prctl(PR_SET_PDEATHSIG, SIGKILL);
                      for (uint64_t round = 0;; round++) {
                          const uint64_t id = 1 + 10 * round + static_cast<uint64_t>(i);
                          own.share(id, MiB);
                          for (int pair = 0; pair < 50; pair++) {
                              if (own.charge(150 * MiB))
                                  own.release(150 * MiB);
                          }
                          own.holders();
                          own.drop(id, false);
                      }
                  }));
              }
              for (int look = 0; look < 100; look++) {
                  for (const pid_t child : children)
                      kill(child, SIGSTOP);
                  const uint64_t used = books.used_by_all();
                  EXPECT(used >= count * 100 * MiB && used <= capacity);
                  size_t live = 0;
                  for (const Holder& one : books.holders())
                      live += one.live;
                  EXPECT_EQUAL(live, size_t{count + 1});
                  EXPECT(books.charge(capacity - used));
                  EXPECT(!books.charge(1));
                  books.release(capacity - used);
                  for (const pid_t child : children)
                      kill(child, SIGCONT);
              }
              for (const pid_t child : children) {
                  kill(child, SIGKILL);
                  wait_for(child);
              }
              EXPECT_EQUAL(books.used_by_all(), uint64_t{0});
          }) == "");
}
