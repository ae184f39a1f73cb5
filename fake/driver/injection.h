// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failures on demand: CUSLICE_FAKE_INJECT, a comma list of
//
//   cuMemAlloc_v2:3=2          the 3rd call fails with CUresult 2; 3+ from the 3rd on, * every call
//   lost:1@100                 device 1 is lost after the 100th call of the process, whatever it was
//   delay:cuMemAlloc_v2=50us   each call takes so much longer (ns, us, ms, s); delay:* each call of any function
//   meet:cuMemAlloc_v2=2       each call waits in the driver for another one, so that two are in there at the same time
//
// A function has the name that the driver exports, or the one that programs write, which means all its versions:
// cuMemAlloc is cuMemAlloc_v2 too.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake/driver/cuda_api.h"
#include "fake/driver/injection_mark.h"

namespace cuslice::fake {

class Injection {
  public:
    /// Tells the names of the driver's functions from others.
    using IsFunction = bool (*)(const std::string& name);
    Injection() = default;
    /// The same, counting on with the other one.
    Injection(const Injection& other);
    Injection& operator=(const Injection&) = delete;

    /// Reads the variable's text. On failure false and a message that says what is wrong and what is right.
    bool parse(const std::string& text, IsFunction is_function, std::string& error);

    /// A call of the function: waits and fails as asked. Any thread.
    CUresult call(const char* name);

    /// Ordinals of the devices that are lost from now on; each is returned once.
    bool device_lost(int& ordinal);

    bool empty() const { return failures_.empty() && delays_.empty() && losses_.empty() && meetings_.empty(); }

  private:
    struct Failure {
        std::string name;
        uint64_t first, last;
        CUresult error;
        std::shared_ptr<std::atomic<uint64_t>> calls;
        std::shared_ptr<InjectionMark> mark;
    };
    struct Delay {
        std::string name;
        uint64_t nanoseconds;
        std::shared_ptr<InjectionMark> mark;
    };
    struct Loss {
        int ordinal;
        uint64_t after;
        std::shared_ptr<std::atomic<bool>> told;
        std::shared_ptr<InjectionMark> mark;
    };
    /// Where threads wait for each other inside a function. Who is left waiting for kPatience is told that it has timed
    /// out: nobody else can come in, as with a program that holds a lock over the call. Nobody waits any more then.
    struct Meeting {
        static constexpr int kPatience = 60;  // seconds
        std::string name;
        uint64_t size = 2;
        std::mutex mutex;
        std::condition_variable complete;
        uint64_t inside = 0, rounds = 0;
        bool given_up = false;

        CUresult wait();
    };
    bool parse_item(const std::string& item, IsFunction is_function, std::string& error);

    std::vector<Failure> failures_;
    std::vector<Delay> delays_;
    std::vector<Loss> losses_;
    std::vector<std::shared_ptr<Meeting>> meetings_;
    std::atomic<uint64_t> calls_{0};
};

/// The one of this process.
Injection& injection();

/// Adds to it what `items` has, as the variable would; with "", clears it. Then the variable doesn't count any more.
/// Returns nullptr, or why not, valid until the next call. For tests in the process itself: not for two threads at
/// once.
const char* change_injection(const char* items, Injection::IsFunction is_function);
/// True once it has been changed so.
bool injection_changed();

}  // namespace cuslice::fake
