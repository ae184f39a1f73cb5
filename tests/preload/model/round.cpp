// SPDX-License-Identifier: Apache-2.0
#include "tests/preload/model/round.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "fake/books/liveness.h"

namespace cuslice::tests::model {
namespace {

constexpr size_t kStory = 3000;       // steps that are remembered
constexpr uint64_t kPatience = 2000;  // milliseconds that nobody waits longer for a neighbour
constexpr uint64_t kLazy = 4 * kMiB;  // what the machine's driver takes when a module's code is first used

// A context or module that turns out not to fit is undone by the call that made it
// (docs/design/driver-footprint.md): what a program may have above its limit while it is stopped inside such calls, of
// three threads at once.
constexpr uint64_t kInside = 128 * kMiB;

}  // namespace

Round::Round(const Combination& combination, uint64_t seed, bool hostile, Totals& totals)
    : combination_(combination),
      random_(seed),
      totals_(totals),
      pool_chunk_(chance(3) ? "32MiB" : "2MiB"),
      headroom_(chance(3)   ? "auto"
                : chance(2) ? "16MiB"
                            : "0MiB"),
      idle_release_(chance(4) ? "50ms" : "no"),
      // A removed ledger takes its room for as long as somebody has it mapped.
      place_(combination, pool_chunk_, chance(2) ? "4m" : "64m") {
    log("pools grow by " + pool_chunk_ + ", headroom " + headroom_ + ", idle-release " + idle_release_);
    if (hostile)
        hostile_ = std::make_unique<Hostile>(place_.ledgers(), place_.uuids(), kCapacity, seed + 1);
    for (unsigned i = 0; i < 4; ++i) {
        members_[i].number = i;
        members_[i].user = i / 2;
    }
}

uint64_t Round::size() {
    const uint64_t bits = chance(2) ? below(29) : 20 + below(9);
    return chance(60) ? uint64_t{1} << 34 : (uint64_t{1} << bits) + below(uint64_t{1} << bits);
}

void Round::log(const std::string& line) {
    story_.push_back(std::to_string(step_) + ": " + line);
    if (story_.size() > kStory)
        story_.pop_front();
}

void Round::fail(const std::string& what) { throw Finding(what); }

std::string Round::story(size_t most) {
    std::string text;
    while (story_.size() > most)
        story_.pop_front();
    for (const std::string& line : story_)
        text += "  " + line.substr(0, 300) + "\n";
    for (const Member& member : members_)
        if (member.worker)
            text += "  program " + std::to_string(member.number) + " now:\n" + member.worker->state();
    for (Member& member : members_)
        if (member.worker && !member.worker->err().empty())
            text += "  program " + std::to_string(member.number) + " said:\n" + member.worker->err();
    return text;
}

// ---- programs -------------------------------------------------------------------------------------------------------

// The first user's programs are one job and the second's one group, whose members have limits of their own besides.
// What is preallocated is a slice of each program's own, and parts are a job's for both.
Round::Limits Round::limits_of(unsigned user) const {
    const bool prealloc = combination_.mode == Combination::Mode::prealloc;
    if (user == 0)
        return prealloc ? Limits{500 * kMiB, 4096 * kMiB} : Limits{1100 * kMiB, 1100 * kMiB};
    if (combination_.mode == Combination::Mode::split)
        return {1000 * kMiB, 1000 * kMiB};
    return {(prealloc ? 400 : 700) * kMiB, 900 * kMiB};
}

Words Round::settings(const Member& member) const {
    const auto in_mib = [](uint64_t bytes) { return std::to_string(bytes / kMiB) + "MiB"; };
    const Limits limits = limits_of(member.user);
    Words words{"CUSLICE_DIR=" + place_.ledgers(), "CUSLICE_HEADROOM=" + headroom_,
                "CUSLICE_LIMIT=" + in_mib(limits.process)};
    const auto mode = combination_.mode;
    if (mode == Combination::Mode::split)
        words.push_back("CUSLICE_SPLIT=2");
    if (mode == Combination::Mode::split || (member.user == 0 && mode != Combination::Mode::prealloc))
        words.push_back("CUSLICE_JOB=model");
    else if (member.user == 1)
        words.insert(words.end(), {"CUSLICE_GROUP=lab", "CUSLICE_GROUP_LIMIT=" + in_mib(limits.together)});
    if (mode == Combination::Mode::strict || mode == Combination::Mode::deferred)
        words.push_back("CUSLICE_ALLOCATOR=growth");
    if (mode == Combination::Mode::prealloc)
        words.push_back("CUSLICE_ALLOCATOR=prealloc");
    if (mode == Combination::Mode::deferred)
        words.push_back("CUSLICE_FREE=deferred");
    if (mode == Combination::Mode::strict || mode == Combination::Mode::deferred)
        words.push_back("CUSLICE_IDLE_RELEASE=" + idle_release_);
    return words;
}

// The fake NVML knows a process by the pid that it has for itself, so that no two may have the same: far from those
// that the machine gives out now, and from each other.
int Round::unlike_pid() {
    const auto read = [](const char* path) {
        int number = 0;
        std::ifstream(path) >> number;
        return number;
    };
    constexpr int kFirst = 300, kApart = 500;
    const int count = read("/proc/sys/kernel/pid_max") - kFirst - kApart;
    const int begin = read("/proc/sys/kernel/ns_last_pid") + count / 2 + kApart * static_cast<int>(next_pid_++ % 14);
    return kFirst + begin % count;
}

// Every second program is in a container, where there are any.
Words Round::command(const Member& member) {
    const std::string user = std::to_string(kUsers[member.user]);
    const Words guest = Guest::route("linked"), as{"setpriv", "--reuid", user, "--regid", user, "--clear-groups"};
    const bool contained = member.number % 2 != 0;
    Words words = as;
    if (contained && combination_.seen == Combination::Seen::user_namespace)
        words.insert(words.end(), {"unshare", "--map-root-user"});
    words.insert(words.end(), guest.begin(), guest.end());
    if (!contained || combination_.seen != Combination::Seen::pid_namespace)
        return words;
    std::string line = "echo " + std::to_string(unlike_pid()) + " > /proc/sys/kernel/ns_last_pid; ";
    for (const std::string& word : words)
        line += word + " ";
    return {"unshare", "-pf", "--mount-proc", "--kill-child", "--propagation", "slave", "sh", "-c", line + "; exit $?"};
}

void Round::begin(Member& member) {
    log("program " + std::to_string(member.number) + " begins");
    const unsigned number = member.number, user = member.user;
    member = Member{};
    member.number = number;
    member.user = user;
    // Other programs of the model change the free memory at the same time, and before a refusal pools give back what
    // they keep for later.
    Words environment = settings(member);
    environment.emplace_back("GUEST_LETS_FREE_CHANGE=1");
    member.worker = std::make_unique<Worker>(command(member), sliced(place_.fake(), place_.books(), environment));
    start_cuda(member);
}

void Round::start_cuda(Member& member) {
    member.ready = false;
    member.contexts.clear();
    member.things.clear();
    member.current = "0";
    expect(member, "init", {kSuccess});
    retain(member);
}

void Round::retain(Member& member) {
    const bool its_own = hostile_ && is_undisturbed(member) && has_little(member, 0);
    const size_t said = member.worker->err().size();
    member.ready = expect(member, "retain 0", {kSuccess, kOutOfMemory}) == kSuccess;
    if (!member.ready)
        member.context_refused = true;
    member.current = "0";
    if (!member.ready && its_own)
        check_refusal(member, member.worker->err().substr(said));
}

void Round::end_by_kill(Member& member) {
    log("program " + std::to_string(member.number) + " is killed");
    member.worker->kill();
    read_words(member);
    member.worker.reset();
    member.ready = false;
    member.things.clear();
    member.parents.clear();
}

int Round::expect(Member& member, const std::string& line, const Codes& allowed, std::string* text) {
    std::vector<pid_t> neighbours;
    for (const Member& other : members_)
        if (&other != &member && other.worker)
            neighbours.push_back(other.worker->host_pid());
    for (const pid_t helper : place_.helpers())
        neighbours.push_back(helper);
    const Answer answer = member.worker->ask(line, neighbours);
    if (text)
        *text = answer.text;
    return judge(member, line, answer, allowed);
}

int Round::judge(Member& member, const std::string& line, const Answer& answer, const Codes& allowed) {
    log(std::to_string(member.number) + " " + line + " -> " + answer.text + " (" + std::to_string(answer.blocked_ms) +
        " ms)");
    totals_.answers++;
    if (answer.gone)
        fail("a program ended over: " + line);
    const Words words = split_words(answer.text);
    const bool digits = !words.empty() && words[0].find_first_not_of("0123456789") == std::string::npos;
    const int code = digits ? std::stoi(words[0]) : -1;
    totals_.refusals += code == kOutOfMemory;
    if (std::find(allowed.begin(), allowed.end(), code) == allowed.end())
        fail("program " + std::to_string(member.number) + ": " + line + " was answered: " + answer.text);
    const uint64_t settles = line.rfind("retain", 0) == 0 ? settling_of(member) : 0;
    if (answer.blocked_ms > kPatience && settles)
        totals_.settled++;
    if (!settles)
        totals_.longest_ms = std::max(totals_.longest_ms, answer.blocked_ms);
    if (answer.blocked_ms > kPatience + settles)
        fail("program " + std::to_string(member.number) + " slept " + std::to_string(answer.blocked_ms) +
             " ms over: " + line);
    read_words(member);
    check_books();
    return code;
}

void Round::read_words(Member& member) {
    const std::string& err = member.worker->err();
    const std::string fresh = err.substr(member.read);
    member.read = err.size();
    for (const char* bad : {"WARNING: ThreadSanitizer", "ERROR: AddressSanitizer", "runtime error:"})
        if (fresh.find(bad) != std::string::npos)
            fail("program " + std::to_string(member.number) + ": " + bad);
}

// Each user's programs together, and each alone. What a program was left with by one that had made it and let others
// open it isn't its own doing: it is in the books as such, and left out here.
void Round::check_books() {
    for (unsigned gpu = 0; gpu < place_.gpus(); ++gpu) {
        const auto held = place_.held(gpu);
        for (unsigned user = 0; user < 2; ++user) {
            const Limits limits = limits_of(user);
            uint64_t together = 0, processes = 0, inside = 0;
            bool all_seen = true;
            for (Member& member : members_) {
                if (member.user != user || !member.worker)
                    continue;
                std::vector<Identity> pids = member.parents;
                pids.push_back(identity_of(member));
                for (const Identity& pid : pids) {
                    const auto found = held.find(pid);
                    if (found == held.end())
                        continue;
                    const uint64_t own = found->second;
                    const uint64_t more = member.inside ? kInside : 0;
                    if (own > limits.process + kLazy + more)
                        fail("program " + std::to_string(member.number) + " holds " + std::to_string(own) + " of " +
                             std::to_string(limits.process) + " bytes on GPU " + std::to_string(gpu));
                    all_seen = all_seen && !(pid == pids.back() ? member.unseen : member.lost_parent)[gpu];
                    together += own;
                    inside += more;
                    processes++;
                }
            }
            uint64_t& excess = excess_[user][gpu];
            const uint64_t most = limits.together + processes * kLazy + inside;
            const uint64_t over = together > most ? together - most : 0;
            if (!all_seen)
                excess = std::max(excess, over);
            if (over > excess)
                fail("user " + std::to_string(kUsers[user]) + " holds " + std::to_string(together) + " of " +
                     std::to_string(limits.together) + " bytes on GPU " + std::to_string(gpu) + " (" +
                     std::to_string(excess) + " more were known)");
            excess = std::min(excess, over);
        }
    }
}

Identity Round::identity_of(const Member& member) {
    return {member.worker->own_pid(), fake::process_start_time(member.worker->host_pid())};
}

Member* Round::somebody(bool ready) {
    std::vector<Member*> fit;
    for (Member& member : members_)
        if (member.worker && !member.worker->is_stopped() && (!ready || member.ready))
            fit.push_back(&member);
    return fit.empty() ? nullptr : fit[below(fit.size())];
}

Member* Round::neighbour_of(const Member& member) {
    Member& other = members_[member.number ^ 1];
    return other.worker && other.ready && !other.worker->is_stopped() ? &other : nullptr;
}

void Round::run(unsigned steps) {
    totals_.rounds++;
    for (Member& member : members_)
        begin(member);
    for (step_ = 1; step_ <= steps; ++step_) {
        step();
        totals_.steps++;
        if (hostile_ && hostile_->acts())
            hostile_step();
    }
    end();
}

}  // namespace cuslice::tests::model
