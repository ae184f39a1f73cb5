// SPDX-License-Identifier: Apache-2.0
// The costs of a recording's row for the thread that it is of: the row alone, without the call that it tells of.
//   cuslice_bench_record FOLDER
// FOLDER is on the file system that is measured; what is made there is removed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "policy/trace/log.h"
#include "tests/bench/figure.h"

namespace {

using namespace cuslice;
using namespace cuslice::bench;

constexpr size_t kEvents = 1'000'000;
constexpr char kGpu[] = "GPU-830cff1a-59d2-4d1e-8f0a-3c5b7e9d1f20";

void must(bool fine, const char* what) {
    if (fine)
        return;
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(1);
}

trace::Row row_of(size_t i) {
    static const auto thread = static_cast<uint32_t>(getpid());
    return {.thread = thread,
            .time = trace::now(),
            .action = i % 2 == 0 ? trace::Action::allocate : trace::Action::free,
            .address = 0x7f3a40000000 + i / 2 % 1000 * 2097152,
            .bytes = 1048576 + i / 2 % 1000 * 512,
            .stream = 0,
            .gpu = kGpu,
            .limit = 4294967296,
            .held = 546308096 + i / 2 % 1000 * 1048576};
}

// Each event by itself, and its time taken with it, as it is in a program.
std::vector<double> events(trace::Log& log) {
    const uint64_t empty = empty_interval();
    std::vector<double> times;
    times.reserve(kEvents);
    for (size_t i = 0; i < kEvents; i++) {
        int error = 0;
        const uint64_t start = ticks();
        const auto appended = log.append(row_of(i), error);
        const uint64_t took = ticks() - start;
        must(appended == trace::File::Appended::done, "a row can't be written");
        times.push_back(took > empty ? static_cast<double>(took - empty) * ns_per_tick() : 0);
    }
    return times;
}

double mean(const std::vector<double>& times) {
    double sum = 0;
    for (const double time : times)
        sum += time;
    return sum / static_cast<double>(times.size());
}

void measure(const std::string& folder, const std::string& form, const std::string& end) {
    const std::string path = folder + "/cuslice-bench-" + std::to_string(getpid()) + end;
    static trace::Log logs[2];
    trace::Log& log = logs[end == ".csv" ? 0 : 1];
    Reason why;
    must(log.make(path, why), why.c_str());
    const std::vector<double> times = events(log);
    log.finish();
    const auto bytes = static_cast<double>(std::filesystem::file_size(path)) / static_cast<double>(kEvents);
    std::filesystem::remove(path);
    const std::string name = "a row of a recording, " + form;
    print({name + ": median", median(times), "ns", Bound::at_most, 150, {}});
    print({name + ": mean", mean(times), "ns", Bound::none, 0, {}});
    print({name + ": 99th percentile", percentile(times, 0.99), "ns", Bound::none, 0, {}});
    print({name + ": longest", percentile(times, 1) / 1000, "us", Bound::none, 0, {}});
    print({name + ": size", bytes, "bytes", Bound::none, 0, {}});
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
        return 64;
    }
    if (!pin(0))
        return 1;
    measure(arguments[1], "CSV", ".csv");
    measure(arguments[1], "compact", ".trace");
}
