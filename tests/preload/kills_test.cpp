// SPDX-License-Identifier: Apache-2.0
// Jobs whose processes are killed at random moments, the launcher's among them, all on one GPU and its ledger:
// launchers, jobs within jobs, groups, jobs of LD_PRELOAD alone and a rule of the system. In the end nothing is left
// over.
//
// The usual numbers are for every run of the tests; with CUSLICE_TEST_FULL it is 500 jobs with 1,000 kills, and 300
// processes at once. What is drawn follows from CUSLICE_TEST_SEED, or 1; where a process stands when it is killed does
// not.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "policy/ledger/total.h"
#include "tests/catch.h"
#include "tests/json.h"
#include "tests/policy/ledger/left_over.h"
#include "tests/policy/rounds.h"
#include "tests/preload/guest.h"
#include "tests/preload/places.h"
#include "tests/preload/scene.h"
#include "tests/skip.h"
#include "tests/soon.h"

namespace cuslice::tests {
namespace {

const std::string kLaunch = CUSLICE_TEST_LAUNCH;
const std::string kGuest = kGuests + "/guest_linked";

/// The living processes of each session, but for those that nobody has reaped yet.
std::map<pid_t, std::vector<pid_t>> sessions() {
    std::map<pid_t, std::vector<pid_t>> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos)
            continue;
        std::string text;
        std::getline(std::ifstream(entry.path() / "stat"), text);
        const size_t end = text.rfind(')');
        if (end == std::string::npos)
            continue;
        std::istringstream fields(text.substr(end + 1));
        char state = 0;
        pid_t parent = 0, group = 0, session = 0;
        fields >> state >> parent >> group >> session;
        if (state != 'Z' && state != 'X')
            found[session].push_back(std::stoi(name));
    }
    return found;
}

/// A program in a session of its own, with all that it starts.
pid_t start(const Words& words, const Words& environment, const std::string& errors) {
    std::vector<char*> arguments, lines;
    for (const std::string& word : words)
        arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& line : environment)
        lines.push_back(const_cast<char*>(line.c_str()));
    arguments.push_back(nullptr), lines.push_back(nullptr);
    const pid_t child = fork();
    if (child != 0)
        return child;
    setsid();
    const int none = open("/dev/null", O_RDWR), said = open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(none, STDIN_FILENO), dup2(none, STDOUT_FILENO), dup2(said, STDERR_FILENO);
    execvpe(arguments[0], arguments.data(), lines.data());
    _exit(125);
}

/// That nobody is in it or waits. Which kinds of accounts have held anything, as far as the ledger remembers.
std::set<ledger::AccountKind> check_ledger(const Folder& books) {
    std::set<ledger::AccountKind> kinds;
    unsigned ledgers = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(books.path())) {
        if (entry.path().extension() != ".ledger")
            continue;
        ledgers++;
        const int descriptor = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
        void* const memory = mmap(nullptr, sizeof(ledger::File), PROT_READ, MAP_SHARED, descriptor, 0);
        REQUIRE(memory != MAP_FAILED);
        close(descriptor);
        const auto& file = *static_cast<const ledger::File*>(memory);
        for (const ledger::Account& account : file.accounts) {
            CAPTURE(std::string(account.name));
            CHECK(account.total.bytes == 0);
            CHECK(account.reserved.load() == 0);
            if (account.peak.load() != 0)
                kinds.insert(account.kind);
        }
        const LeftOver left = left_over(file);
        CHECK(left.members == 0);
        CHECK(left.tickets == 0);
        CHECK(left.accounts == 0);
        CHECK(left.stripes == 0);
        munmap(memory, sizeof(ledger::File));
    }
    CHECK(ledgers == 1);
    return kinds;
}

