// SPDX-License-Identifier: Apache-2.0
// Runs the section that is named, or says the names of all that are about two GPUs.
#include <cstdio>
#include <cstring>
#include <utility>

#include "tests/preload/guest/conformance/report.h"

int main(int count, char** words) {
    using namespace conformance;
    constexpr std::pair<const char*, void (*)()> sections[] = {
        {"devices", devices},
        {"contexts", contexts},
        {"stacks", stacks},
        {"attaching", attaching},
        {"settings", settings},
        {"primaries", primaries},
        {"resets", resets},
        {"endings", endings},
        {"peers", peers},
        {"peer copies", peer_copies},
        {"pointers", pointers},
        {"sharing", sharing},
        {"managed", managed},
        {"batches", batches},
        {"pools", pools},
        {"streams of pools", streams_of_pools},
        {"pieces", pieces},
        {"multicast", multicast},
        {"streams", streams},
        {"modules", modules},
        {"arrays", arrays},
        {"graphs", graphs},
        {"graph memory", graph_memory},
        {"green", green},
        {"threads", threads},
    };
    if (count > 1 && std::strcmp(words[1], "third") == 0) {
        const Scope scope("third");
        third();
        return 0;
    }
    for (const auto& [name, section] : sections) {
        if (count < 2)
            std::puts(name);
        else if (std::strcmp(words[1], name) == 0) {
            const Scope scope(name);
            section();
            return 0;
        }
    }
    return count < 2 ? 0 : 3;
}
