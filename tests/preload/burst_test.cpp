// SPDX-License-Identifier: Apache-2.0
// More starts at one moment than a ledger has room for jobs: nobody runs without the reservation that its limit
// promises.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "policy/ledger/layout.h"
#include "tests/catch.h"
#include "tests/json.h"
#include "tests/preload/guest.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;
constexpr unsigned kStarts = 200;
constexpr uint64_t kSlice = 600 * kMiB;
constexpr int kRefusedCode = 75;
static_assert(kStarts > ledger::kAccounts);

pid_t start(const Words& words, const Words& environment, const std::string& errors) {
    std::vector<char*> arguments, lines;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& line : environment)
        lines.push_back(const_cast<char*>(line.c_str()));
    arguments.push_back(nullptr);
    lines.push_back(nullptr);
    const pid_t child = fork();
    if (child != 0)
        return child;
    const int said = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(said, STDERR_FILENO);
    execve(arguments[0], arguments.data(), lines.data());
    _exit(125);
}

/// Programs that were all started before the first of them was looked at.
class Burst {
  public:
    Burst() : environment_(plain({"CUSLICE_FAKE_DIR=" + books_.path()})) {
        for (unsigned i = 0; i < kStarts; i++) {
            const std::string errors = said_by(i);
            const pid_t pid = start(with_launcher({"/bin/sleep", "1000"}), environment_, errors);
            REQUIRE(pid > 0);
            unknown_[pid] = errors;
        }
    }
    ~Burst() {
        for (const auto& [pid, errors] : unknown_)
            end(pid);
        for (const pid_t pid : running_)
            end(pid);
    }
    Burst(const Burst&) = delete;
    Burst& operator=(const Burst&) = delete;

    /// True once each has become its program or ended.
    bool decided() {
        for (auto i = unknown_.begin(); i != unknown_.end();)
            i = decide(i->first, i->second) ? unknown_.erase(i) : ++i;
        return unknown_.empty();
    }
    const std::vector<pid_t>& running() const { return running_; }
    /// Exit codes, and the words of who ended.
    const std::vector<std::pair<int, std::string>>& ended() const { return ended_; }

    /// The pids of those for whom the whole slice is reserved.
    std::vector<pid_t> reserved() {
        const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", "1xh200"}, environment_);
        REQUIRE(outcome.exit_code == 0);
        std::vector<pid_t> pids;
        const Json answer = Json::parse(outcome.out);
        for (const Json process : answer["processes"])
            if (process["reserved"] == kSlice)
                pids.push_back(process["pid"].get<pid_t>());
        std::sort(pids.begin(), pids.end());
        return pids;
    }
    Outcome one_more() { return run(with_launcher({"/bin/true"}), environment_); }
    void end_one() {
        end(running_.back());
        running_.pop_back();
    }

  private:
    static Words with_launcher(const Words& program) {
        Words words{kLaunch, "run", "--fake", "1xh200", "--limit", "600MiB", "--"};
        words.insert(words.end(), program.begin(), program.end());
        return words;
    }
    static void end(pid_t pid) {
        kill(pid, SIGKILL);
        waitpid(pid, nullptr, 0);
    }
    std::string said_by(unsigned number) const { return books_.path() + "/said." + std::to_string(number); }

    bool decide(pid_t pid, const std::string& errors) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) == pid) {
            ended_.emplace_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(errors));
            return true;
        }
        if (read_text("/proc/" + std::to_string(pid) + "/comm") != "sleep\n")
            return false;
        running_.push_back(pid);
        return true;
    }

    Folder books_;
    Words environment_;
    std::map<pid_t, std::string> unknown_;
    std::vector<pid_t> running_;
    std::vector<std::pair<int, std::string>> ended_;
};

}  // namespace

TEST_CASE("of two hundred starts at once none runs without its reservation", "[slow]") {
    Burst burst;
    REQUIRE(soon([&] { return burst.decided(); }));
    for (const auto& [code, said] : burst.ended()) {
        CAPTURE(said);
        CHECK(code == kRefusedCode);
        CHECK(said.find("nothing can be reserved on GPU 0: ") != std::string::npos);
    }
    std::vector<pid_t> running = burst.running();
    std::sort(running.begin(), running.end());
    CHECK(burst.reserved() == running);
    CHECK(running.size() == ledger::kAccounts);

    const Outcome refused = burst.one_more();
    CHECK(refused.exit_code == kRefusedCode);
    CHECK(refused.err.find("room for 128 jobs and groups") != std::string::npos);
    burst.end_one();
    const Outcome granted = burst.one_more();
    CAPTURE(granted.err);
    CHECK(granted.exit_code == 0);
}

}  // namespace cuslice::tests
