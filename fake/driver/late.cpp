// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/late.h"

#include <algorithm>
#include <string_view>

#include "fake/driver/work_queue.h"

namespace cuslice::fake {

bool make_streams(const std::string& text, std::string& error) {
    constexpr std::string_view kLate = "late", kSeed = "late:";
    const std::string seed = text.compare(0, kSeed.size(), kSeed) == 0 ? text.substr(kSeed.size()) : "";
    const bool number = !seed.empty() && seed.size() <= 18 && seed.find_first_not_of("0123456789") == std::string::npos;
    if (text != kLate && !number) {
        error = "CUSLICE_FAKE_STREAMS: '" + text + "' is neither late nor late:SEED, with a number, such as late:7";
        return false;
    }
    WorkQueue::be_late(number ? std::stoull(seed) : 0);
    return true;
}

void settle_before(const char* name) {
    static constexpr std::string_view kTake[] = {
        "cuMemFree",
        "cuMemFree_v2",
        "cuMemFreeHost",
        "cuMemHostUnregister",
        "cuArrayDestroy",
        "cuMipmappedArrayDestroy",
        "cuModuleUnload",
        "cuLibraryUnload",
        "cuCtxDestroy",
        "cuCtxDestroy_v2",
        "cuCtxDetach",
        "cuDevicePrimaryCtxRelease",
        "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxReset",
        "cuDevicePrimaryCtxReset_v2",
        "cuGreenCtxDestroy",
        "cuIpcCloseMemHandle",
        "cuMulticastUnbind",
        "cuDestroyExternalMemory",
    };
    if (std::find(std::begin(kTake), std::end(kTake), std::string_view(name)) != std::end(kTake))
        WorkQueue::finish_all();
}

}  // namespace cuslice::fake
