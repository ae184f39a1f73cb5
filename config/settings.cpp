#include "config/settings.h"

#include <new>

#include "config/fraction.h"
#include "config/group_value.h"
#include "config/plus_context.h"
#include "config/size.h"
#include "config/split/value.h"
#include "config/suggestion.h"
#include "config/visible.h"

namespace cuslice {
namespace {

// A newline in a path would break the one line of a message, and is always a mistake.
bool has_control_character(std::string_view text) {
    for (const char character : text) {
        if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) return true;
    }
    return false;
}

bool refuse(std::string_view reason, Reason& why) {
    why.assign(reason);
    return false;
}

bool parse_amount_of_bytes(Key key, std::string_view text, std::uint64_t& number, Reason& why) {
    // "did you mean 0GiB" would be no help.
    const bool none = key == Key::limit && text == "0";
    const BareNumber bare = key == Key::headroom ? BareNumber::mib : BareNumber::gib;
    if (!none && !parse_size(text, number, why, bare)) return false;
    if (key == Key::limit && number == 0) return refuse("a limit of 0 leaves no memory: more than 0", why);
    return true;
}

// Words alone: beside a time 1 would read as a second, and 0 as no time.
bool parse_yes_or_no(std::string_view text, std::uint64_t& number) {
    const bool yes = text == "yes" || text == "true", no = text == "no" || text == "false";
    number = yes ? kForEver : 0;
    return yes || no;
}

bool parse_switch(std::string_view text, std::uint64_t& number) {
    return parse_yes_or_no(text == "1" ? "yes" : text == "0" ? "no" : text, number);
}

// The modes, in the order of AllocatorMode, FreeMode and Admission.
constexpr std::string_view kAllocatorModes[] = {"direct", "growth", "prealloc"};
constexpr std::string_view kFreeModes[] = {"strict", "deferred"};
constexpr std::string_view kAdmissions[] = {"launch", "first-context"};

bool one_of(std::string_view text, std::span<const std::string_view> words, std::uint64_t& number) {
    for (number = 0; number < words.size(); number++)
        if (words[number] == text) return true;
    number = 0;
    return false;
}

// Milliseconds. Without a unit nobody could tell minutes from seconds.
bool parse_time(std::string_view text, std::uint64_t& number, std::string_view otherwise, Reason& why) {
    std::size_t digits = 0;
    std::uint64_t count = 0;
    while (digits < text.size() && is_digit(text[digits]) && digits < 9)
        count = count * 10 + static_cast<std::uint64_t>(text[digits++] - '0');
    const std::string_view unit = slice(text, digits);
    const std::uint64_t milliseconds = unit == "ms"  ? 1
                                       : unit == "s" ? 1000
                                       : unit == "m" ? 60'000
                                       : unit == "h" ? 3'600'000
                                                     : 0;
    if (digits == 0 || milliseconds == 0 || count == 0) {
        why.assign(otherwise);
        if (count != 0 && unit.empty()) why.append("; did you mean ").append(text).append("s");
        return false;
    }
    number = count * milliseconds;
    return true;
}

// It becomes a part of messages, tables, command lines and paths.
bool parse_name(std::string_view text, Reason& why) {
    bool plain = !text.empty() && text.size() < 64;
    for (const char c : text)
        plain = plain &&
                ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_' || c == '-');
    return plain || refuse("a name of up to 63 letters, digits, '.', '_' and '-' is needed", why);
}

bool takes(Key key, std::string_view value) {
    std::uint64_t number = 0;
    bool automatic = false;
    Reason unused;
    return parse_value(key, value, number, automatic, unused);
}

// Only of what a person has written here: other tools have formats of their own.
void suggest_other(const NewEntry& entry, Reason& why) {
    const Source source = entry.rank.source;
    if (source != Source::flag && source != Source::environment && !is_file(source)) return;
    const Spelling spelling = source == Source::flag          ? Spelling::option
                              : source == Source::environment ? Spelling::variable
                                                              : Spelling::key;
    const bool every = entry.selector.kind == GpuSelector::Kind::every;
    suggest({entry.key, entry.value, every ? std::string_view() : entry.selector.text, spelling, takes}, why);
}

// Two values from one source for one GPU: nobody can tell which was meant, and the last one winning would hide a typo.
bool refuse_second(const Entry& first, const NewEntry& second, Reason& why) {
    if (first.key != second.key) {
        why.assign("fraction and limit for the same GPU from one source: ").append(first.origin).append(" says ");
        why.append(first.value);
    } else {
        why.assign(traits_of(first.key).per_gpu ? "given twice for the same GPU: " : "given twice: ");
        why.append(first.value).append(" by ").append(first.origin);
    }
    why.append("; keep one of them");
    return false;
}

}  // namespace

