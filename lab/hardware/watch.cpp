// SPDX-License-Identifier: Apache-2.0
// Runs a program and reads from outside, without cuslice, what NVML and nvidia-smi say of it: all the time for the
// highest figure, and once while the program holds everything it could get and waits. Prints one row of the record's
// table; fails if the program did, if it held more than the limit at any reading, or if NVML works and lists nothing.
//
//   watch --head                                                       the table's head
//   watch --name NAME [--limit BYTES] [--processes N] [--table yes] -- program args
//
// With --table the head stands above the row, for a program that prints something of its own before.
// With --processes it is N of the programs that this one starts that take memory: the figures are sums over all of
// them, and each is told to go on only when all have their contexts, and again when all hold what they got.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "lab/hardware/management.h"
#include "lab/hardware/stacks.h"
#include "lab/hardware/text.h"

namespace cuslice::check {
namespace {

class Watched {
  public:
    Watched(char** command, unsigned processes) : processes_(processes), used_before_(used_bytes()) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            std::exit(1);
        pid_ = fork();
        if (pid_ == 0) {
            close(ends[0]);
            setenv("CHECK_WATCHER", std::to_string(ends[1]).c_str(), 1);
            prctl(PR_SET_PDEATHSIG, SIGKILL);  // a watcher that is stopped takes its program along
            execvp(command[0], command);
            std::perror(command[0]);
            _exit(127);
        }
        close(ends[1]);
        socket_ = ends[0];
    }

    /// Until the program closes its end. Reads NVML every 20 ms besides.
    void follow() {
        std::string text;
        for (;;) {
            pollfd ready{socket_, POLLIN, 0};
            if (poll(&ready, 1, 20) > 0) {
                char piece[512];
                const ssize_t count = read(socket_, piece, sizeof piece);
                if (count <= 0)
                    break;
                text.append(piece, static_cast<size_t>(count));
                for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
                    take(text.substr(0, end));
            }
            sample();
            // One of several that failed before it held anything mustn't keep the others for ever.
            if (waiting_ > 0 && ++looks_ > most_looks())
                let_go();
        }
        // Its children may hold the socket after it has ended, or it may close the socket before it ends.
        while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
        }
    }

    std::string value(const std::string& key) const {
        const auto found = told_.find(key);
        return found == told_.end() ? "–" : found->second;
    }
    std::optional<uint64_t> bytes(const std::string& key) const {
        const auto found = told_.find(key);
        return found == told_.end() ? std::nullopt : std::optional(std::strtoull(found->second.c_str(), nullptr, 10));
    }

    std::optional<uint64_t> held() const { return figure().held; }
    std::optional<uint64_t> highest() const { return figure().highest; }
    std::string nvidia_smi() const { return nvidia_smi_; }
    /// False: NVML doesn't list the process under its id (a container with ids of its own); the figures are then what
    /// the GPU's use rose by since before it started, to which other processes may have added.
    bool listed() const { return of_process_.highest.has_value(); }
    bool succeeded() const { return WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }
    std::string how_it_ended() const {
        if (WIFSIGNALED(status_))
            return "signal " + std::to_string(WTERMSIG(status_));
        return "exit " + std::to_string(WEXITSTATUS(status_));
    }

  private:
    struct Figure {
        std::optional<uint64_t> now, held, highest;
        void take(std::optional<uint64_t> bytes) {
            now = bytes;
            if (bytes)
                highest = std::max(highest.value_or(0), *bytes);
        }
    };
    const Figure& figure() const { return listed() ? of_process_ : of_gpu_; }

    void take(const std::string& line) {
        const size_t space = line.find(' ');
        if (space == std::string::npos)
            return;
        const std::string key = line.substr(0, space), value = line.substr(space + 1);
        if (key == "got") {
            told_[key] = std::to_string(bytes(key).value_or(0) + std::strtoull(value.c_str(), nullptr, 10));
        } else if (key == "ready" || key == "held") {
            holding_ += key == "held";
            if (++waiting_ >= processes_)
                let_go();
        } else {
            // Among several results, a wrong one counts.
            if (key != "result" || told_[key].empty() || told_[key].rfind("right", 0) == 0)
                told_[key] = value;
        }
    }

    // All have come to the same place, or some never will.
    void let_go() {
        sample();
        if (holding_ > 0) {
            of_process_.held = of_process_.now;
            of_gpu_.held = of_gpu_.now;
            nvidia_smi_ = ask_nvidia_smi();
        }
        const ssize_t answered = write(socket_, holding_ > 0 ? "held" : "ready", 1);
        static_cast<void>(answered);  // a program that ended meanwhile shows in its status
        waiting_ = holding_ = looks_ = 0;
    }

