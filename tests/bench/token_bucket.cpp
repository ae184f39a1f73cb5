// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/token_bucket.h"

#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tests/bench/timing.h"

namespace cuslice::bench {

namespace {

constexpr double kFirstRate = 100;
constexpr double kLeastRate = 1, kMostRate = 1e6;
constexpr useconds_t kPeriod = 100'000;
// Tokens of so many seconds can be saved up.
constexpr double kBurst = 0.1;
// NVML's figure is of a whole second, so a period's correction is a part of what it asks for.
constexpr double kGain = 0.1;

[[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "bench: %s\n", what);
    std::exit(1);
}

struct Nvml {
    Nvml() {
        find("nvmlInit_v2", init);
        find("nvmlDeviceGetHandleByIndex_v2", device);
        find("nvmlDeviceGetProcessUtilization", utilisation);
    }
    template <typename Pointer>
    void find(const char* symbol, Pointer& pointer) {
        static void* const library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
        pointer = library ? reinterpret_cast<Pointer>(dlsym(library, symbol)) : nullptr;
        if (!pointer)
            give_up(symbol);
    }
    decltype(&::nvmlInit_v2) init;
    decltype(&::nvmlDeviceGetHandleByIndex_v2) device;
    decltype(&::nvmlDeviceGetProcessUtilization) utilisation;
};

const Nvml& nvml() {
    static const Nvml found;
    return found;
}

// By NVML's clock: microseconds since the epoch.
unsigned long long a_second_ago() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const auto seconds = static_cast<unsigned long long>(now.tv_sec) - 1;
    return seconds * 1'000'000 + static_cast<unsigned long long>(now.tv_nsec) / 1000;
}

}  // namespace

TokenBucket::TokenBucket(double percent) : wanted_(percent), rate_(kFirstRate), filled_at_(now_ns()) {
    if (nvml().init() != NVML_SUCCESS || nvml().device(0, &device_) != NVML_SUCCESS)
        give_up("NVML doesn't answer");
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, this) != 0)
        give_up("no thread");
}

void TokenBucket::take() {
    for (;;) {
        const int64_t now = now_ns();
        const double rate = rate_.load();
        tokens_ += rate * static_cast<double>(now - filled_at_) / 1e9;
        tokens_ = std::min(tokens_, std::max(1.0, rate * kBurst));
        filled_at_ = now;
        if (tokens_ >= 1)
            break;
        usleep(static_cast<useconds_t>((1 - tokens_) / rate * 1e6) + 1);
    }
    tokens_ -= 1;
}

void* TokenBucket::run(void* self) {
    auto* const bucket = static_cast<TokenBucket*>(self);
    for (;;) {
        usleep(kPeriod);
        bucket->correct(bucket->used());
    }
}

void TokenBucket::correct(double used) {
    const double asked = wanted_ / std::max(used, 1.0);
    rate_.store(std::clamp(rate_.load() * (1 + kGain * (std::min(asked, 2.0) - 1)), kLeastRate, kMostRate));
}

double TokenBucket::used() const {
    const unsigned long long since = a_second_ago();
    unsigned count = 0;
    nvml().utilisation(device_, nullptr, &count, since);
    std::vector<nvmlProcessUtilizationSample_t> samples(count + 1);
    count = static_cast<unsigned>(samples.size());
    if (nvml().utilisation(device_, samples.data(), &count, since) != NVML_SUCCESS)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (samples[i].pid == static_cast<unsigned>(getpid()))
            return samples[i].smUtil;
    return 0;
}

}  // namespace cuslice::bench
