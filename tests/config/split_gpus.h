// SPDX-License-Identifier: Apache-2.0
// Three GPUs, and settings that split them.
#pragma once

#include <memory>
#include <string>

#include "config/split/plan.h"
#include "tests/catch.h"

namespace cuslice {

inline constexpr uint64_t kMiB = uint64_t{1} << 20, kGiB = kMiB << 10;

inline const GpuIdentity kGpus[] = {{0, "GPU-10aa0000-1111-2222-3333-444455556666", "0000:01:00.0"},
                                    {1, "GPU-20bb0000-1111-2222-3333-444455556666", "0000:81:00.0"},
                                    {2, "GPU-30cc0000-1111-2222-3333-444455556666", "0001:81:00.0"}};
inline constexpr uint64_t kTotals[] = {3 * kGiB, 4 * kGiB, 2002 * kMiB};

// Input of a plan: options as they are written, in the order of the command line.
struct Given {
    std::string split, limit, fraction;
    bool oversubscribe = false;
};

inline std::unique_ptr<Settings> settings_of(const Given& given) {
    auto settings = std::make_unique<Settings>();
    ConfigError error;
    const auto add = [&](Key key, const std::string& text) {
        const std::string origin = "--" + std::string(traits_of(key).name);
        const bool added = text.empty() || add_list(*settings, key, {}, origin, text, error);
        INFO(line_of(error).view());
        REQUIRE(added);
    };
    add(Key::split, given.split);
    add(Key::limit, given.limit);
    add(Key::fraction, given.fraction);
    add(Key::oversubscribe, given.oversubscribe ? "yes" : "");
    return settings;
}

}  // namespace cuslice
