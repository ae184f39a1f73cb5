// SPDX-License-Identifier: Apache-2.0
// A job that is killed before steps that others could notice (tests/stepped_child.h), from its launcher's first one to
// the program's last: while the launcher reserves, hands on what it has reserved, and becomes the program, and while
// that makes its context, allocates, and ends. Killed there, it has left nothing.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/allowed.h"
#include "tests/catch.h"
#include "tests/policy/ledger/left_over.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/skip.h"
#include "tests/stepped_child.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;
const std::string kGpu = "1xt4";

/// A machine with one GPU, and a job on it that reads what it does from a file.
class Job {
  public:
    Job() {
        for (std::string& word : words_)
            arguments_.push_back(word.data());
        for (std::string& line : environment_)
            lines_.push_back(line.data());
        arguments_.push_back(nullptr);
        lines_.push_back(nullptr);
    }

    void become() {
        ::dup2(::open(script_.c_str(), O_RDONLY), STDIN_FILENO);
        const int none = ::open("/dev/null", O_WRONLY);
        ::dup2(none, STDOUT_FILENO);
        ::dup2(none, STDERR_FILENO);
        ::close(none);
        SteppedChild::from_here();
        ::execve(arguments_[0], arguments_.data(), lines_.data());
        ::_exit(125);
    }
    /// Somebody else gets all of the GPU, and then nobody is in a ledger. An empty file of a process that was killed
    /// before it was in one may stay for a while (FolderPresence::remove_leftovers()).
    void check_nothing_left() const {
        const Outcome next = run({kLaunch, "run", "--fake", kGpu, "--fraction", "1", "--", "/bin/true"}, environment_);
        INFO(next.err);
        CHECK(next.exit_code == 0);
        const Outcome listed = run({kLaunch, "ps", "--fake", kGpu}, environment_);
        CHECK(listed.exit_code == 0);
        for (const auto& entry : std::filesystem::directory_iterator(books_.path() + "/ledgers")) {
            if (entry.path().extension() == ".ledger")
                check_empty(entry.path());
        }
    }

  private:
    static void check_empty(const std::filesystem::path& path) {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        void* const memory = ::mmap(nullptr, sizeof(ledger::File), PROT_READ, MAP_SHARED, descriptor, 0);
        ::close(descriptor);
        REQUIRE(memory != MAP_FAILED);
        const LeftOver left = left_over(*static_cast<const ledger::File*>(memory));
        ::munmap(memory, sizeof(ledger::File));
        CAPTURE(left.bytes, left.reserved, left.members, left.tickets, left.stripes, left.accounts);
        CHECK(left.nothing());
    }

    Folder books_;
    std::string script_ = books_.write("script", "init\nretain 0\nalloc a 1048576\nalloc b 134217728\nfree a\n");
    Words environment_ = plain({"CUSLICE_FAKE_DIR=" + books_.path(), "CUSLICE_DIR=" + books_.path() + "/ledgers"});
    Words words_{kLaunch, "run", "--fake", kGpu, "--limit", "4GiB", "--", kGuests + "/guest_linked", "linked"};
    std::vector<char*> arguments_, lines_;
};

}  // namespace

TEST_CASE("a job that is killed before any step leaves nothing, from its launcher's first to the program's last",
          "[slow]") {
    if (!kSanitizer.empty())
        return skip("a sanitizer's runtime takes thousands of steps of its own");
    if (!can_trace())
        return;
    const unsigned every = std::getenv("CUSLICE_TEST_FULL") != nullptr ? 1 : 12;
    unsigned step = 1 + static_cast<unsigned>(::getpid()) % every;
    for (bool ended = false; !ended; step += every) {
        Job job;
        SteppedChild child([&] { job.become(); });
        ended = !child.go_to(step);
        INFO("killed before step " << step << ", " << child.about_to());
        if (ended) {
            CHECK(child.exit_code() == 0);
            CHECK(child.steps() >= 300);
        }
        child.kill();
        job.check_nothing_left();
    }
}

}  // namespace cuslice::tests
