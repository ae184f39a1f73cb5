#pragma once
#include "policy/uncancelled.h"
#include "virtual_gpu/process.h"

namespace cuslice {

extern constinit thread_local bool inside_hook;

// Stands at the beginning of every hook that counts. While it lives, this thread's further calls are the driver's own
// (or our own questions to it) and pass through uncounted, and the thread can't be cancelled between a charge and the
// driver's answer.
class HookEntry {
  public:
    HookEntry() : counts_(!inside_hook && process().limits_anything()) {
        if (!counts_) return;
        cancellation_.begin();
        inside_hook = true;
    }
    ~HookEntry() {
        if (!counts_) return;
        inside_hook = false;
        cancellation_.end();
    }
    HookEntry(const HookEntry&) = delete;
    HookEntry& operator=(const HookEntry&) = delete;

    // Whether there is anything to count here. False: hand the call to the driver as it is.
    bool counts() const { return counts_; }

  private:
    bool counts_;
    CancellationHold cancellation_;
};

// Loads configuration and driver before the first hooked call; afterwards one load and a branch. What stands in the way
// is said once, on stderr. Returns what is the case.
inline Readiness ready() {
    extern Readiness load_and_report();
    const Readiness known = process().readiness();
    return known == Readiness::ready ? known : load_and_report();
}

}  // namespace cuslice
