// SPDX-License-Identifier: Apache-2.0
#include "cli/ledger/prometheus.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cli/ledger/users.h"
#include "config/printable.h"
#include "policy/lease/layout.h"
#include "policy/ledger/total.h"

namespace cuslice::cli {
namespace {

// A label's value: without bytes that are no UTF-8, for which a reader refuses the whole file, and as the format writes
// backslashes, quotes and ends of lines.
std::string label(std::string_view name, std::string_view value) {
    std::string printable;
    append_printable(printable, value);
    std::string text = std::string(name) + "=\"";
    for (const char c : printable) {
        if (c == '\\' || c == '"')
            text += '\\';
        text += c;
    }
    return text + "\"";
}

// One metric, with all of its series: by their labels, as a series that comes twice makes a file invalid.
class Gauge {
  public:
    enum class Unit : uint8_t { whole, nanoseconds };

    Gauge(const char* name, const char* help, Unit unit = Unit::whole) : name_(name), help_(help), unit_(unit) {}
    void set(const std::string& labels, uint64_t value) { values_[labels] = value; }
    void add(const std::string& labels, uint64_t value) { values_[labels] = sum(values_[labels], value); }

    /// A foreign ledger may hold any number: the sum stops at the largest and doesn't begin again at 0.
    static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

    std::string text() const {
        const std::string name = "cuslice_" + std::string(name_);
        std::string lines = "# HELP " + name + " " + help_ + "\n# TYPE " + name + " gauge\n";
        for (const auto& [labels, value] : values_) {
            lines += name;
            if (!labels.empty())
                lines.append("{").append(labels).append("}");
            lines.append(" ").append(text_of(value)).append("\n");
        }
        return lines;
    }

  private:
    // Prometheus counts time in seconds.
    std::string text_of(uint64_t value) const {
        constexpr uint64_t kSecond = 1'000'000'000;
        if (unit_ == Unit::whole)
            return std::to_string(value);
        const std::string digits = std::to_string(kSecond + value % kSecond).substr(1);
        return std::to_string(value / kSecond) + "." + digits;
    }

    const char *name_, *help_;
    const Unit unit_;
    std::map<std::string, uint64_t> values_;
};

}  // namespace

std::string prometheus_text(const Holders& found) {
    Gauge capacity("gpu_capacity_bytes", "Memory of the GPU, as CUDA counts it.");
    Gauge used("gpu_used_bytes", "What the processes of jobs and groups hold on the GPU.");
    Gauge committed("gpu_committed_bytes",
                    "What is left for nobody else: for each job, the larger of what it holds and has reserved, and "
                    "what processes in no job hold.");
    Gauge jobs("gpu_jobs", "Jobs on the GPU, without those within another job.");
    Gauge waiting("gpu_waiting_processes", "Processes that wait for a slice of the GPU.");
    Gauge wanted("gpu_waiting_bytes", "What the processes that wait have asked for.");
    Gauge account_used("account_used_bytes", "What the job or group holds.");
    Gauge account_peak("account_peak_bytes", "The most that the job or group has held at once.");
    Gauge account_reserved("account_reserved_bytes", "What is reserved for the job.");
    Gauge account_limit("account_limit_bytes", "The limit of the job or group; no series without a limit.");
    Gauge processes("account_processes", "Processes of the job or group.");
    Gauge share("job_share_percent", "The job's share of the GPU's time, among those who want it.");
    Gauge cap("job_share_cap_percent", "The most of the GPU's time that the job has; no series without a cap.");
    Gauge had("job_time_had_seconds", "Time that the job has had the GPU.", Gauge::Unit::nanoseconds);
    Gauge waited("job_time_waited_seconds", "Time that the job has waited for its GPUs.", Gauge::Unit::nanoseconds);
    Gauge failures("ledger_failures", "Ledgers that could not be read.");

    for (const auto& [uuid, bytes] : found.capacities) {
        const std::string gpu = label("gpu", uuid);
        capacity.set(gpu, bytes);
        for (Gauge* const gauge : {&used, &committed, &jobs, &waiting, &wanted})
            gauge->set(gpu, 0);
    }
    std::set<std::tuple<std::string, unsigned, std::string, std::string>> seen;
    std::set<std::tuple<std::string, unsigned, int>> counted;  // processes that are in the GPU's sums
    for (const Holder& row : found.holding) {
        const std::string gpu = label("gpu", row.gpu);
        const std::string account = gpu + "," + label("uid", std::to_string(row.user)) + "," +
                                    label("user", user_name(row.user)) + "," + label("kind", row.kind) + "," +
                                    label("name", row.name);
        processes.add(account, 1);
        if (!row.inner)
            counted.emplace(row.gpu, row.user, row.pid);
        if (!seen.emplace(row.gpu, row.user, row.kind, row.name).second)
            continue;
        account_used.set(account, row.together);
        account_peak.set(account, row.peak);
        account_reserved.set(account, row.reserved);
        if (row.limit != ledger::kNoLimit)
            account_limit.set(account, row.limit);
        // The figures of an outer account include the accounts within it.
        if (row.inner)
            continue;
        jobs.add(gpu, 1);
        used.add(gpu, row.together);
        committed.add(gpu, std::max(row.together, row.reserved));
    }
    for (const Holder& row : found.holding) {
        if (!counted.emplace(row.gpu, row.user, row.pid).second)
            continue;
        used.add(label("gpu", row.gpu), row.used);
        committed.add(label("gpu", row.gpu), row.used);
    }
    for (const WaitingProcess& row : found.waiting) {
        waiting.add(label("gpu", row.gpu), 1);
        wanted.add(label("gpu", row.gpu), row.waiter.bytes);
    }
    for (const JobTime& row : found.times) {
        const std::string job = label("gpu", row.gpu) + "," + label("uid", std::to_string(row.user)) + "," +
                                label("user", user_name(row.user)) + "," + label("name", row.name);
        share.set(job, row.share);
        if (row.cap != lease::kWhole)
            cap.set(job, row.cap);
        had.set(job, row.had);
        waited.set(job, row.waited);
    }
    failures.set("", found.failures.size());

    std::string text;
    for (const Gauge* const gauge :
         {&capacity, &used, &committed, &jobs, &waiting, &wanted, &account_used, &account_peak, &account_reserved,
          &account_limit, &processes, &share, &cap, &had, &waited, &failures})
        text += gauge->text();
    return text;
}

}  // namespace cuslice::cli
