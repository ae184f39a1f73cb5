// SPDX-License-Identifier: Apache-2.0
// Limits written for other tools, which a user who comes from them already has in place. They are the weakest source.
//
// HAMi (hami-core, README): CUDA_DEVICE_MEMORY_LIMIT for every GPU, CUDA_DEVICE_MEMORY_LIMIT_i for GPU i; a number of
// bytes with k, m or g (powers of 1024, any case) after it; empty or 0 is no limit. CUDA_DEVICE_SM_LIMIT[_i] is a
// percent of the GPU, 0 and 100 being no limit; here it is a share of the GPU's time. MPS (NVIDIA, "Multi-Process
// Service", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT): "0=1G,1=512MB", a GPU's ordinal or UUID and its limit in M or G: powers
// of 1024, as NVIDIA's Kubernetes plugin computes them and as users measured ("4G": 4072.9 MiB left beside a context).
//
// Both count GPUs as the CUDA program sees them. Here the number is the index in PCI order, as everywhere in the
// settings: the two agree unless CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER changes the order (docs/configuration.md
// says so).
#include <limits>
#include <span>

#include "config/load.h"
#include "config/percent.h"
#include "config/refuse.h"

namespace cuslice {
namespace {

constexpr std::string_view kHami = "CUDA_DEVICE_MEMORY_LIMIT";
constexpr std::string_view kHamiShare = "CUDA_DEVICE_SM_LIMIT";
constexpr std::string_view kMps = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
constexpr std::string_view kMpsNeeds = "MPS takes a GPU and a whole number of M or G, as 0=1G,1=512M";
constexpr std::string_view kHamiNeeds = "HAMi takes a whole number of bytes, or of k, m or g, as 1g or 1024m";
constexpr std::string_view kHamiSharePercent = "HAMi takes a whole percent from 0 to 100, as 30";

// A unit, and the power of two that it stands for.
struct Unit {
    std::string_view name;
    int shift;
};
constexpr Unit kHamiUnits[] = {{"", 0}, {"k", 10}, {"m", 20}, {"g", 30}};
constexpr Unit kMpsUnits[] = {{"m", 20}, {"mb", 20}, {"g", 30}, {"gb", 30}};

const Unit* find_unit(std::span<const Unit> units, std::string_view name) {
    for (const Unit& unit : units)
        if (equal_ignoring_case(unit.name, name))
            return &unit;
    return nullptr;
}

// False if the bytes don't fit into 64 bits.
bool count_bytes(std::string_view digits, int shift, uint64_t& bytes) {
    bytes = 0;
    for (const char digit : digits) {
        const uint64_t value = value_of_digit(digit);
        if (bytes > (kMax - value) / 10)
            return false;
        bytes = bytes * 10 + value;
    }
    if (bytes > kMax >> shift)
        return false;
    bytes <<= shift;
    return true;
}

// `needed`: what to say of anything that is no size.
bool parse_foreign_size(std::string_view text, std::span<const Unit> units, std::string_view needed, uint64_t& bytes,
                        Reason& why) {
    const std::string_view digits = leading_digits(text);
    const Unit* const unit = find_unit(units, slice(text, digits.size()));
    if (digits.empty() || unit == nullptr)
        return refuse(needed, why);
    if (count_bytes(digits, unit->shift, bytes))
        return true;
    return refuse("more bytes than 64 bits can count", why);
}

bool add_value(Settings& settings, Key key, const GpuSelector& selector, std::string_view name, uint8_t level,
               std::string_view value, uint64_t number, Reason& why) {
    return settings.add({.key = key,
                         .rank = {Source::other_tools, level},
                         .selector = selector,
                         .value = value,
                         .origin = name,
                         .number = number},
                        why);
}

// CUDA_DEVICE_MEMORY_LIMIT_STRICT and the like are not ours to judge.
bool is_for_gpu(std::string_view behind, GpuSelector& selector) {
    if (behind.empty())
        return true;
    Reason unused;
    if (behind[0] != '_' || !parse_gpu_selector(slice(behind, 1), selector, unused))
        return false;
    return selector.kind == GpuSelector::Kind::index;
}

bool load_hami(Settings& settings, std::string_view name, std::string_view value, ConfigError& error) {
    GpuSelector selector;
    if (value.empty() || !is_for_gpu(slice(name, kHami.size()), selector))
        return true;
    Reason why;
    uint64_t bytes = 0;
    if (!parse_foreign_size(value, kHamiUnits, kHamiNeeds, bytes, why))
        return error.set(name, value, why);
    if (bytes == 0)
        return true;
    return add_value(settings, Key::limit, selector, name, 0, value, bytes, why) || error.set(name, value, why);
}

bool parse_hami_share(std::string_view text, uint64_t& percent, Reason& why) {
    constexpr size_t kMostDigits = 3;
    const bool fits = are_digits(text) && text.size() <= kMostDigits;
    percent = fits ? decimal_number(text) : 0;
    return (fits && percent <= kWholePercent) || refuse(kHamiSharePercent, why);
}

bool load_hami_share(Settings& settings, std::string_view name, std::string_view value, ConfigError& error) {
    GpuSelector selector;
    if (value.empty() || !is_for_gpu(slice(name, kHamiShare.size()), selector))
        return true;
    Reason why;
    uint64_t percent = 0;
    if (!parse_hami_share(value, percent, why))
        return error.set(name, value, why);
    if (percent == 0 || percent == kWholePercent)
        return true;
    return add_value(settings, Key::share, selector, name, 0, value, percent, why) || error.set(name, value, why);
}

// One level weaker than HAMi's, so that a machine on which both are set has an answer.
bool add_mps_item(Settings& settings, std::string_view item, Reason& why) {
    const size_t equals = item.find('=');
    if (equals == item.npos)
        return refuse(kMpsNeeds, why);
    GpuSelector selector;
    uint64_t bytes = 0;
    const std::string_view value = slice(item, equals + 1);
    if (!parse_gpu_selector(slice(item, 0, equals), selector, why))
        return false;
    if (!parse_foreign_size(value, kMpsUnits, kMpsNeeds, bytes, why))
        return false;
    if (bytes != 0)
        return add_value(settings, Key::limit, selector, kMps, 1, value, bytes, why);
    return refuse("a limit of 0 leaves no memory: more than 0", why);
}

bool load_mps(Settings& settings, std::string_view text, ConfigError& error) {
    for (bool more = !text.empty(); more;) {
        const std::string_view item = take_item(text, ',', more);
        Reason why;
        if (!add_mps_item(settings, item, why))
            return error.set(kMps, item, why);
    }
    return true;
}

}  // namespace

bool load_other_tools(Settings& settings, const char* const* environment, ConfigError& error) {
    for (; *environment != nullptr; ++environment) {
        const std::string_view line(*environment);
        const size_t equals = line.find('=');
        if (equals == line.npos)
            continue;
        const std::string_view name = slice(line, 0, equals);
        const std::string_view value = slice(line, equals + 1);
        if (starts_with(name, kHami) && !load_hami(settings, name, value, error))
            return false;
        if (starts_with(name, kHamiShare) && !load_hami_share(settings, name, value, error))
            return false;
        if (name == kMps && !load_mps(settings, value, error))
            return false;
    }
    return true;
}

}  // namespace cuslice