    // Both figures are followed, since a process is in no list as long as it has no context: only at the end is it
    // known whether it never came into one.
    void sample() {
        of_process_.take(processes_ > 1 ? bytes_of_all() : process_bytes(pid_));
        const auto all = used_bytes();
        if (all && used_before_)
            of_gpu_.take(*all > *used_before_ ? *all - *used_before_ : 0);
    }

    std::optional<uint64_t> bytes_of_all() const {
        std::optional<uint64_t> sum;
        for (pid_t pid : descendants(pid_))
            if (const auto bytes = process_bytes(pid))
                sum = sum.value_or(0) + *bytes;
        return sum;
    }

    std::string ask_nvidia_smi() const {
        FILE* pipe =
            popen("nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits 2>/dev/null", "r");
        if (!pipe)
            return "–";
        int pid = 0;
        long used = 0;
        std::string answer = "–";
        char line[256];
        while (std::fgets(line, sizeof line, pipe))
            if (std::sscanf(line, "%d, %ld", &pid, &used) == 2 && pid == pid_)
                answer = std::to_string(used) + " MiB";
        pclose(pipe);
        return answer;
    }

    /// 8 s on a GPU, at 20 ms each.
    static unsigned most_looks() {
        const char* patience = std::getenv("CHECK_PATIENCE");
        return 400 * (patience ? static_cast<unsigned>(std::atoi(patience)) : 1);
    }

    const unsigned processes_;
    unsigned waiting_ = 0, holding_ = 0, looks_ = 0;  // holding: those of the waiting that have all they could get
    const std::optional<uint64_t> used_before_;
    pid_t pid_ = -1;
    int socket_ = -1, status_ = 0;
    std::map<std::string, std::string> told_;
    Figure of_process_, of_gpu_;
    std::string nvidia_smi_ = "–";
};

void print_head() {
    std::printf(
        "| program | total shown | free shown | got | refused with | counted by cuslice | NVML, from outside | "
        "nvidia-smi | NVML − counted | highest from outside | ≤ limit | computation |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

}  // namespace
}  // namespace cuslice::check

int main(int argc, char** argv) {
    using namespace cuslice::check;
    std::string name = "program";
    std::optional<uint64_t> limit;
    unsigned processes = 1;
    bool table = false;
    if (argc == 2 && std::strcmp(argv[1], "--head") == 0)
        return print_head(), 0;
    int at = 1;
    for (; at + 1 < argc && std::strcmp(argv[at], "--") != 0; at += 2) {
        if (std::strcmp(argv[at], "--name") == 0)
            name = argv[at + 1];
        if (std::strcmp(argv[at], "--limit") == 0)
            limit = std::strtoull(argv[at + 1], nullptr, 10);
        if (std::strcmp(argv[at], "--table") == 0)
            table = true;
        if (std::strcmp(argv[at], "--processes") == 0)
            processes = static_cast<unsigned>(std::strtoul(argv[at + 1], nullptr, 10));
    }
    if (at + 1 >= argc)
        return std::fprintf(stderr, "watch --name NAME [--limit BYTES] [--processes N] -- program args\n"), 64;

    Watched watched(argv + at + 1, processes);
    watched.follow();
    if (watched.value("skipped") != "–") {
        std::fprintf(stderr, "%s: %s\n", name.c_str(), watched.value("skipped").c_str());
        return 77;
    }
    // Without NVML nobody sees from outside what is held: then the program's own result is all there is.
    const bool seen = watched.highest().has_value();
    const bool within = seen ? !limit || *watched.highest() <= *limit : !has_management();
    const bool right = watched.value("result").rfind("right", 0) == 0;
    if (table)
        std::printf("\n"), print_head();
    std::printf("| %s | %s | %s | %s | %s | %s | %s%s | %s | %s | %s | %s | %s |\n", name.c_str(),
                mib(watched.bytes("total")).c_str(), mib(watched.bytes("free")).c_str(),
                mib(watched.bytes("got")).c_str(), watched.value("refused").c_str(),
                mib(watched.bytes("counted")).c_str(), mib(watched.held()).c_str(),
                watched.listed() || !seen ? "" : " (not listed; the GPU's use rose by)", watched.nvidia_smi().c_str(),
                mib_between(watched.held(), watched.bytes("counted")).c_str(), mib(watched.highest()).c_str(),
                !limit   ? "no limit"
                : !seen  ? "not seen"
                : within ? "yes"
                         : "**no**",
                watched.succeeded() ? watched.value("result").c_str() : watched.how_it_ended().c_str());
    return watched.succeeded() && within && right ? 0 : 1;
}
