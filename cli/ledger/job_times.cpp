// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/job_times.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "cli/ledger/cells.h"
#include "cli/ledger/users.h"
#include "cli/text/command_line.h"
#include "cli/text/process_text.h"
#include "cli/text/read_json.h"
#include "config/key.h"
#include "config/uuid/fake.h"
#include "policy/base/kernel_clock.h"
#include "policy/lease/figures.h"
#include "policy/lease/job_id.h"
#include "policy/lease/kernel_surroundings.h"
#include "policy/lease/lease_file.h"
#include "policy/lease/members.h"
#include "policy/lease/published.h"
#include "policy/lease/steps.h"
#include "policy/ledger/folder_presence.h"

namespace cuslice::cli {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

using Names = std::map<uint64_t, std::string>;  // by the job's number

// The lease's value at one moment, and what tells who of it lives.
class Reading {
  public:
    explicit Reading(const std::string& folder) {
        lease::OpenLease open;
        const bool opened =
            folder_.enter(folder.c_str(), nullptr) && lease::open_lease_to_read(folder_.where(), &open, nullptr);
        uint64_t seen = 0;
        there_ = opened && lease::read_current(*open.file, state_.get(), &seen) && lease::is_whole(*state_);
        lease::close_lease(&open);
        surroundings_.look_in(folder_);
        now_ = surroundings_.now();
    }
    ~Reading() { folder_.leave(false); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    bool there() const { return there_; }
    const lease::State& state() const { return *state_; }
    const ledger::UserFolder& where() const { return folder_.where(); }
    uint64_t now() const { return now_; }
    std::vector<const lease::Member*> living(const lease::Job& job) {
        std::vector<const lease::Member*> members;
        for (const lease::Member& member : state_->members)
            if (lease::is_in(*state_, job, member) && surroundings_.condition_of(member) != lease::Condition::ended)
                members.push_back(&member);
        return members;
    }

  private:
    ledger::FolderPresence folder_;
    lease::KernelSurroundings surroundings_;
    std::unique_ptr<lease::State> state_ = std::make_unique<lease::State>();
    uint64_t now_ = 0;
    bool there_ = false;
};

Names names_of(const std::vector<Holder>& holding) {
    Names names;
    for (const Holder& holder : holding)
        if (holder.kind == "job")
            names[lease::job_id(holder.name)] = holder.name;
    return names;
}

// The name of the outermost job, as the launcher has put it into the environment.
std::string job_in_environment(const ledger::ProcessIdentity& process, unsigned owner) {
    constexpr size_t kMost = size_t{128} * 1024;
    const std::string start = std::string(kJobVariable) + "=";
    const std::string lines = '\0' + read_process_text(process, owner, "environ", kMost);
    const size_t found = lines.find('\0' + start);
    if (found == lines.npos)
        return {};
    const size_t begin = found + 1 + start.size();
    return lines.substr(begin, lines.find_first_of(std::string_view(",@\0", 3), begin) - begin);
}

// As SharingPlan::job() has it of a process without a job's name.
std::string name_of_process(const ledger::ProcessIdentity& process) {
    return std::to_string(process.pid) + "-" + std::to_string(process.start_time) + "-" +
           std::to_string(process.pid_namespace);
}

// A name is the job's only if the number is made of it.
std::string name_of(const lease::Job& job, const lease::Member& member, unsigned owner, const Names& names) {
    if (const auto known = names.find(job.id); known != names.end())
        return known->second;
    const ledger::ProcessIdentity process = ledger::process_of(member);
    for (const std::string& name : {job_in_environment(process, owner), name_of_process(process)})
        if (lease::job_id(name) == job.id)
            return name;
    char number[17];
    std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(job.id));
    return number;
}

const char* name_of(lease::Phase phase) {
    switch (phase) {
        case lease::Phase::idle:
            return "idle";
        case lease::Phase::waiting:
            return "waits";
        case lease::Phase::holding:
            return "runs";
        case lease::Phase::closing:
            return "ends";
    }
    return "idle";
}

// The job on no GPU yet.
JobTime job_of(const lease::Job& job, const std::vector<const lease::Member*>& members, const Reading& reading,
               const Names& names) {
    const lease::Member& first = *members.front();
    const unsigned owner = reading.where().owner;
    JobTime row;
    row.user = reading.where().user;
    row.number = job.id;
    row.name = name_of(job, first, owner, names);
    row.waited = lease::waited_until(job, reading.now());
    row.state = name_of(job.phase);
    row.command_line = read_command_line(ledger::process_of(first), owner);
    for (const lease::Member* member : members)
        row.pids.push_back(member->pid);
    std::ranges::sort(row.pids);
    return row;
}

void add_gpus(const lease::Job& job, const Reading& reading, JobTime row, std::vector<JobTime>& rows) {
    for (uint32_t gpu = 0; gpu < lease::kGpus; gpu++) {
        if (!lease::uses(job, gpu))
            continue;
        row.gpu = reading.state().gpus[gpu].uuid;
        row.share = job.claims[gpu].weight;
        row.cap = job.claims[gpu].cap;
        row.had = lease::had_until(job, gpu, reading.now());
        rows.push_back(row);
    }
}

double seconds_of(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / static_cast<double>(kSecond); }

uint64_t nanoseconds_in(const Json& value) {
    constexpr double kMost = 1e9;  // seconds: more than a machine is up
    const double seconds = value.get<double>();
    return static_cast<uint64_t>(std::clamp(seconds, 0.0, kMost) * static_cast<double>(kSecond));
}

}  // namespace

