// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "shim/driver/report.h"
#include "shim/driver/report_gpu.h"
#include "shim/process/process.h"

namespace cuslice {

namespace {

using lease::Reason;

// The last process of which it was said.
constinit std::atomic<int32_t> last_passed_by{0};
constinit std::atomic<bool> said_why{false};

bool is_of_holder(Reason reason) { return reason >= Reason::holder_ended && reason <= Reason::holder_overdue; }

void report_holder(const lease::Answer& answer) {
    // It had no time to pass the lease on, and nothing is wrong.
    const LogLevel level = answer.reason == Reason::holder_ended ? LogLevel::info : LogLevel::warn;
    if (!wants(level) || last_passed_by.exchange(answer.pid) == answer.pid)
        return;
    LogLine line("the GPU's time: the job whose turn it was is passed by, as its process ");
    log_line(level, line.append(answer.pid, " ", lease::text_of(answer.reason)));
}

void report_own(Reason reason) {
    if (said_why.exchange(true))
        return;
    LogLine line("the GPU's time: a launch goes on out of turn: ");
    log_line(LogLevel::warn, line.append(lease::text_of(reason)));
}

void answered(const lease::Answer& answer) {
    is_of_holder(answer.reason) ? report_holder(answer) : report_own(answer.reason);
}

void failed(const lease::LedgerError& why) {
    if (said_why.exchange(true))
        return;
    LogLine line("the GPU's time is not shared: ");
    log_line(LogLevel::warn, line.append(why.text));
}

void use_all() {
    for (VirtualGpu& gpu : process().gpus())
        if (gpu_state().contexts.any_on(gpu.device()))
            process().turns().use(gpu);
}

LogLine& append_seconds(LogLine& line, uint64_t nanoseconds) {
    const uint64_t tenths = nanoseconds / 100'000'000;
    return line.append(tenths / 10, ".", tenths % 10).append(" s");
}

void end_turns() { process().turns().end(); }

// A handler that comes after the driver's own is called before it.
void started() { atexit(end_turns); }

}  // namespace

void report_time(LogLevel level, const VirtualGpu& gpu) {
    Turns::Times times;
    if (!gpu.slice().time.weight || !process().turns().times_on(gpu, &times))
        return;
    LogLine line;
    append_gpu(line, gpu).append(": the job has a share of ", times.weight, "% of the time: it had ");
    append_seconds(append_seconds(line, times.had).append(", and waited "), times.waited);
    log_line(level, line);
}

void report_turns() { process().turns().services = {&use_all, &answered, &failed, &started, &report_times}; }

}  // namespace cuslice
