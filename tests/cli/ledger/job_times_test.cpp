// SPDX-License-Identifier: Apache-2.0
// Jobs with a share of a GPU's time: in `cuslice ps`, and given another share by `cuslice set`.
#include "cli/ledger/job_times.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "cli/ledger/set_share.h"
#include "policy/lease/kernel_surroundings.h"
#include "policy/ledger/process_identity.h"
#include "policy/stats/file.h"
#include "tests/cli/child.h"
#include "tests/cli/made_up_job.h"
#include "tests/cli/sharing_job.h"
#include "tests/cli/tree.h"

namespace cuslice::tests {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

Outcome command(const char* name, const Folder& folder, const Words& options) {
    return run(with({kLauncher, name, "--dir", folder.path()}, options),
               with(plain_environment("/nowhere"), {"COLUMNS=200"}));
}

std::string own_name() {
    const ledger::ProcessIdentity self = ledger::this_process();
    return std::to_string(self.pid) + "-" + std::to_string(self.start_time) + "-" + std::to_string(self.pid_namespace);
}

// A process that sleeps, with a job's name in its environment.
class Sleeper {
  public:
    explicit Sleeper(const std::string& line) : pid_(::fork()) {
        if (pid_ != 0)
            return;
        std::string argument = "1000", variable = line;
        char* const words[] = {program_invocation_name, argument.data(), nullptr};
        char* const lines[] = {variable.data(), nullptr};
        ::execve("/bin/sleep", words, lines);
        ::_exit(1);
    }
    ~Sleeper() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    // Once it runs its program.
    ledger::ProcessIdentity identity() const {
        char link[64];
        for (ssize_t size = 0; std::string_view(link, size).find("sleep") == std::string_view::npos;) {
            size = ::readlink(("/proc/" + std::to_string(pid_) + "/exe").c_str(), link, sizeof link);
            size = size < 0 ? 0 : size;
            std::this_thread::yield();
        }
        return {pid_, ledger::own_pid_namespace(), ledger::start_time_of(pid_)};
    }

  private:
    const pid_t pid_;
};

// A process's place in a job of the lease, which this process holds for it.
struct PlaceOf {
    PlaceOf(const Folder& folder, const ledger::ProcessIdentity& process, const std::string& job) {
        REQUIRE(presence.enter(folder.path().c_str(), nullptr));
        REQUIRE(presence.keep_presence(lease::kPresenceMark, ledger::Presence::Lasts::until_exec, nullptr));
        REQUIRE(lease::open_lease(presence.where(), {}, &open, nullptr));
        lease::Member self{};
        self.presence = presence.presence().id();
        self.lock = presence.presence().kind();
        self.pid = process.pid;
        self.pid_namespace = process.pid_namespace;
        self.start_time = process.start_time;
        surroundings.look_in(presence);
        lease->attach(*open.file, surroundings, self);
        REQUIRE(lease->join(lease::job_id(job), {lease->number_of_gpu(kUuid), 30, lease::kWhole}));
    }
    ~PlaceOf() {
        lease->leave();
        lease::close_lease(&open);
        presence.leave(true);
    }

    ledger::FolderPresence presence;
    lease::KernelSurroundings surroundings;
    lease::OpenLease open;
    std::unique_ptr<lease::Lease> lease = std::make_unique<lease::Lease>();
};

}  // namespace

TEST_CASE("jobs with a share are those of the lease, by their names in the ledgers") {
    const Folder folder;
    CHECK(cli::read_job_times(folder.path(), {}).empty());
    SharingJob one(folder.path(), "1-made-up", kUuid, 30, 40);
    CHECK(one.lease().acquire(~0ull).granted);
    cli::Holder holder;
    holder.kind = "job";
    holder.name = "1-made-up";
    const std::vector<cli::JobTime> found = cli::read_job_times(folder.path(), {holder});
    REQUIRE(found.size() == 1);
    CHECK(found[0].gpu == kUuid);
    CHECK(found[0].name == "1-made-up");
    CHECK(found[0].user == ::geteuid());
    CHECK(found[0].share == 30);
    CHECK(found[0].cap == 40);
    CHECK(found[0].state == "runs");
    CHECK(found[0].pids == std::vector{::getpid()});
    CHECK(found[0].had > 0);
    CHECK(found[0].waited == 0);
    CHECK_FALSE(found[0].command_line.empty());
}