std::string_view name_of(Source source) {
    constexpr std::string_view kNames[] = {"flag",        "environment", "config-file", "current-folder", "user-file",
                                           "system-file", "outer-job",   "other-tools", "rule",           "cgroup"};
    return kNames[static_cast<std::size_t>(source)];
}

bool parse_value(Key key, std::string_view text, std::uint64_t& number, bool& automatic, Reason& why) {
    number = 0;
    automatic = false;
    switch (key) {
        case Key::fraction: {
            Fraction fraction;
            if (!parse_fraction(text, fraction, why)) return false;
            number = fraction.parts();
            return true;
        }
        case Key::limit:
            return parse_amount_of_bytes(key, without_plus_context(text), number, why);
        case Key::headroom:
            automatic = text == "auto";
            if (automatic || parse_amount_of_bytes(key, text, number, why)) return true;
            why.append("; or auto");
            return false;
        case Key::gpus:
            return parse_gpus(text, why);
        case Key::split:
            return parse_split(text, number, why);
        case Key::group_limit:
            return parse_amount_of_bytes(Key::limit, text, number, why);
        case Key::group:
            if (text == kContainerGroup || parse_name(text, why)) return true;
            why.append("; or @container");
            return false;
        case Key::fake_machine:
            return parse_name(text, why);
        case Key::per_process:
        case Key::oversubscribe:
        case Key::summary:
        case Key::no_framework_env:
            return parse_switch(text, number) || refuse("yes or no", why);
        case Key::wait:
            return parse_yes_or_no(text, number) ||
                   parse_time(text, number, "yes, no, or the longest time to wait: 500ms, 90s, 10m, 2h", why);
        case Key::allocator:
            return one_of(text, kAllocatorModes, number) || refuse("direct, growth or prealloc", why);
        case Key::admission:
            return one_of(text, kAdmissions, number) || refuse("launch or first-context", why);
        case Key::free_mode:
            return one_of(text, kFreeModes, number) || refuse("strict or deferred", why);
        case Key::idle_release:
            return text == "no" || parse_time(text, number, "no, or a time: 500ms, 10s, 5m", why);
        case Key::log: {
            LogSetting log;
            return parse_log(text, log, why);
        }
        case Key::fake_kernels:
            return text == "skip" || text == "error" || refuse("skip or error", why);
        case Key::dir:
            if (text.empty() || text[0] != '/')
                return refuse("an absolute path is needed, the same for everybody", why);
            return !has_control_character(text) || refuse("a path has no control characters in it", why);
        case Key::record:
            if (text.empty()) return refuse("empty: the path of a file is needed", why);
            if (text[0] != '/')
                return refuse("an absolute path is needed: only cuslice run knows the folder that it is relative to",
                              why);
            return !has_control_character(text) || refuse("a path has no control characters in it", why);
        case Key::config:
        case Key::driver:
            if (text.empty()) return refuse("empty: the path of a file is needed", why);
            return !has_control_character(text) || refuse("a path has no control characters in it", why);
        case Key::fake:
            if (text.empty()) return refuse("empty: fake GPUs are needed, as 4xh200, or a TOML file", why);
            return !has_control_character(text) ||
                   refuse("it has control characters: fake GPUs are written as 4xh200", why);
    }
    return refuse("no such key", why);
}

