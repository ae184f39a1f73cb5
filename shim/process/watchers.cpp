// SPDX-License-Identifier: Apache-2.0
#include "shim/process/watchers.h"

#include <cstring>

#include "shim/process/process.h"

namespace cuslice {

namespace {

struct Watcher {
    char uuid[48];
    GpuSharing sharing;
};
constinit Mutex mutex{LockRank::watchers};
constinit Watcher watchers[Process::kMaxGpus] CUSLICE_GUARDED_BY(mutex){};

}  // namespace

GpuSharing* watcher_of(const char* uuid) {
    LockGuard lock(mutex);
    for (Watcher& watcher : watchers) {
        if (!watcher.uuid[0])
            std::memcpy(watcher.uuid, uuid, strnlen(uuid, sizeof watcher.uuid - 1));
        if (std::strcmp(watcher.uuid, uuid) == 0)
            return &watcher.sharing;
    }
    return nullptr;
}

void forget_watchers() {
    LockGuard lock(mutex);
    for (Watcher& watcher : watchers)
        if (watcher.uuid[0])
            watcher.sharing.forget();
}

}  // namespace cuslice
