// SPDX-License-Identifier: Apache-2.0
// Command lines of processes: what is read, and what of it is shown.
#include "cli/text/command_line.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/cli/tree.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

using cli::command_text;
using cli::CommandDetail;

std::string line(const Words& words, const std::string& name = "name") {
    return command_text(words, name, CommandDetail::line);
}
std::string program(const Words& words, const std::string& name = "name") {
    return command_text(words, name, CommandDetail::program);
}

// A shell with these words that stands still, until the end of the case.
class Still {
  public:
    explicit Still(const std::vector<const char*>& words) : pid_(::fork()) {
        if (pid_ == 0) {
            std::vector<char*> pointers;
            for (const char* word : words)
                pointers.push_back(const_cast<char*>(word));
            pointers.push_back(nullptr);
            ::execv("/bin/sh", pointers.data());
            ::_exit(127);
        }
    }
    ~Still() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Still(const Still&) = delete;
    Still& operator=(const Still&) = delete;

    ledger::ProcessIdentity identity() const {
        return {pid_, ledger::own_pid_namespace(), ledger::start_time_of(pid_)};
    }

  private:
    pid_t pid_;
};

}  // namespace

TEST_CASE("a command is shown as its user would name it: program and script without their folders") {
    CHECK(line({"/opt/conda/bin/python3.11", "/home/alice/train.py", "--epochs", "3"}) ==
          "python3.11 train.py --epochs 3");
    CHECK(line({"python", "-u", "-W", "ignore", "src/train.py", "/data/x"}) == "python -u -W ignore train.py /data/x");
    CHECK(line({"/usr/bin/python3", "-m", "torch.distributed.run", "/x/train.py"}) ==
          "python3 -m torch.distributed.run /x/train.py");
    CHECK(line({"/bin/sh", "/opt/run.sh", "/x"}) == "sh run.sh /x");
    CHECK(line({"./a.out", "/data/x"}) == "a.out /data/x");
    CHECK(line({"python3"}) == "python3");
    // A process that calls itself something.
    CHECK(line({"nginx: worker /usr/sbin/nginx"}) == "nginx: worker /usr/sbin/nginx");
    CHECK(line({}) == "name");
}

TEST_CASE("whole, a command has every word as it is") {
    CHECK(command_text({"/opt/bin/python", "/x/train.py", "", "a b"}, "python", CommandDetail::whole) ==
          "/opt/bin/python /x/train.py  a b");
    CHECK(command_text({}, "python", CommandDetail::whole) == "python");
}

TEST_CASE("a message names the program and its script, and no argument: it may go into a log") {
    CHECK(program({"/usr/bin/python3", "-u", "/x/train.py", "--token=secret"}) == "python3 train.py");
    CHECK(program({"python3", "-m", "vllm", "--api-key", "secret"}) == "python3 -m vllm");
    CHECK(program({"python3", "-c", "password = 'secret'"}) == "python3 -c");
    CHECK(program({"/opt/serve", "secret"}) == "serve");
    CHECK(program({}) == "name");
}

TEST_CASE("a launcher that waits is called as the program that it is to start") {
    const Words words = {"/usr/bin/cuslice", "run", "--limit", "4GiB", "--wait", "--", "python", "/x/train.py", "3"};
    CHECK(line(words, "python") == "python train.py 3");
    CHECK(program(words, "python") == "python train.py");
    CHECK(command_text(words, "python", CommandDetail::whole) == "python /x/train.py 3");
    CHECK(line({"cuslice", "run", "/opt/a-program-with-a-long-name", "x"}, "a-program-with-") ==
          "a-program-with-a-long-name x");
    CHECK(line({"cuslice", "run", "x"}, "python") == "python");
    CHECK(line({"cuslice", "demo"}, "cuslice") == "cuslice demo");
}

TEST_CASE("a command line is read of the very process that is meant, and of its user alone") {
    const Still still({"a shell", "-c", "kill -STOP $$", "--token=x\n"});
    const ledger::ProcessIdentity whole = still.identity();
    const Words words = {"a shell", "-c", "kill -STOP $$", "--token=x\n"};
    // Until the exec it has its parent's.
    REQUIRE(soon([&] { return cli::read_command_line(whole, ::geteuid()) == words; }));
    ledger::ProcessIdentity other = whole;
    other.start_time += 1000;
    CHECK(cli::read_command_line(other, ::geteuid()).empty());
    other = whole;
    other.pid_namespace += 1;
    CHECK(cli::read_command_line(other, ::geteuid()).empty());
    other = whole;
    other.start_time = 0;
    CHECK(cli::read_command_line(other, ::geteuid()).empty());
    other = whole;
    other.pid = -1;
    CHECK(cli::read_command_line(other, ::geteuid()).empty());
    CHECK(cli::read_command_line(whole, ::geteuid() + 1).empty());
}

TEST_CASE("of a very long command line the beginning is read, and of a process that has ended nothing") {
    ledger::ProcessIdentity ended;
    {
        const std::string word(3000, 'w');
        const Still still({"sh", "-c", "kill -STOP $$", word.c_str(), word.c_str()});
        ended = still.identity();
        REQUIRE(soon([&] {
            const Words words = cli::read_command_line(ended, ::geteuid());
            return words.size() == 5 && words[3] == word && words[4] == std::string(4096 - 3000 - 21, 'w');
        }));
    }
    CHECK(cli::read_command_line(ended, ::geteuid()).empty());
}

TEST_CASE("in JSON a command line is a list of words, or null") {
    CHECK(cli::json_of_words({"a", "b c"}).dump() == R"(["a","b c"])");
    CHECK(cli::json_of_words({}).is_null());
}

}  // namespace cuslice::tests