/// One GPU, the jobs that are on it, and who kills them.
class Storm {
  public:
    explicit Storm(std::string gpu) : gpu_(std::move(gpu)) {
        const char* const seed = std::getenv("CUSLICE_TEST_SEED");
        random_.seed(seed ? static_cast<unsigned>(std::stoul(seed)) : 1);
        // Only root can give a job an /etc of its own, and nobody where namespaces are forbidden.
        for (const char* folder : {"/answers", "/ends"})
            std::filesystem::create_directories(books_.path() + folder);
        rules_ = etc_.path() + "/etc";
        for (const char* file : {"passwd", "group", "ld.so.cache", "nsswitch.conf"}) {
            std::error_code none;
            std::filesystem::create_directories(rules_);
            std::filesystem::copy(std::string("/etc/") + file, rules_ + "/" + file, none);
        }
        etc_.write("etc/cuslice/rules.d/10.toml",
                   "[[rule]]\nname = \"storm\"\nexecutable = \"" + kGuest + "\"\nfraction = 0.25\nshare = \"user\"\n");
        // A rule's ledger is where the system says, whatever a variable does.
        etc_.write("etc/cuslice/cuslice.toml", "dir = \"" + ledgers() + "\"\n");
        for (const char* folder : {"/etc", "/etc/cuslice", "/etc/cuslice/rules.d"})
            REQUIRE(::chmod((etc_.path() + folder).c_str(), 0755) == 0);
        rules_possible_ = ::geteuid() == 0 && run(ruled({"/bin/true"}), plain()).exit_code == 0;
    }

    /// Jobs until so many have been started and so many processes killed, of which `at_once` are there at a time.
    void rage(int jobs, int kills, int at_once) {
        while (started_ < jobs || killed_ < kills) {
            while (static_cast<int>(running_.size()) < at_once)
                begin();
            usleep(random_() % 4000);
            const auto now = sessions();
            reap(now);
            if (running_.empty())
                continue;
            Running& job = running_[random_() % running_.size()];
            // How far it comes is drawn, not left to how fast this machine is.
            if (answers_of(job) < job.answers_before_kill)
                continue;
            if (const auto found = now.find(job.leader); found != now.end()) {
                const pid_t victim = found->second[random_() % found->second.size()];
                kill(victim, victim == job.leader);
            }
            // After two of them on average it may end by itself.
            if (random_() % 2)
                let_end(job);
        }
    }
    /// All are there at once: waits until so many processes have memory.
    void gather(unsigned jobs, unsigned holding) {
        while (running_.size() < jobs)
            begin();
        CHECK(soon([&] { return holders().size() >= holding; }));
    }
    /// Kills one in `part` of all processes, at one moment.
    void strike(unsigned part) {
        for (const auto& [leader, pids] : sessions()) {
            if (std::none_of(running_.begin(), running_.end(),
                             [&, at = leader](auto& job) { return job.leader == at; }))
                continue;
            for (const pid_t pid : pids)
                if (random_() % part == 0)
                    kill(pid, pid == leader);
        }
    }
    /// Lets all jobs go on to their ends.
    void calm() {
        for (Running& job : running_)
            let_end(job);
        const bool ended = soon([&] {
            reap(sessions());
            return running_.empty();
        });
        INFO("still there: " << running_.size());
        if (!ended)
            for (const Running& job : running_)
                ::kill(-job.leader, SIGKILL);
        CHECK(ended);
    }

