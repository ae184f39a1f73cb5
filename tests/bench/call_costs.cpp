// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/calls.h"

namespace cuslice::bench {

namespace {

// Rounds of about 0.1 ms: most of them then fall between two interrupts, and the median is of undisturbed ones.
constexpr int kRounds = 501;
constexpr size_t kSingles = 100'000;
constexpr size_t kOperations = 20'000;

auto get_current(decltype(&::cuCtxGetCurrent) function) {
    return [function](size_t n) {
        CUcontext context;
        for (size_t i = 0; i < n; i++)
            function(&context);
    };
}

auto launch(decltype(&::cuLaunchKernel) function, CUfunction kernel) {
    return [=](size_t n) {
        for (size_t i = 0; i < n; i++)
            must(function(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "cuLaunchKernel");
    };
}

auto memory_info(const Driver& driver) {
    return [function = driver.memory_info](size_t n) {
        size_t free, total;
        for (size_t i = 0; i < n; i++)
            function(&free, &total);
    };
}

}  // namespace

void measure_calls(const TwoDrivers& drivers) {
    // The pointer that a program gets by look-up is the driver's own, so there is nothing to measure: it is the same
    // function. If it is not, its price is what it takes more.
    void* found = nullptr;
    must(drivers.ours.look_up("cuCtxGetCurrent", &found, 12000, 0, nullptr), "cuGetProcAddress of cuCtxGetCurrent");
    Comparison by_look_up{};
    if (found != reinterpret_cast<void*>(drivers.raw.get_current))
        by_look_up = compare(kRounds, kOperations, kSingles, get_current(drivers.raw.get_current),
                             get_current(reinterpret_cast<decltype(&::cuCtxGetCurrent)>(found)));
    print({"not hooked, by look-up: over the driver's own pointer", by_look_up.extra, "ns", Bound::at_most, 0, {}});

    print_extra("not hooked, by symbol: over direct",
                compare(kRounds, kOperations, kSingles, get_current(drivers.raw.get_current),
                        get_current(drivers.ours.get_current)),
                "ns", Bound::at_most, 2);
    print_extra("cuMemGetInfo: over the driver's own",
                compare(kRounds, kOperations, kSingles, memory_info(drivers.raw), memory_info(drivers.ours)), "ns",
                Bound::at_most, 10);
}

void measure_split(const TwoDrivers& drivers) {
    constexpr char kNothing[] = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    must(drivers.ours.load_module(&module, kNothing), "cuModuleLoadData");
    must(drivers.ours.get_function(&kernel, module, "nothing"), "cuModuleGetFunction");
    void* found = nullptr;
    must(drivers.ours.look_up("cuLaunchKernel", &found, 12000, 0, nullptr), "cuGetProcAddress of cuLaunchKernel");
    const auto by_look_up = reinterpret_cast<decltype(&::cuLaunchKernel)>(found);
    const auto raw = launch(drivers.raw.launch, kernel);
    print_extra("split: a launch, by look-up: over direct",
                compare(kRounds, kOperations / 10, kSingles, raw, launch(by_look_up, kernel)), "ns", Bound::at_most,
                15);
    print_extra("split: a launch, by symbol: over direct",
                compare(kRounds, kOperations / 10, kSingles, raw, launch(drivers.ours.launch, kernel)), "ns",
                Bound::at_most, 15);
    print_extra("split: cuCtxGetCurrent, by symbol: over direct",
                compare(kRounds, kOperations, kSingles, get_current(drivers.raw.get_current),
                        get_current(drivers.ours.get_current)),
                "ns", Bound::none, 0);
}

}  // namespace cuslice::bench
