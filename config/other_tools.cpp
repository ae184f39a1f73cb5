// Limits written for other tools, which a user who comes from them already has in place. They are the weakest source.
//
// HAMi (hami-core, README): CUDA_DEVICE_MEMORY_LIMIT for every GPU, CUDA_DEVICE_MEMORY_LIMIT_i for GPU i; a number of
// bytes with k, m or g (powers of 1024, any case) after it; empty or 0 is no limit. MPS (NVIDIA, "Multi-Process
// Service", CUDA_MPS_PINNED_DEVICE_MEM_LIMIT): "0=1G,1=512MB", a GPU's ordinal or UUID and its limit in M or G: powers
// of 1024, as NVIDIA's Kubernetes plugin computes them and as users measured ("4G": 4072.9 MiB left beside a context).
//
// Both count GPUs as the CUDA program sees them. Here the number is the index in PCI order, as everywhere in the
// settings: the two agree unless CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER changes the order (docs/configuration.md
// says so).
#include <limits>

#include "config/load.h"

namespace cuslice {
namespace {

constexpr std::string_view kHami = "CUDA_DEVICE_MEMORY_LIMIT";
constexpr std::string_view kMps = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

// The power of 1024 that a unit stands for; -1 for any other text.
int shift_of(std::string_view unit, bool mps) {
    if (equal_ignoring_case(unit, "g") || (mps && equal_ignoring_case(unit, "gb"))) return 30;
    if (equal_ignoring_case(unit, "m") || (mps && equal_ignoring_case(unit, "mb"))) return 20;
    if (!mps && equal_ignoring_case(unit, "k")) return 10;
    return !mps && unit.empty() ? 0 : -1;
}

bool parse_foreign_size(std::string_view text, bool mps, std::uint64_t& bytes, Reason& why) {
    bytes = 0;
    bool overflow = false;
    std::size_t at = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
        const auto digit = static_cast<std::uint64_t>(text[at] - '0');
        overflow = overflow || bytes > (kMax - digit) / 10;
        bytes = bytes * 10 + digit;
    }
    const int shift = at == 0 ? -1 : shift_of(slice(text, at), mps);
    if (shift >= 0 && !overflow && bytes <= kMax >> shift) {
        bytes <<= shift;
        return true;
    }
    if (shift >= 0) {
        why.assign("more bytes than 64 bits can count");
    } else if (mps) {
        why.assign("MPS takes a GPU and a whole number of M or G, as 0=1G,1=512M");
    } else {
        why.assign("HAMi takes a whole number of bytes, or of k, m or g, as 1g or 1024m");
    }
    return false;
}

bool add_limit(Settings& settings, const GpuSelector& selector, std::string_view name, std::uint8_t level,
               std::string_view value, std::uint64_t bytes, Reason& why) {
    return settings.add({.key = Key::limit,
                         .rank = {Source::other_tools, level},
                         .selector = selector,
                         .value = value,
                         .origin = name,
                         .bytes = bytes},
                        why);
}

bool load_hami(Settings& settings, std::string_view name, std::string_view value, ConfigError& error) {
    GpuSelector selector;
    Reason why;
    if (name.size() > kHami.size()) {
        if (name[kHami.size()] != '_') return true;
        // CUDA_DEVICE_MEMORY_LIMIT_STRICT and the like are not ours to judge.
        if (!parse_gpu_selector(slice(name, kHami.size() + 1), selector, why)) return true;
        if (selector.kind != GpuSelector::Kind::index) return true;
    }
    std::uint64_t bytes = 0;
    if (value.empty()) return true;
    if (!parse_foreign_size(value, false, bytes, why)) return error.set(name, value, why.view());
    if (bytes == 0) return true;
    return add_limit(settings, selector, name, 0, value, bytes, why) || error.set(name, value, why.view());
}

// One level weaker than HAMi's, so that a machine on which both are set has an answer.
bool load_mps(Settings& settings, std::string_view text, ConfigError& error) {
    for (bool more = !text.empty(); more;) {
        const std::size_t comma = text.find(',');
        more = comma != text.npos;
        const std::string_view item = slice(text, 0, comma);
        text = more ? slice(text, comma + 1) : std::string_view();

        Reason why;
        GpuSelector selector;
        std::uint64_t bytes = 0;
        const std::size_t equals = item.find('=');
        if (equals == item.npos)
            return error.set(kMps, item, "MPS takes a GPU and a whole number of M or G, as 0=1G,1=512M");
        if (!parse_gpu_selector(slice(item, 0, equals), selector, why) ||
            !parse_foreign_size(slice(item, equals + 1), true, bytes, why)) {
            return error.set(kMps, item, why.view());
        }
        if (bytes == 0) return error.set(kMps, item, "a limit of 0 leaves no memory: more than 0");
        const std::string_view value = slice(item, equals + 1);
        if (!add_limit(settings, selector, kMps, 1, value, bytes, why)) return error.set(kMps, item, why.view());
    }
    return true;
}

}  // namespace

bool load_other_tools(Settings& settings, const char* const* environment, ConfigError& error) {
    for (; *environment != nullptr; ++environment) {
        const std::string_view line(*environment);
        const std::size_t equals = line.find('=');
        if (equals == line.npos) continue;
        const std::string_view name = slice(line, 0, equals);
        const std::string_view value = slice(line, equals + 1);
        if (starts_with(name, kHami) && !load_hami(settings, name, value, error)) return false;
        if (name == kMps && !load_mps(settings, value, error)) return false;
    }
    return true;
}

}  // namespace cuslice
