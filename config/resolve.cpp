#include "config/resolve.h"

#include "config/fraction.h"

namespace cuslice {
namespace {

// fraction and limit answer one question, so whichever a source gives hides both of a weaker one.
bool answers(const Entry& entry, Key key, bool ceiling) {
    return entry.ceiling == ceiling && (entry.key == key || (is_amount(entry.key) && is_amount(key)));
}

// Sources of one ceiling each. There may be several outer jobs besides; the smallest of their limits holds.
constexpr Source kCeilings[] = {Source::system_file, Source::rule, Source::cgroup};

struct Found {
    const Entry* entry = nullptr;
    /// A second one just as strong: nobody can tell which was meant.
    const Entry* rival = nullptr;
};

// One pass, keeping the best so far: the stronger rank first, then the GPU's own value before the general one.
// `level`: of all entries that are looked at, or any.
Found strongest(const Settings& settings, Key key, std::optional<Source> ceiling_of, const GpuIdentity& gpu,
                std::optional<std::uint8_t> level = std::nullopt) {
    Found found;
    for (const Entry& entry : settings.entries()) {
        if (!answers(entry, key, ceiling_of.has_value()) || !entry.selector.matches(gpu)) continue;
        if (ceiling_of && kind_of_ceiling(entry.rank.source) != *ceiling_of) continue;
        if (level && entry.rank.level != *level) continue;
        const Entry* best = found.entry;
        const bool general = entry.selector.kind == GpuSelector::Kind::every;
        const bool best_general = best != nullptr && best->selector.kind == GpuSelector::Kind::every;
        if (best == nullptr || entry.rank < best->rank || (entry.rank == best->rank && best_general && !general)) {
            found = {&entry, nullptr};
        } else if (entry.rank == best->rank && best_general == general) {
            found.rival = &entry;
        }
    }
    return found;
}

// Settings are written once for machines of several sizes: a limit above this GPU's total means all of it.
std::uint64_t bytes_of(const Entry& entry, std::uint64_t total) {
    if (entry.key == Key::fraction) return Fraction(entry.number).bytes_of(total);
    return entry.number < total ? entry.number : total;
}

// Level of the launcher that was started in outer job `number`. A launcher without a limit has left no level.
std::optional<std::uint8_t> level_of_outer(const Settings& settings, unsigned number) {
    std::optional<std::uint8_t> level;
    for (unsigned i = 0; i <= number; ++i) {
        std::optional<std::uint8_t> next;
        for (const Entry& entry : settings.entries()) {
            const Rank rank = entry.rank;
            if (rank.source == Source::outer_job && (!level || rank.level > *level) && (!next || rank.level < *next))
                next = rank.level;
        }
        if (!next) return std::nullopt;
        level = next;
    }
    return level;
}

const Entry* find_outer(const Settings& settings, std::uint8_t level, const GpuIdentity& gpu) {
    return strongest(settings, Key::limit, Source::outer_job, gpu, level).entry;
}

void lower(Amount& amount, const Entry* ceiling, std::uint64_t total) {
    if (ceiling == nullptr) return;
    const std::uint64_t most = bytes_of(*ceiling, total);
    // A ceiling without +context holds for the context as well, and so does then a limit below it.
    const bool plus_context = ceiling->plus_context && (!amount.limited || amount.plus_context);
    if (!amount.limited || most < amount.bytes) amount = {true, most, ceiling->origin};
    amount.plus_context = plus_context;
}

bool refuse_count(const Entry& entry, std::span<const GpuIdentity> gpus, int matches, ConfigError& error) {
    Reason why;
    explain_matches(entry.selector, gpus, matches, why);
    refuse_entry(entry, why.view(), error);
    error.value.assign(entry.value);  // the GPU is in the reason
    return false;
}

// Only here, with the GPUs known, can two names be seen to mean one GPU.
bool refuse_rival(const Found& found, const GpuIdentity& gpu, ConfigError& error) {
    Reason why;
    why.assign("'").append(found.rival->selector.text).append("' and '").append(found.entry->selector.text);
    why.append("' are the same GPU ").append(gpu.uuid).append(", which ").append(found.entry->origin);
    why.append(" gives ").append(found.entry->value).append("; keep one of them");
    refuse_entry(*found.rival, why.view(), error);
    error.value.assign(found.rival->value);
    return false;
}

}  // namespace

const Entry* find(const Settings& settings, Key key, const GpuIdentity& gpu) {
    return strongest(settings, key, std::nullopt, gpu).entry;
}

const Entry* find(const Settings& settings, Key key) { return find(settings, key, GpuIdentity{}); }

const Entry* find_ceiling(const Settings& settings, Source source, const GpuIdentity& gpu) {
    return strongest(settings, Key::limit, source, gpu).entry;
}

Amount amount_for(const Settings& settings, const GpuIdentity& gpu, std::uint64_t total_bytes) {
    Amount amount{false, total_bytes, {}};
    if (const Entry* entry = find(settings, Key::limit, gpu)) {
        amount = {true, bytes_of(*entry, total_bytes), entry->origin, entry->plus_context};
    }
    for (const Source source : kCeilings) lower(amount, find_ceiling(settings, source, gpu), total_bytes);
    for (unsigned number = 0; const auto level = level_of_outer(settings, number); ++number)
        lower(amount, find_outer(settings, *level, gpu), total_bytes);
    return amount;
}

std::optional<std::uint64_t> ceiling_for_all(const Settings& settings, const GpuIdentity& gpu,
                                             std::uint64_t total_bytes) {
    const Entry* const entry = find_ceiling(settings, Source::system_file, gpu);
    return entry ? std::optional(bytes_of(*entry, total_bytes)) : std::nullopt;
}

std::optional<std::uint64_t> outer_limit_for(const Settings& settings, unsigned number, const GpuIdentity& gpu,
                                             std::uint64_t total_bytes) {
    const auto level = level_of_outer(settings, number);
    const Entry* const entry = level ? find_outer(settings, *level, gpu) : nullptr;
    return entry ? std::optional(bytes_of(*entry, total_bytes)) : std::nullopt;
}

bool is_hidden(const Settings& settings, const Entry& entry) {
    for (const Entry& other : settings.entries()) {
        if (!answers(other, entry.key, entry.ceiling) || !(other.rank < entry.rank)) continue;
        if (other.selector.kind == GpuSelector::Kind::every || other.selector.same_as(entry.selector)) return true;
    }
    return false;
}

std::optional<std::uint64_t> headroom_for(const Settings& settings, const GpuIdentity& gpu) {
    const Entry* entry = find(settings, Key::headroom, gpu);
    if (entry == nullptr || entry->automatic) return std::nullopt;
    return entry->number;
}

AllocatorChoice allocator_for(const Settings& settings, const GpuIdentity& gpu) {
    AllocatorChoice choice;
    if (const Entry* mode = find(settings, Key::allocator, gpu)) {
        choice.mode = static_cast<AllocatorMode>(mode->number);
        choice.origin = mode->origin;
    }
    if (const Entry* free = find(settings, Key::free_mode, gpu)) choice.free = static_cast<FreeMode>(free->number);
    if (const Entry* idle = find(settings, Key::idle_release, gpu)) choice.idle_release = idle->number;
    return choice;
}

bool chooses_cache(const Settings& settings) {
    for (const Entry& entry : settings.entries())
        if (entry.key == Key::allocator && static_cast<AllocatorMode>(entry.number) != AllocatorMode::direct)
            return true;
    return false;
}

bool admits_at_first_context(const Settings& settings) {
    const Entry* const entry = find(settings, Key::admission);
    return entry && entry->number == static_cast<std::uint64_t>(Admission::first_context);
}

std::optional<std::uint64_t> group_limit_for(const Settings& settings, const GpuIdentity& gpu) {
    const Entry* entry = find(settings, Key::group_limit, gpu);
    return entry ? std::optional(entry->number) : std::nullopt;
}

std::optional<SharedLimit> shared_limit_for(const Settings& settings, const GpuIdentity& gpu,
                                            std::uint64_t total_bytes) {
    const Entry* const entry = settings.shared_rule().empty() ? nullptr : find_ceiling(settings, Source::rule, gpu);
    if (entry == nullptr) return std::nullopt;
    return SharedLimit{bytes_of(*entry, total_bytes), entry->origin};
}

FixedText<512> sharing_folder(const Settings& settings, std::string_view fake_folder) {
    FixedText<512> folder;
    // Nobody has a second slice by a folder of their own.
    if (!settings.shared_rule().empty())
        return folder.append(settings.system_folder().empty() ? traits_of(Key::dir).default_value
                                                              : settings.system_folder());
    if (const Entry* entry = find(settings, Key::dir)) return folder.append(entry->value);
    if (find(settings, Key::fake) && !fake_folder.empty()) return folder.append(fake_folder).append("/ledger");
    return folder.append(traits_of(Key::dir).default_value);
}

std::string_view record_file(const Settings& settings) {
    const Entry* entry = find(settings, Key::record);
    return entry ? entry->value : std::string_view();
}

LogSetting log_for(const Settings& settings) {
    LogSetting log;
    Reason unused;
    if (const Entry* entry = find(settings, Key::log)) parse_log(entry->value, log, unused);
    return log;
}

bool check_against(const Settings& settings, std::span<const GpuIdentity> gpus, bool all_gpus, ConfigError& error) {
    for (const Entry& entry : settings.entries()) {
        if (entry.selector.kind == GpuSelector::Kind::every) continue;
        int matches = 0;
        for (const GpuIdentity& gpu : gpus) matches += entry.selector.matches(gpu) ? 1 : 0;
        // Other tools and the kernel set limits for more GPUs than there are; our own settings name GPUs that somebody
        // meant.
        const bool named = entry.rank.source != Source::other_tools && entry.rank.source != Source::cgroup;
        const bool missing = matches == 0 && all_gpus && named;
        if (missing || matches > 1) return refuse_count(entry, gpus, matches, error);
    }
    for (const GpuIdentity& gpu : gpus) {
        for (const KeyTraits& traits : all_keys()) {
            if (!traits.per_gpu) continue;
            // Ceilings are a question of their own: a value and a ceiling on one GPU are no rivals.
            for (const std::optional<Source> ceiling_of :
                 {std::optional<Source>(), {Source::system_file}, {Source::rule}, {Source::cgroup}}) {
                const Found found = strongest(settings, traits.key, ceiling_of, gpu);
                if (found.rival != nullptr) return refuse_rival(found, gpu, error);
            }
        }
    }
    return true;
}

}  // namespace cuslice