std::vector<JobTime> read_job_times(const std::string& folder, const std::vector<Holder>& holding) {
    std::vector<JobTime> rows;
    Reading reading(folder);
    if (!reading.there())
        return rows;
    const Names names = names_of(holding);
    for (const lease::Job& job : reading.state().jobs) {
        if (lease::is_free(job))
            continue;
        const std::vector<const lease::Member*> members = reading.living(job);
        if (!members.empty())
            add_gpus(job, reading, job_of(job, members, reading, names), rows);
    }
    std::ranges::sort(
        rows, [](const JobTime& a, const JobTime& b) { return std::tie(a.gpu, a.name) < std::tie(b.gpu, b.name); });
    return rows;
}

Json json_of(const JobTime& job) {
    return {{"gpu", job.gpu},
            {"fake", is_fake_uuid(job.gpu)},
            {"uid", job.user},
            {"user", user_name(job.user)},
            {"job", job.name},
            {"pids", job.pids},
            {"command_line", json_of_words(job.command_line)},
            {"share", job.share},
            {"cap", job.cap == lease::kWhole ? Json() : Json(job.cap)},
            {"had_seconds", seconds_of(job.had)},
            {"waited_seconds", seconds_of(job.waited)},
            {"recent", job.recent ? Json(*job.recent) : Json()},
            {"state", job.state}};
}

JobTime read_job_time(const Json& row) {
    JobTime job;
    job.gpu = read_text(row.at("gpu"));
    job.user = read_small_number<unsigned>(row.at("uid"));
    job.name = read_text(row.at("job"));
    for (const Json& pid : read_list(row.at("pids")))
        job.pids.push_back(read_small_number<int>(pid));
    job.command_line = read_words(row.at("command_line"));
    job.share = read_small_number<uint32_t>(row.at("share"));
    job.cap = static_cast<uint32_t>(
        std::min<uint64_t>(read_number_or_null(row.at("cap")).value_or(lease::kWhole), lease::kWhole));
    job.had = nanoseconds_in(row.at("had_seconds"));
    job.waited = nanoseconds_in(row.at("waited_seconds"));
    job.state = read_text(row.at("state"));
    return job;
}

std::string time_text(uint64_t nanoseconds) {
    constexpr uint64_t kExact = 100 * kSecond;
    if (nanoseconds >= kExact)
        return age_text(nanoseconds / kSecond);
    const uint64_t tenths = nanoseconds / (kSecond / 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string share_text(uint32_t percent) { return std::to_string(percent) + "%"; }

std::string cap_text(uint32_t percent) { return percent == lease::kWhole ? "-" : share_text(percent); }

}  // namespace cuslice::cli
