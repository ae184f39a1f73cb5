// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

#include <new>
#include <optional>

#include "config/plus_context.h"
#include "config/refuse.h"
#include "config/suggestion.h"
#include "config/value.h"

namespace cuslice {
namespace {

bool takes(Key key, std::string_view value) {
    uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    return parse_value(key, value, number, automatic, unused);
}

// None where no person writes settings.
std::optional<Spelling> spelling_in(Source source) {
    if (source == Source::flag)
        return Spelling::option;
    if (source == Source::environment)
        return Spelling::variable;
    return is_file(source) ? std::optional(Spelling::key) : std::nullopt;
}

// Only of what a person has written here: other tools have formats of their own.
void suggest_other(const NewEntry& entry, Reason& why) {
    const std::optional<Spelling> spelling = spelling_in(entry.rank.source);
    if (!spelling)
        return;
    const std::string_view gpu = entry.selector.is_general() ? std::string_view() : entry.selector.text;
    suggest({entry.key, entry.value, gpu, *spelling, takes}, why);
}

// A file's key with its tables: "ceiling.gpu.0.limit".
void append_key(const Entry& entry, ConfigError& error) {
    const KeyTraits& traits = traits_of(entry.key);
    const bool one_gpu = !entry.selector.is_general();
    const bool of_every_gpu = traits.per_gpu && !one_gpu && !entry.ceiling;
    if (entry.ceiling)
        error.key.append("ceiling.");
    if (one_gpu)
        error.key.append("gpu.", entry.selector.text, ".");
    if (of_every_gpu)
        error.key.append("memory.");
    error.key.append(traits.name);
}

bool is_second(const Entry& first, const NewEntry& second) {
    const bool one_source = first.rank == second.rank && first.ceiling == second.ceiling;
    return one_source && same_question(first.key, second.key) && first.selector.same_as(second.selector);
}

// Two values from one source for one GPU: nobody can tell which was meant, and the last one winning would hide a typo.
bool refuse_second(const Entry& first, const NewEntry& second, Reason& why) {
    if (first.key != second.key) {
        why.assign("fraction and limit for the same GPU from one source: ", first.origin, " says ");
        why.append(first.value);
    } else {
        why.assign(traits_of(first.key).per_gpu ? "given twice for the same GPU: " : "given twice: ");
        why.append(first.value, " by ", first.origin);
    }
    why.append("; keep one of them");
    return false;
}

}  // namespace

std::string_view name_of(Source source) {
    constexpr std::string_view kNames[] = {"flag",        "environment", "config-file", "current-folder", "user-file",
                                           "system-file", "outer-job",   "other-tools", "rule",           "cgroup"};
    return kNames[static_cast<size_t>(source)];
}

// The caller has made sure of the room: nothing is kept in part.
std::string_view Settings::keep(std::string_view text) {
    if (text.size() > kTextBytes - text_size_)
        return {};
    char* const kept = text_ + text_size_;
    if (!text.empty())
        std::memcpy(kept, text.data(), text.size());
    text_size_ += text.size();
    return {kept, text.size()};
}

bool refuse_entry(const Entry& entry, std::string_view why, ConfigError& error) {
    const bool in_file = is_file(entry.rank.source);
    const bool one_gpu = !entry.selector.is_general();
    FixedText<160> value;
    if (one_gpu && !in_file)
        value.append(entry.selector.text, "=");
    error.set(entry.origin, value.append(entry.value), why);
    error.key.clear();
    if (in_file)
        append_key(entry, error);
    return false;
}

void Settings::pass_over(std::string_view path) {
    if (unreachable_file_.empty())
        unreachable_file_ = keep(path);
}

bool Settings::add(const NewEntry& added, Reason& why) {
    Entry entry;
    entry.key = added.key;
    entry.ceiling = added.ceiling;
    entry.rank = added.rank;
    if (added.number) {
        entry.number = *added.number;
    } else if (!parse_value(added.key, added.value, entry.number, entry.automatic, why)) {
        suggest_other(added, why);
        return false;
    }
    entry.plus_context = traits_of(added.key).takes_context && !added.number && has_plus_context(added.value);
    // Names that are written alike are seen here; that an index and a UUID mean one GPU only check_against can see.
    for (const Entry& earlier : entries()) {
        if (is_second(earlier, added))
            return refuse_second(earlier, added, why);
    }
    // One text for all the entries of one option or one variable.
    const bool same_origin = count_ != 0 && entries_[count_ - 1].origin == added.origin;
    const size_t needed = added.selector.text.size() + added.value.size() + (same_origin ? 0 : added.origin.size());
    if (count_ == kMaxEntries || needed > kTextBytes - text_size_) {
        return refuse("too many settings in all: 256 values, 32 KiB of text", why);
    }
    entry.selector = added.selector;
    entry.selector.text = keep(added.selector.text);
    entry.value = keep(added.value);
    entry.origin = same_origin ? entries_[count_ - 1].origin : keep(added.origin);
    new (&entries_[count_++]) Entry(entry);
    return true;
}

bool Settings::needs_index() const {
    for (const Entry& entry : entries()) {
        if (entry.selector.kind == GpuSelector::Kind::index)
            return true;
    }
    return false;
}

namespace {

// One item of a list: "4GiB" or "0=4GiB". `first`: of its list.
bool add_item(Settings& settings, NewEntry entry, std::string_view item, bool first, ConfigError& error) {
    const bool per_gpu = traits_of(entry.key).per_gpu;
    const size_t equals = per_gpu ? item.find('=') : item.npos;
    const bool named = equals != item.npos;
    entry.value = named ? slice(item, equals + 1) : item;
    Reason why;
    if (named && !parse_gpu_selector(slice(item, 0, equals), entry.selector, why))
        return error.set(entry.origin, item, why);
    if (!settings.add(entry, why))
        return error.set(entry.origin, item, why);
    // A comma where a plus was meant: 0=1GiB,2GiB.
    const bool sizes = entry.key == Key::split && settings.entries().back().number == 0;
    if (sizes && !named && !first)
        return error.set(
            entry.origin, item,
            "no GPU is named: a plus joins the partitions of one GPU, as 0=1GiB+2GiB; *=SIZE is for every other");
    return true;
}

}  // namespace

// Items are refused one by one, so that the message shows the one that is wrong and not the whole list.
bool add_list(Settings& settings, Key key, Rank rank, std::string_view origin, std::string_view text,
              ConfigError& error) {
    const bool per_gpu = traits_of(key).per_gpu;
    bool first = true;
    for (bool more = true; more; first = false) {
        std::string_view decimal;
        if (begins_with_decimal_comma(key, takes, text, decimal)) {
            Reason why;
            suggest_point(decimal, why);
            return error.set(origin, decimal, why);
        }
        more = false;
        const std::string_view item = per_gpu ? take_item(text, ',', more) : text;
        if (!add_item(settings, {.key = key, .rank = rank, .origin = origin}, item, first, error))
            return false;
    }
    return true;
}

}  // namespace cuslice