TEST_CASE("a job in no ledger has the name that its process's environment says, or its process's own") {
    const Folder folder;
    const auto names = [&] {
        std::vector<std::string> all;
        for (const cli::JobTime& job : cli::read_job_times(folder.path(), {}))
            all.push_back(job.name);
        return all;
    };
    {
        const SharingJob own(folder.path(), own_name(), kUuid, 30);
        CHECK(names() == std::vector{own_name()});
    }
    {
        const SharingJob unknown(folder.path(), "foobar", kUuid, 30);
        CHECK(names() == std::vector<std::string>{"85944171f73967e8"});
    }
    const Sleeper sleeper("CUSLICE_JOB=7-outer@GPU-a=0123456789abcdef,8-inner");
    {
        const PlaceOf place(folder, sleeper.identity(), "7-outer");
        CHECK(names() == std::vector<std::string>{"7-outer"});
    }
    // A name that isn't the number's is somebody else's.
    const PlaceOf place(folder, sleeper.identity(), "foobar");
    CHECK(names() == std::vector<std::string>{"85944171f73967e8"});
}

TEST_CASE("a job's time as JSON comes back as it was") {
    cli::JobTime job;
    job.gpu = kUuid;
    job.name = "1-made-up";
    job.pids = {1, 2};
    job.command_line = {"python", "train.py"};
    job.share = 30;
    job.cap = GENERATE(40u, lease::kWhole);
    job.had = 1'500'000'000;
    job.waited = 250'000'000;
    job.state = "waits";
    const cli::Json row = cli::Json::parse(cli::json_of(job).dump());
    CHECK(row.at("cap").is_null() == (job.cap == lease::kWhole));
    CHECK(row.at("had_seconds") == 1.5);
    CHECK(cli::json_of(cli::read_job_time(row)) == row);
    for (const char* key : {"gpu", "uid", "job", "pids", "share", "cap", "had_seconds", "waited_seconds", "state"}) {
        CAPTURE(key);
        cli::Json wrong = row;
        wrong[key] = cli::Json::object();
        CHECK_THROWS(cli::read_job_time(wrong));
    }
    cli::Json far = row;
    far["had_seconds"] = 1e300;
    CHECK(cli::read_job_time(far).had == 1'000'000'000 * uint64_t{1'000'000'000});
}

