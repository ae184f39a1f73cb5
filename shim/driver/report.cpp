// SPDX-License-Identifier: Apache-2.0
#include "shim/driver/report.h"

#include "config/size.h"
#include "shim/driver/report_gpu.h"
#include "shim/log.h"
#include "shim/process/process.h"

namespace cuslice {

namespace {

constinit OncePerGpu short_of, unmapped;

}  // namespace

void report_no_map(const VirtualGpu& gpu) {
    say_once(unmapped, gpu, LogLevel::warn,
             ": the driver's memory lies at addresses from 2^49 on, which the caching allocator can't map: allocations "
             "go to the driver, and nothing is cached");
}

void report_missing(const VirtualGpu& gpu, uint64_t bytes) {
    say_once(short_of, gpu, LogLevel::warn, ": ", format_size(bytes),
             " of the limit could not be preallocated: the driver is out of memory");
}

void report_unpublished() {
    const stats::LedgerError* why = process().caches().publisher().failure();
    if (!why)
        return;
    LogLine line("cuslice stats can't show this process: ");
    line.append(why->text);
    log_line(LogLevel::debug, line);
}

void report_recording() {
    Recording& recording = process().recording();
    if (!recording.take_news())
        return;
    if (const trace::Path* path = recording.begun()) {
        LogLine line("allocations are recorded in ");
        log_line(LogLevel::info, line.append(path->view()));
    }
    if (const Reason* why = recording.failure()) {
        process().stop_recording();
        LogLine line("recording has stopped, and the program goes on: ");
        log_line(LogLevel::warn, line.append(why->view()));
    }
}

}  // namespace cuslice