// The caller has made sure of the room: nothing is kept in part.
std::string_view Settings::keep(std::string_view text) {
    if (text.size() > kTextBytes - text_size_) return {};
    char* const kept = text_ + text_size_;
    if (!text.empty()) std::memcpy(kept, text.data(), text.size());
    text_size_ += text.size();
    return {kept, text.size()};
}

bool refuse_entry(const Entry& entry, std::string_view why, ConfigError& error) {
    const bool in_file = is_file(entry.rank.source);
    const bool one_gpu = entry.selector.kind != GpuSelector::Kind::every;
    FixedText<160> value;
    if (one_gpu && !in_file) value.append(entry.selector.text).append("=");
    error.set(entry.origin, value.append(entry.value).view(), why);
    error.key.clear();
    if (!in_file) return false;
    if (entry.ceiling) error.key.append("ceiling.");
    if (one_gpu) error.key.append("gpu.").append(entry.selector.text).append(".");
    if (!one_gpu && !entry.ceiling && traits_of(entry.key).per_gpu) error.key.append("memory.");
    error.key.append(traits_of(entry.key).name);
    return false;
}

void Settings::pass_over(std::string_view path) {
    if (unreachable_file_.empty()) unreachable_file_ = keep(path);
}

bool Settings::add(const NewEntry& added, Reason& why) {
    Entry entry;
    entry.key = added.key;
    entry.ceiling = added.ceiling;
    entry.rank = added.rank;
    if (added.bytes) {
        entry.number = *added.bytes;
    } else if (!parse_value(added.key, added.value, entry.number, entry.automatic, why)) {
        suggest_other(added, why);
        return false;
    }
    entry.plus_context =
        (added.key == Key::limit || added.key == Key::split) && !added.bytes && has_plus_context(added.value);
    // Names that are written alike are seen here; that an index and a UUID mean one GPU only check_against can see.
    for (const Entry& earlier : entries()) {
        const bool same_question = earlier.key == added.key || (is_amount(earlier.key) && is_amount(added.key));
        if (same_question && earlier.rank == added.rank && earlier.ceiling == added.ceiling &&
            earlier.selector.same_as(added.selector)) {
            return refuse_second(earlier, added, why);
        }
    }
    // One text for all the entries of one option or one variable.
    const bool same_origin = count_ != 0 && entries_[count_ - 1].origin == added.origin;
    const std::size_t needed =
        added.selector.text.size() + added.value.size() + (same_origin ? 0 : added.origin.size());
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
        if (entry.selector.kind == GpuSelector::Kind::index) return true;
    }
    return false;
}

// Items are refused one by one, so that the message shows the one that is wrong and not the whole list.
bool add_list(Settings& settings, Key key, Rank rank, std::string_view origin, std::string_view text,
              ConfigError& error) {
    const bool per_gpu = traits_of(key).per_gpu;
    const std::string_view whole = text;
    for (bool more = true; more;) {
        std::string_view decimal;
        if (begins_with_decimal_comma(key, takes, text, decimal)) {
            Reason why;
            suggest_point(decimal, why);
            return error.set(origin, decimal, why.view());
        }
        const std::size_t comma = per_gpu ? text.find(',') : text.npos;
        more = comma != text.npos;
        const std::string_view item = slice(text, 0, comma);
        text = more ? slice(text, comma + 1) : std::string_view();

        NewEntry entry{.key = key, .rank = rank, .value = item, .origin = origin};
        const std::size_t equals = per_gpu ? item.find('=') : item.npos;
        Reason why;
        if (equals != item.npos) {
            if (!parse_gpu_selector(slice(item, 0, equals), entry.selector, why)) {
                return error.set(origin, item, why.view());
            }
            entry.value = slice(item, equals + 1);
        }
        if (!settings.add(entry, why)) return error.set(origin, item, why.view());
        const Entry& added = settings.entries().back();
        const bool first = item.data() == whole.data();
        // A comma where a plus was meant: 0=1GiB,2GiB.
        if (key == Key::split && added.number == 0 && equals == item.npos && !first)
            return error.set(
                origin, item,
                "no GPU is named: a plus joins the parts of one GPU, as 0=1GiB+2GiB; *=SIZE is for every other");
    }
    return true;
}

}  // namespace cuslice