TEST_CASE("times are in tenths of a second, and longer ones as ages") {
    CHECK(cli::time_text(0) == "0.0 s");
    CHECK(cli::time_text(12'399'999'999) == "12.3 s");
    CHECK(cli::time_text(99'999'999'999) == "99.9 s");
    CHECK(cli::time_text(100'000'000'000) == cli::age_text(100));
}

TEST_CASE("ps: jobs with a share have a table of their own, also those in no ledger") {
    const Folder folder;
    const SharingJob one(folder.path(), "85-one", kUuid, 30, 40), other(folder.path(), own_name(), kUuid, 70);
    const Outcome table = command("ps", folder, {});
    CHECK(table.exit_code == 0);
    CHECK(contains(table.out, "SHARE  CAP"));
    CHECK(contains(table.out, "  30%  40%  0.0 s   0.0 s  idle "));
    CHECK(contains(table.out, "  70%    -  0.0 s   0.0 s  idle "));
    CHECK(contains(table.out, own_name()));
    const cli::Json json = cli::Json::parse(command("ps", folder, {"--json"}).out);
    REQUIRE(json.at("times").size() == 2);
    for (const cli::Json& row : json.at("times")) {
        CHECK(row.at("gpu") == kUuid);
        CHECK(row.at("cap") == (row.at("share") == 30 ? cli::Json(40) : cli::Json()));
    }
    const std::string gauges = command("ps", folder, {"--prometheus"}).out;
    CHECK(contains(gauges, "name=\"" + own_name() + "\"} 70\n"));
    CHECK(contains(gauges, "# TYPE cuslice_job_time_had_seconds gauge\n"));
    CHECK(contains(gauges, "} 0.000000000\n"));
}

TEST_CASE("stats: a process's caches are followed by its job's share, if it has one") {
    const Folder folder;
    stats::File* const file = stats::make_own(folder.path().c_str(), nullptr);
    REQUIRE(file != nullptr);
    std::strcpy(file->gpus[0].uuid, kUuid);
    file->gpus[0].mode = file->gpus[0].contexts = 1;
    file->gpus[0].sequence = 2;
    const std::string pid = std::to_string(::getpid());
    CHECK_FALSE(contains(command("stats", folder, {pid}).out, "SHARE"));
    const SharingJob one(folder.path(), own_name(), kUuid, 30, 40);
    CHECK(contains(command("stats", folder, {pid}).out, "SHARE  CAP    HAD  WAITED"));
    const cli::Json json = cli::Json::parse(command("stats", folder, {"--json", pid}).out);
    REQUIRE(json.at("times").size() == 1);
    CHECK(json.at("times")[0].at("cap") == 40);
    stats::remove_own(folder.path().c_str());
}

TEST_CASE("set changes a running job's share and cap, and says what they are") {
    const Folder folder;
    const SharingJob one(folder.path(), own_name(), kUuid, 30);
    const std::string said = kUuid + std::string(": job ") + own_name() + ": ";
    CHECK(command("set", folder, {"--job", own_name(), "--share", "40%"}).out == said + "share 40%, cap -\n");
    CHECK(command("set", folder, {"--job", own_name(), "--share-cap", "50%"}).out == said + "share 40%, cap 50%\n");
    CHECK(cli::read_job_times(folder.path(), {}).front().share == 40);
    CHECK(cli::read_job_times(folder.path(), {}).front().cap == 50);
    const Outcome above = command("set", folder, {"--job", own_name(), "--share", "60%"});
    CHECK(above.exit_code == 78);
    CHECK(contains(above.err, "a cap is not below the share; now it has 40% and a cap of 50%"));
    const Outcome elsewhere = command("set", folder, {"--job", own_name(), "--share", "GPU-0=20%"});
    CHECK(elsewhere.exit_code == 69);
    CHECK(contains(elsewhere.err, "has no share of a GPU that --share or --share-cap names"));
    CHECK(cli::read_job_times(folder.path(), {}).front().share == 40);
}

TEST_CASE("set finds a job whose name nobody tells, by the name and by its digits") {
    const Folder folder;
    const SharingJob one(folder.path(), "foobar", kUuid, 30);
    CHECK(command("set", folder, {"--job", "foobar", "--share", "40%"}).exit_code == 0);
    CHECK(cli::read_job_times(folder.path(), {}).front().share == 40);
    CHECK(command("set", folder, {"--job", "85944171f73967e8", "--share", "50%"}).exit_code == 0);
    CHECK(cli::read_job_times(folder.path(), {}).front().share == 50);
}

TEST_CASE("set gives no more than the rule of the system has") {
    const Folder folder;
    const SharingJob one(folder.path(), own_name(), kUuid, 30);
    Settings wanted, all;
    Reason why;
    REQUIRE(wanted.add({.key = Key::share, .value = "90%", .origin = "--share"}, why));
    REQUIRE(all.add({.key = Key::share, .ceiling = true, .rank = {Source::rule, 0}, .value = "60%", .origin = "rule"},
                    why));
    CHECK(cli::set_share(wanted, all, folder.path(), own_name()) == 0);
    CHECK(cli::read_job_times(folder.path(), {}).front().share == 60);
}

TEST_CASE("set refuses a share for a job that has none, for a group, and for nobody") {
    const Folder folder;
    const Job job(folder.path(), "made-up");
    const Outcome without = command("set", folder, {"--job", "1-made-up", "--share", "40%"});
    CHECK(without.exit_code == 69);
    CHECK(without.err == "cuslice: set: job 1-made-up was started without --share: its launches aren't hooked\n");
    const Outcome nobody = command("set", folder, {"--job", "2-made-up", "--share", "40%"});
    CHECK(nobody.exit_code == 69);
    CHECK(contains(nobody.err, "no job 2-made-up has a share of a GPU's time"));
    const Outcome group = command("set", folder, {"--group", "lab", "--share", "40%"});
    CHECK(group.exit_code == 64);
    CHECK(contains(group.err, "a share of a GPU's time is a job's"));
}

}  // namespace cuslice::tests
