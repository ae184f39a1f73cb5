#include "cli/framework_reserve.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "cli/framework_environment.h"
#include "config/resolve.h"
#include "config/split/plan.h"

namespace cuslice::cli {
namespace {

constexpr std::string_view kTensorFlowReserve = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB";
// JAX 0.10 takes XLA_CLIENT_MEM_FRACTION as well and calls this one deprecated; only this one is known to every
// version. Both at once are an error, also where a program sets the other one itself.
constexpr std::string_view kJaxFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION";
constexpr std::string_view kNewJaxFraction = "XLA_CLIENT_MEM_FRACTION";

// What JAX takes of a GPU's total by itself.
constexpr unsigned kJaxDefault = 7500, kWhole = 10000;

bool takes_jax_fraction(const Environment& environment) {
    return !environment.get(kJaxFraction) && !environment.get(kNewJaxFraction);
}

// In parts of kWhole, rounded down. Where the context is only believed, a guess must not leave JAX less than it takes
// anyway: then nothing.
std::optional<unsigned> jax_fraction(const std::vector<SliceRoom>& rooms) {
    unsigned least = kWhole - 1;
    bool known = true;
    for (const SliceRoom& room : rooms) {
        const std::uint64_t pool = room.left() - room.libraries();
        const auto fraction =
            static_cast<unsigned>(static_cast<double>(pool) / static_cast<double>(room.limit) * kWhole);
        if (fraction < least) known = room.context_known;
        least = std::min(least, fraction);
    }
    if (least == 0 || (!known && least < kJaxDefault)) return std::nullopt;
    return least;
}

// One for all GPUs: what the smallest slice leaves to libraries, of those that have to.
std::uint64_t tensorflow_reserve(const std::vector<SliceRoom>& rooms) {
    std::optional<std::uint64_t> least;
    for (const SliceRoom& room : rooms)
        if (!room.plus_context) least = std::min(least.value_or(room.libraries()), room.libraries());
    return least.value_or(0);
}

}  // namespace

bool wants_reserve_variables(const Environment& environment, const Settings& settings) {
    if (leaves_frameworks_alone(settings)) return false;
    if (environment.get(kTensorFlowReserve) && !takes_jax_fraction(environment)) return false;
    const auto entries = settings.entries();
    return splits_any(settings) || std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
               return is_amount(entry.key) || entry.key == Key::group_limit;
           });
}

void add_reserve_variables(Environment& environment, const Settings& settings, const std::vector<SliceRoom>& rooms) {
    const bool limited = std::any_of(rooms.begin(), rooms.end(), [](const SliceRoom& room) { return room.limited; });
    if (!limited || leaves_frameworks_alone(settings)) return;
    constexpr std::uint64_t kMiB = 1 << 20;
    if (!environment.get(kTensorFlowReserve))
        environment.set(kTensorFlowReserve, std::to_string(tensorflow_reserve(rooms) / kMiB));
    const auto fraction = jax_fraction(rooms);
    if (!fraction || !takes_jax_fraction(environment)) return;
    char text[16];
    std::snprintf(text, sizeof text, "0.%04u", *fraction);
    environment.set(kJaxFraction, text);
}

}  // namespace cuslice::cli