    Json holders() const { return asked()["processes"]; }
    /// Nothing is held, reserved or waited for, by whom the ledger lists and by what is in it.
    void check_nothing_left() const {
        const Json now = asked();
        CHECK(now["processes"].size() == 0);
        CHECK(now["waiting"].size() == 0);
        const std::set<ledger::AccountKind> kinds = check_ledger(books_);
        CHECK(kinds.count(ledger::AccountKind::job) == 1);
        if (!plain_jobs)
            CHECK(kinds.count(ledger::AccountKind::group) == 1);
        if (!plain_jobs && rules_possible_)
            CHECK(kinds.count(ledger::AccountKind::rule) == 1);
        // No process has died of anything but what it was killed by, and no call has had another answer than it may.
        const auto first_words = [&](const std::string& folder) {
            std::map<std::string, int> found;
            for (const auto& entry : std::filesystem::directory_iterator(books_.path() + "/" + folder)) {
                std::ifstream log(entry.path());
                for (std::string line; std::getline(log, line);)
                    found[line.substr(0, line.find(' '))]++;
            }
            return found;
        };
        for (const auto& [code, count] : first_words("ends")) {
            CAPTURE(code, count);
            CHECK((code == "0" || code == "137"));
        }
        // Granted, out of memory, and after a context that was refused no context.
        std::map<std::string, int> answers = first_words("answers");
        CHECK(answers["0"] > started_);
        for (const auto& [answer, count] : answers) {
            CAPTURE(answer, count);
            CHECK((answer == "0" || answer == "2" || answer == "201" || answer == "cuslice:"));
        }
    }
    /// How many blocks a job has that is alone and has the whole GPU.
    uint64_t whole() {
        Guest guest({kLaunch, "run", "--fake", gpu_, "--fraction", "1", "--", kGuest, "linked"}, plain(surroundings()));
        retain_device(guest);
        const uint64_t blocks = guest.number("fill " + bytes(16 * kMiB));
        CHECK(guest.finish() == 0);
        return blocks;
    }
    std::string counts() const {
        std::ostringstream text;
        text << started_ << " jobs, " << killed_ << " processes killed, of which " << killed_leaders_
             << " were launchers or what they had become" << (rules_possible_ ? "" : "; without a rule's account");
        return text.str();
    }
    /// Each has two processes that make a context and hold some memory, without a launcher.
    bool plain_jobs = false;

  private:
    struct Running {
        pid_t leader = 0;
        bool reaped = false;
        std::vector<int> feeds;  // what keeps its guests from ending
        std::vector<std::string> files;
        std::string answers;             // the file that its guests write
        size_t answers_before_kill = 0;  // lines
    };

    std::string ledgers() const { return books_.path() + "/ledgers"; }
    /// Variables that every process has in its environment.
    Words surroundings() const { return {"CUSLICE_FAKE_DIR=" + books_.path(), "CUSLICE_DIR=" + ledgers()}; }
    Words ruled(const Words& words) const {
        Words all{"/usr/bin/unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\"", rules_};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }
    Json asked() const {
        const Outcome outcome = run({kLaunch, "ps", "--json", "--fake", gpu_}, plain(surroundings()));
        REQUIRE(outcome.exit_code == 0);
        return Json::parse(outcome.out);
    }
    std::string size(uint64_t least, uint64_t most) { return std::to_string(least + random_() % (most - least + 1)); }

    /// Guests that read what they do from a fifo, and hold what they have until that is closed here.
    std::string script(unsigned guests, Running& job) {
        const std::string name = std::to_string(started_);
        job.answers = books_.path() + "/answers/" + name;
        size_t answers = 0;
        std::string text;
        for (unsigned i = 0; i < guests; i++) {
            const std::string fifo = books_.path() + "/feed" + std::to_string(feeds_++);
            REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
            const int feed = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
            REQUIRE(feed >= 0);
            std::string lines = "letchange free\ninit\nretain 0\n";
            for (int k = static_cast<int>(random_() % 12); k >= 0 && !plain_jobs; k--) {
                lines += "alloc x" + std::to_string(k) + " " + size(1, 64 * kMiB) + "\n";
                if (random_() % 4 == 0)
                    lines += "fill " + size(128 * kMiB, 512 * kMiB) + "\n";
                if (random_() % 3 == 0)
                    lines += "freeall\n";
            }
            if (plain_jobs)
                lines += "alloc x " + size(1, 8 * kMiB) + "\n";
            REQUIRE(write(feed, lines.data(), lines.size()) == static_cast<ssize_t>(lines.size()));
            answers += static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
            job.feeds.push_back(feed);
            job.files.push_back(fifo);
            text += "(" + kGuest + " linked < " + fifo + " >> " + job.answers + " 2>&1; echo $? >> " + books_.path() +
                    "/ends/" + name + ") & ";
        }
        // Every second one may be killed from its first instruction on, before its launcher has reserved anything.
        if (random_() % 2)
            job.answers_before_kill = random_() % (answers + 1);
        return text + "wait";
    }

