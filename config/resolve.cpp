// SPDX-License-Identifier: Apache-2.0
#include "config/resolve.h"

#include <algorithm>
#include <compare>

#include "config/fraction.h"

namespace cuslice {
namespace {

// fraction and limit answer one question, so whichever a source gives hides both of a weaker one.
bool answers(const Entry& entry, Key key, bool ceiling) {
    return entry.ceiling == ceiling && same_question(entry.key, key);
}

// Sources of one ceiling each. There may be several outer jobs besides; the smallest of their limits holds.
constexpr Source kCeilings[] = {Source::system_file, Source::rule, Source::cgroup};

struct Found {
    const Entry* entry = nullptr;
    /// A second one just as strong: nobody can tell which was meant.
    const Entry* rival = nullptr;
};

// A question to the settings.
struct Question {
    Key key = Key::limit;
    std::optional<Source> ceiling_of = std::nullopt;  // none: a value
    std::optional<uint8_t> level = std::nullopt;      // none: any
};

bool answers(const Entry& entry, const Question& question) {
    if (!answers(entry, question.key, question.ceiling_of.has_value()))
        return false;
    if (question.ceiling_of && kind_of_ceiling(entry.rank.source) != *question.ceiling_of)
        return false;
    return !question.level || entry.rank.level == *question.level;
}

// The stronger rank first, then the GPU's own value before the general one.
std::strong_ordering by_strength(const Entry& a, const Entry& b) {
    if (a.rank != b.rank)
        return a.rank <=> b.rank;
    return a.selector.is_general() <=> b.selector.is_general();
}

// One pass, keeping the best so far.
Found strongest(const Settings& settings, const Question& question, const GpuIdentity& gpu) {
    Found found;
    for (const Entry& entry : settings.entries()) {
        if (!answers(entry, question) || !entry.selector.matches(gpu))
            continue;
        if (found.entry == nullptr || std::is_lt(by_strength(entry, *found.entry)))
            found = {&entry, nullptr};
        else if (std::is_eq(by_strength(entry, *found.entry)))
            found.rival = &entry;
    }
    return found;
}

// Settings are written once for machines of several sizes: a limit above this GPU's total means all of it.
uint64_t bytes_of(const Entry& entry, uint64_t total) {
    if (entry.key == Key::fraction)
        return Fraction(entry.number).bytes_of(total);
    return std::min(entry.number, total);
}

// The lowest level of an outer job that is `least` or more.
std::optional<uint8_t> outer_level_from(const Settings& settings, unsigned least) {
    std::optional<uint8_t> lowest;
    for (const Entry& entry : settings.entries()) {
        const uint8_t level = entry.rank.level;
        if (entry.rank.source != Source::outer_job || level < least)
            continue;
        if (!lowest || level < *lowest)
            lowest = level;
    }
    return lowest;
}

// Level of the launcher that was started in outer job `number`. A launcher without a limit has left no level.
std::optional<uint8_t> level_of_outer(const Settings& settings, unsigned number) {
    std::optional<uint8_t> level = outer_level_from(settings, 0);
    for (unsigned i = 0; level && i < number; ++i)
        level = outer_level_from(settings, *level + 1u);
    return level;
}

const Entry* find_outer(const Settings& settings, uint8_t level, const GpuIdentity& gpu) {
    return strongest(settings, {Key::limit, Source::outer_job, level}, gpu).entry;
}

std::optional<uint64_t> bytes_if_any(const Entry* entry, uint64_t total) {
    if (entry == nullptr)
        return std::nullopt;
    return bytes_of(*entry, total);
}

void lower(Amount& amount, const Entry* ceiling, uint64_t total) {
    if (ceiling == nullptr)
        return;
    const uint64_t most = bytes_of(*ceiling, total);
    // A ceiling without +context holds for the context as well, and so does then a limit below it.
    const bool plus_context = ceiling->plus_context && (!amount.limited || amount.plus_context);
    if (!amount.limited || most < amount.bytes)
        amount = {true, most, ceiling->origin};
    amount.plus_context = plus_context;
}

bool refuse_count(const Entry& entry, std::span<const GpuIdentity> gpus, int matches, ConfigError& error) {
    Reason why;
    explain_matches(entry.selector, gpus, matches, why);
    refuse_entry(entry, why, error);
    error.value.assign(entry.value);  // the GPU is in the reason
    return false;
}

// Only here, with the GPUs known, can two names be seen to mean one GPU.
bool refuse_rival(const Entry& entry, const Entry& rival, const GpuIdentity& gpu, ConfigError& error) {
    Reason why;
    why.assign("'", rival.selector.text, "' and '", entry.selector.text);
    why.append("' are the same GPU ", gpu.uuid, ", which ", entry.origin);
    why.append(" gives ", entry.value, "; keep one of them");
    refuse_entry(rival, why, error);
    error.value.assign(rival.value);
    return false;
}

}  // namespace

const Entry* find(const Settings& settings, Key key, const GpuIdentity& gpu) {
    return strongest(settings, {key}, gpu).entry;
}

const Entry* find(const Settings& settings, Key key) { return find(settings, key, GpuIdentity{}); }

bool is_on(const Settings& settings, Key key) {
    const Entry* const entry = find(settings, key);
    return entry && entry->number != 0;
}

const Entry* find_ceiling(const Settings& settings, Key key, Source source, const GpuIdentity& gpu) {
    return strongest(settings, {key, source}, gpu).entry;
}

Amount amount_for(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes) {
    Amount amount{false, total_bytes, {}};
    if (const Entry* entry = find(settings, Key::limit, gpu)) {
        amount = {true, bytes_of(*entry, total_bytes), entry->origin, entry->plus_context};
    }
    for (const Source source : kCeilings)
        lower(amount, find_ceiling(settings, Key::limit, source, gpu), total_bytes);
    for (unsigned number = 0; const auto level = level_of_outer(settings, number); ++number)
        lower(amount, find_outer(settings, *level, gpu), total_bytes);
    return amount;
}

std::optional<uint64_t> ceiling_for_all(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes) {
    return bytes_if_any(find_ceiling(settings, Key::limit, Source::system_file, gpu), total_bytes);
}

std::optional<uint64_t> outer_limit_for(const Settings& settings, unsigned number, const GpuIdentity& gpu,
                                        uint64_t total_bytes) {
    const auto level = level_of_outer(settings, number);
    return level ? bytes_if_any(find_outer(settings, *level, gpu), total_bytes) : std::nullopt;
}

bool is_hidden(const Settings& settings, const Entry& entry) {
    for (const Entry& other : settings.entries()) {
        const bool stronger = other.rank < entry.rank && answers(other, entry.key, entry.ceiling);
        if (stronger && other.selector.covers(entry.selector))
            return true;
    }
    return false;
}

bool redirects_runtime(const Settings& settings) {
    const Entry* const entry = find(settings, Key::redirect_runtime);
    return entry != nullptr && entry->value != "no";
}

bool redirects_libraries(const Settings& settings) {
    const Entry* const entry = find(settings, Key::redirect_runtime);
    return entry != nullptr && entry->value == "all";
}

std::optional<uint64_t> headroom_for(const Settings& settings, const GpuIdentity& gpu) {
    const Entry* entry = find(settings, Key::headroom, gpu);
    if (entry == nullptr || entry->automatic)
        return std::nullopt;
    return entry->number;
}

AllocatorChoice allocator_for(const Settings& settings, const GpuIdentity& gpu) {
    AllocatorChoice choice;
    if (const Entry* mode = find(settings, Key::allocator, gpu)) {
        choice.mode = static_cast<AllocatorMode>(mode->number);
        choice.origin = mode->origin;
    }
    if (const Entry* free = find(settings, Key::free_mode, gpu))
        choice.free = static_cast<FreeMode>(free->number);
    if (const Entry* idle = find(settings, Key::idle_release, gpu))
        choice.idle_release = idle->number;
    return choice;
}

bool chooses_cache(const Settings& settings) {
    constexpr auto kDirect = static_cast<uint64_t>(AllocatorMode::direct);
    for (const Entry& entry : settings.entries())
        if (entry.key == Key::allocator && entry.number != kDirect)
            return true;
    return false;
}

bool admits_at_first_context(const Settings& settings) {
    const Entry* const entry = find(settings, Key::admission);
    return entry && entry->number == static_cast<uint64_t>(Admission::first_context);
}

std::optional<uint64_t> group_limit_for(const Settings& settings, const GpuIdentity& gpu) {
    const Entry* entry = find(settings, Key::group_limit, gpu);
    return entry ? std::optional(entry->number) : std::nullopt;
}

std::optional<SharedLimit> shared_limit_for(const Settings& settings, const GpuIdentity& gpu, uint64_t total_bytes) {
    const Entry* const entry =
        settings.shared_rule().empty() ? nullptr : find_ceiling(settings, Key::limit, Source::rule, gpu);
    if (entry == nullptr)
        return std::nullopt;
    return SharedLimit{bytes_of(*entry, total_bytes), entry->origin};
}

FixedText<512> sharing_folder(const Settings& settings, std::string_view fake_folder) {
    FixedText<512> folder;
    // Nobody has a second slice by a folder of their own.
    const bool shared = !settings.shared_rule().empty();
    if (shared && !settings.system_folder().empty())
        return folder.append(settings.system_folder());
    if (shared)
        return folder.append(traits_of(Key::dir).default_value);
    if (const Entry* entry = find(settings, Key::dir))
        return folder.append(entry->value);
    const bool fake = find(settings, Key::fake) != nullptr && !fake_folder.empty();
    if (fake)
        return folder.append(fake_folder, "/ledger");
    return folder.append(traits_of(Key::dir).default_value);
}

std::string_view record_file(const Settings& settings) {
    const Entry* entry = find(settings, Key::record);
    return entry ? entry->value : std::string_view();
}

LogSetting log_for(const Settings& settings) {
    LogSetting log;
    Reason unused;
    if (const Entry* entry = find(settings, Key::log))
        parse_log(entry->value, log, unused);
    return log;
}

namespace {

// Other tools and the kernel set limits for more GPUs than there are; our own settings name GPUs that somebody meant.
bool names_gpu_that_is_meant(const Entry& entry) {
    return entry.rank.source != Source::other_tools && entry.rank.source != Source::cgroup;
}

bool check_selector(const Entry& entry, std::span<const GpuIdentity> gpus, bool all_gpus, ConfigError& error) {
    if (entry.selector.is_general())
        return true;
    int matches = 0;
    for (const GpuIdentity& gpu : gpus)
        matches += entry.selector.matches(gpu);
    const bool missing = matches == 0 && all_gpus && names_gpu_that_is_meant(entry);
    const bool good = matches <= 1 && !missing;
    return good || refuse_count(entry, gpus, matches, error);
}

bool check_rivals(const Settings& settings, Key key, const GpuIdentity& gpu, ConfigError& error) {
    // Ceilings are a question of their own: a value and a ceiling on one GPU are no rivals.
    for (const std::optional<Source> ceiling_of :
         {std::optional<Source>(), {Source::system_file}, {Source::rule}, {Source::cgroup}}) {
        const Found found = strongest(settings, {key, ceiling_of}, gpu);
        if (found.rival != nullptr)
            return refuse_rival(*found.entry, *found.rival, gpu, error);
    }
    return true;
}

}  // namespace

bool check_against(const Settings& settings, std::span<const GpuIdentity> gpus, bool all_gpus, ConfigError& error) {
    for (const Entry& entry : settings.entries())
        if (!check_selector(entry, gpus, all_gpus, error))
            return false;
    for (const GpuIdentity& gpu : gpus)
        for (const KeyTraits& traits : all_keys())
            if (traits.per_gpu && !check_rivals(settings, traits.key, gpu, error))
                return false;
    return true;
}

}  // namespace cuslice
