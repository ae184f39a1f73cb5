// SPDX-License-Identifier: Apache-2.0
// A run in which one of cuslice's calls into the C library fails: tests/preload/guest/failing_call.h.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/catch.h"
#include "tests/preload/guest.h"
#include "tests/preload/guest/failing_call.h"

namespace cuslice::tests {

class FailingPlan {
  public:
    /// `wanted`: whose calls, and which of them fails.
    explicit FailingPlan(const FailingCall& wanted)
        : path_(folder_.write("plan", std::string(sizeof(FailingCall), '\0'))) {
        const int file = open(path_.c_str(), O_RDWR | O_CLOEXEC);
        void* const at = mmap(nullptr, sizeof(FailingCall), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
        REQUIRE(at != MAP_FAILED);
        call_ = static_cast<FailingCall*>(at);
        *call_ = wanted;
    }
    ~FailingPlan() { munmap(call_, sizeof *call_); }
    FailingPlan(const FailingPlan&) = delete;
    FailingPlan& operator=(const FailingPlan&) = delete;
    /// The calls made so far, and the one that has failed.
    const FailingCall& call() const { return *call_; }
    /// For the environment of the run, in which libguest_failing_call.so is preloaded.
    std::string variable() const { return "FAILING_CALL=" + path_; }

  private:
    Folder folder_;
    std::string path_;
    FailingCall* call_ = nullptr;
};

}  // namespace cuslice::tests