    void begin() {
        Running job;
        const std::string name = std::to_string(random_() % 3);
        const Words program{"bash", "-c", script(plain_jobs ? 2 : 1 + random_() % 3, job)};
        Words launch{kLaunch, "run", "--fake", gpu_}, environment = surroundings();
        const Words preloaded{"CUSLICE_FAKE=" + gpu_, "LD_PRELOAD=" + preload_list()};
        const auto with = [](Words words, const Words& more) {
            words.insert(words.end(), more.begin(), more.end());
            return words;
        };
        const Words wait{"--wait", "--limit", std::to_string(1 + random_() % 4) + "GiB"};
        switch (plain_jobs ? 1 : started_ % 5) {
            case 0:
                launch = with(with(launch, wait), {"--"});
                break;
            case 1:  // all of such a name are one job, which nobody reserves anything for
                launch.clear();
                environment = with(environment, with(preloaded, {"CUSLICE_JOB=shared" + name, "CUSLICE_LIMIT=4GiB"}));
                break;
            case 2:
                launch = with(with(launch, wait), {"--group", "lab" + name, "--group-limit", "3GiB", "--"});
                break;
            case 3:
                launch = with(with(launch, wait), {"--", kLaunch, "run", "--limit", "1GiB", "--"});
                break;
            default:
                if (rules_possible_)
                    launch = ruled({});
                if (!rules_possible_)
                    launch.clear();
                environment = with(environment, preloaded);
        }
        job.leader = start(with(launch, program), plain(environment), books_.path() + "/errors");
        running_.push_back(std::move(job));
        started_++;
    }
    static size_t answers_of(const Running& job) {
        std::ifstream log(job.answers);
        return static_cast<size_t>(
            std::count(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>(), '\n'));
    }
    void kill(pid_t pid, bool leader) {
        if (::kill(pid, SIGKILL) != 0)
            return;
        killed_++;
        killed_leaders_ += leader;
    }
    static void let_end(Running& job) {
        for (const int feed : job.feeds)
            close(feed);
        job.feeds.clear();
    }
    /// Removes the jobs of which no process is left.
    void reap(const std::map<pid_t, std::vector<pid_t>>& now) {
        for (size_t i = running_.size(); i-- > 0;) {
            Running& job = running_[i];
            job.reaped = job.reaped || waitpid(job.leader, nullptr, WNOHANG) == job.leader;
            // A shell that came to its fifo after that was closed here waits for somebody to open it.
            if (job.feeds.empty())
                for (const std::string& file : job.files)
                    close(open(file.c_str(), O_RDWR | O_CLOEXEC));
            if (!job.reaped || now.count(job.leader))
                continue;
            let_end(job);
            for (const std::string& file : job.files)
                unlink(file.c_str());
            running_.erase(running_.begin() + static_cast<ptrdiff_t>(i));
        }
    }

    const std::string gpu_;
    Folder books_, etc_;
    std::string rules_;
    bool rules_possible_ = false;
    std::mt19937 random_;
    std::vector<Running> running_;
    int started_ = 0, killed_ = 0, killed_leaders_ = 0, feeds_ = 0;
};

}  // namespace

TEST_CASE("of jobs whose processes are killed at random nothing is left over", "[slow]") {
    if (!kSanitizer.empty())
        return skip("shells would have the sanitizer's runtime preloaded, too");
    Storm storm("1xt4");
    const uint64_t whole = storm.whole();
    storm.rage(rounds(50, 500), rounds(100, 1000), kSlower > 1 ? 4 : 8);
    storm.calm();
    WARN(storm.counts());
    storm.check_nothing_left();
    CHECK(storm.whole() == whole);
}

TEST_CASE("of many processes at once, a third of them killed at one moment, nothing is left over", "[slow]") {
    if (!kSanitizer.empty())
        return skip("shells would have the sanitizer's runtime preloaded, too");
    // So that the contexts of all fit.
    const Folder machine;
    Storm storm(machine.write("gpus.toml", "[[gpu]]\nprofile = \"h200\"\ncontext = \"16MiB\"\n"));
    const uint64_t whole = storm.whole();
    storm.plain_jobs = true;
    const auto jobs = static_cast<unsigned>(rounds(20, 150));
    storm.gather(jobs, 2 * jobs);
    storm.strike(3);
    storm.calm();
    WARN(storm.counts());
    storm.check_nothing_left();
    CHECK(storm.whole() == whole);
}

}  // namespace cuslice::tests
