// SPDX-License-Identifier: Apache-2.0
// A program that wants a GPU's time: it keeps kernels of one length queued, and says how many were done.
//
//   share_probe calibrate                              steps of the kernel in a millisecond, with the GPU to itself
//   share_probe MODE MS STEPS SECONDS [PEERS FOLDER]   one line of JSON
//
// MODE is `stream` (a launch for each kernel), `graph` (one for ten) or `pauses` (10 ms on the GPU, 10 ms on the CPU);
// STEPS is what `calibrate` printed. PEERS such programs, this one included, meet in FOLDER and begin at once.
#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "lab/hardware/launch_queue.h"

using namespace cuslice::check;

namespace {

constexpr int kKernelsOfAGraph = 10;
constexpr double kBurstMs = 10;
constexpr int kPauseMs = 10;
// Programs that are started together have made their contexts long before, if at all.
constexpr double kMeetingMs = 30'000;
// Enough that the GPU never waits for the host, and little enough that what is queued at a turn's end is over soon.
constexpr double kQueuedMs = 20;

struct Request {
    std::string mode;
    double kernel_ms = 0;
    double steps_a_ms = 0;
    double window_ms = 0;
    int peers = 1;
    std::string folder;
};

void sleep_ms(int milliseconds) {
    const timespec span{0, milliseconds * 1'000'000L};
    nanosleep(&span, nullptr);
}

double median(std::vector<double> values) {
    if (values.empty())
        return 0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double largest(const std::vector<double>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

CUstream make_stream() {
    CUstream stream = nullptr;
    MUST(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return stream;
}

// ---- calibrate ------------------------------------------------------------------------------------------------------

double ms_of(Spin& spin, uint64_t steps) {
    static const CUstream stream = make_stream();
    static const CUevent from = make_event(), to = make_event();
    spin.set_steps(steps);
    MUST(cuEventRecord, from, stream);
    spin.launch(stream);
    MUST(cuEventRecord, to, stream);
    MUST(cuEventSynchronize, to);
    return elapsed_ms(from, to);
}

/// By kernels of some 20 ms, after a while of shorter ones: a GPU's clocks rise with its load.
void calibrate() {
    constexpr uint64_t kShort = 1 << 12;
    Spin spin;
    for (int i = 0; i < 100; i++)
        ms_of(spin, kShort);
    const auto steps = static_cast<uint64_t>(20 * kShort / ms_of(spin, kShort));
    std::vector<double> ms;
    for (int i = 0; i < 11; i++)
        ms.push_back(ms_of(spin, steps));
    std::printf("%.0f\n", static_cast<double>(steps) / median(ms));
}

// ---- a probe --------------------------------------------------------------------------------------------------------

int files_in(const std::string& folder) {
    DIR* const entries = opendir(folder.c_str());
    if (!entries)
        return 0;
    int files = 0;
    while (const dirent* entry = readdir(entries))
        files += entry->d_name[0] != '.';
    closedir(entries);
    return files;
}

/// True once all peers have come this far; false if one doesn't come.
bool meet(const Request& request) {
    if (request.peers == 1)
        return true;
    const std::string own = request.folder + "/" + std::to_string(getpid());
    close(open(own.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    const double patient_until_us = now_us() + kMeetingMs * 1e3;
    while (files_in(request.folder) < request.peers) {
        if (now_us() > patient_until_us)
            return false;
        sleep_ms(1);
    }
    return true;
}

void use_the_gpu(LaunchQueue& queue, const Request& request) {
    const double end_us = now_us() + request.window_ms * 1e3;
    const int burst = std::max(1, static_cast<int>(kBurstMs / request.kernel_ms));
    for (int launches = 1; now_us() < end_us; launches++) {
        queue.submit();
        const bool pauses = request.mode == "pauses" && launches % burst == 0;
        if (!pauses)
            continue;
        queue.drain();
        sleep_ms(kPauseMs);
    }
    queue.drain();
}

void print(const Request& request, const LaunchFigures& figures, const std::vector<double>& turns_ms) {
    std::printf("{\"mode\": \"%s\", \"kernel_ms\": %g, \"window_ms\": %g, ", request.mode.c_str(), request.kernel_ms,
                request.window_ms);
    std::printf("\"kernels\": %d, \"had_ms\": %g, \"events_ms\": %.1f, \"longest_gap_ms\": %.1f, ", figures.kernels,
                figures.kernels * request.kernel_ms, figures.events_ms, figures.longest_gap_ms);
    std::printf("\"launch_us\": %.1f, \"longest_launch_us\": %.1f, ", median(figures.call_us),
                largest(figures.call_us));
    std::printf("\"turns\": %zu, \"turn_ms\": %.2f, \"longest_turn_ms\": %.2f}\n", turns_ms.size(), median(turns_ms),
                largest(turns_ms));
}

/// The exit status.
int probe(const Request& request) {
    const CUstream stream = make_stream();
    Spin spin;
    spin.set_steps(static_cast<uint64_t>(request.kernel_ms * request.steps_a_ms));
    const int kernels = request.mode == "graph" ? kKernelsOfAGraph : 1;
    const size_t depth = std::max<size_t>(2, static_cast<size_t>(kQueuedMs / (request.kernel_ms * kernels)));
    LaunchQueue queue(spin, stream, kernels, depth);

    spin.launch(stream);  // the first one loads what the driver loads lazily
    MUST(cuStreamSynchronize, stream);
    spin.forget();
    if (!meet(request)) {
        std::fprintf(stderr, "share_probe: not all of %d programs have come to %s\n", request.peers,
                     request.folder.c_str());
        return 1;
    }
    queue.begin(request.window_ms);
    use_the_gpu(queue, request);
    print(request, queue.figures(), spin.turns_ms());
    return 0;
}

Request read_request(int words, char** word) {
    Request request;
    request.mode = word[1];
    request.kernel_ms = std::atof(word[2]);
    request.steps_a_ms = std::atof(word[3]);
    request.window_ms = std::atof(word[4]) * 1e3;
    if (words == 7) {
        request.peers = std::atoi(word[5]);
        request.folder = word[6];
    }
    return request;
}

bool is_request(const Request& request) {
    const bool known = request.mode == "stream" || request.mode == "graph" || request.mode == "pauses";
    return known && request.kernel_ms > 0 && request.steps_a_ms > 0 && request.window_ms > 0 && request.peers > 0;
}

}  // namespace

int main(int words, char** word) {
    const bool calibrates = words == 2 && std::string(word[1]) == "calibrate";
    const Request request = words == 5 || words == 7 ? read_request(words, word) : Request{};
    if (!calibrates && !is_request(request)) {
        std::fprintf(stderr,
                     "share_probe calibrate | share_probe stream|graph|pauses MS STEPS SECONDS [PEERS FOLDER]\n");
        return 64;
    }
    Gpu gpu = find_gpu();
    open_context(gpu);
    if (!calibrates)
        return probe(request);
    calibrate();
    return 0;
}
