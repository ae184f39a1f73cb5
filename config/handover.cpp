// SPDX-License-Identifier: Apache-2.0
#include "config/handover.h"

#include <algorithm>

namespace cuslice {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::string_view kCeiling = "ceiling.";
constexpr std::string_view kHexDigits = "0123456789ABCDEF";
constexpr size_t kSources = static_cast<size_t>(Source::other_tools) + 1;

// Counts on past the end of the buffer, so that one comparison at the end tells whether all of it fitted.
class Writer {
  public:
    explicit Writer(std::span<char> buffer) : buffer_(buffer) {}

    void put(char character) {
        if (size_ < buffer_.size())
            buffer_[size_] = character;
        ++size_;
    }
    void put_plain(std::string_view text) {
        for (const char character : text)
            put(character);
    }
    void put_field(std::string_view text) {
        for (const char character : text) {
            if (is_plain(character))
                put(character);
            else
                put_escaped(static_cast<unsigned char>(character));
        }
    }
    /// The length without the NUL that it adds; 0 if something did not fit.
    size_t finish() {
        put('\0');
        return size_ <= buffer_.size() ? size_ - 1 : 0;
    }

  private:
    static bool is_plain(char character) {
        const bool blank_or_control = static_cast<unsigned char>(character) <= 0x20 || character == 0x7f;
        return !blank_or_control && character != ';' && character != '%';
    }
    void put_escaped(unsigned char byte) {
        put('%');
        put(kHexDigits[byte >> 4]);
        put(kHexDigits[byte & 15]);
    }

    std::span<char> buffer_;
    size_t size_ = 0;
};

// Levels of outer jobs that are nearer than one, and farther.
struct Neighbours {
    int nearer = 0;
    int farther = 0;
};

Neighbours neighbours_of(const Settings& settings, uint8_t level) {
    bool known[256] = {};
    for (const Entry& entry : settings.entries())
        if (entry.rank.source == Source::outer_job)
            known[entry.rank.level] = true;
    Neighbours neighbours;
    for (int other = 0; other < level; ++other)
        neighbours.nearer += known[other];
    for (int other = level + 1; other < 256; ++other)
        neighbours.farther += known[other];
    return neighbours;
}

// The limits of outer jobs hold beside each other: of three at most, so that depth does not fill the environment. They
// are the nearest and the two outermost, whose accounts a process joins in any case. Counted anew from 0.
std::optional<uint8_t> level_on_the_way(const Settings& settings, uint8_t level) {
    constexpr int kAll = 3;
    const auto [nearer, farther] = neighbours_of(settings, level);
    if (nearer == 0)
        return uint8_t{0};
    if (farther > kAll - 2)
        return std::nullopt;
    return static_cast<uint8_t>(std::min(nearer, kAll - 1 - farther));
}

// The level that an entry has for the other side; none where it doesn't travel.
std::optional<uint8_t> level_of(const Settings& settings, const Entry& entry) {
    const bool of_outer = entry.rank.source == Source::outer_job;
    return of_outer ? level_on_the_way(settings, entry.rank.level) : std::optional(entry.rank.level);
}

// The launcher has acted on these.
bool is_launchers(Key key) {
    switch (key) {
        case Key::fake:
        case Key::fake_kernels:
        case Key::fake_machine:
        case Key::config:
        case Key::redirect_runtime:
        case Key::runtime:
            return true;
        default:
            return false;
    }
}

bool is_answered_by(const Entry& other, const Entry& entry) {
    const bool stronger = other.rank < entry.rank && other.ceiling == entry.ceiling;
    return stronger && same_question(other.key, entry.key) && other.selector.same_as(entry.selector);
}

// False if the other side finds the entry by itself or would never use it.
bool travels(const Settings& settings, const Entry& entry) {
    if (entry.rank.source >= Source::other_tools || is_launchers(entry.key))
        return false;
    // An empty list is a choice that the launcher has made already; no other value is empty.
    if (entry.value.empty())
        return false;
    if (entry.rank.source == Source::outer_job)
        return level_of(settings, entry).has_value();
    for (const Entry& other : settings.entries())
        if (is_answered_by(other, entry))
            return false;
    return true;
}

// -1 of anything but a digit as put_escaped() writes it.
int hex_value(char digit) {
    const size_t value = kHexDigits.find(digit);
    return value == kHexDigits.npos ? -1 : static_cast<int>(value);
}

// Takes one field off the front of a record and undoes the %XX.
template <size_t Capacity>
bool take_field(std::string_view& record, FixedText<Capacity>& field) {
    bool more = false;
    const std::string_view written = take_item(record, ' ', more);
    field.clear();
    for (size_t at = 0; at < written.size(); ++at) {
        if (written[at] != '%') {
            field.append(written[at]);
            continue;
        }
        if (written.size() - at < 3)
            return false;
        const int high = hex_value(written[at + 1]);
        const int low = hex_value(written[at + 2]);
        if (high < 0 || low < 0)
            return false;
        field.append(static_cast<char>(high * 16 + low));
        at += 2;
    }
    return !written.empty() && !field.cut();
}

// Everything handed on was nearer to somebody else: one level weaker than what this process says itself.
bool parse_rank(std::string_view text, Rank& rank) {
    constexpr size_t kMostDigits = 3;
    constexpr uint64_t kWeakest = 255;
    const size_t dot = text.find('.');
    const std::string_view digits = dot == text.npos ? std::string_view() : slice(text, dot + 1);
    if (!are_digits(digits) || digits.size() > kMostDigits)
        return false;
    const uint64_t level = decimal_number(digits);
    for (size_t i = 0; i < kSources; ++i) {
        if (name_of(static_cast<Source>(i)) != slice(text, 0, dot))
            continue;
        rank = {static_cast<Source>(i), static_cast<uint8_t>(std::min(level + 1, kWeakest))};
        return true;
    }
    return false;
}

// One setting as it travels. Its capacities are those of what can have been added in the first place.
struct Record {
    FixedText<32> rank;
    FixedText<64> key;
    FixedText<64> gpu;
    // A value or an origin may be a path.
    FixedText<4200> value;
    FixedText<4300> origin;
};

bool take_record(std::string_view text, Record& record) {
    if (!take_field(text, record.rank))
        return false;
    if (!take_field(text, record.key))
        return false;
    if (!take_field(text, record.gpu))
        return false;
    if (!take_field(text, record.value))
        return false;
    return take_field(text, record.origin) && text.empty();
}

// Values are checked again by Settings::add: the variable may have come from anywhere.
bool add_record(Settings& settings, std::string_view text, HandOverPart part, Reason& why) {
    Record record;
    why.assign("not as this version of cuslice run writes it");
    if (!take_record(text, record))
        return false;
    std::string_view key = record.key.view();
    NewEntry entry;
    entry.ceiling = starts_with(key, kCeiling);
    if (entry.ceiling)
        key = slice(key, kCeiling.size());
    const KeyTraits* traits = find_key(key);
    if (traits == nullptr || !parse_rank(record.rank, entry.rank))
        return false;
    if (!parse_gpu_selector(record.gpu, entry.selector, why))
        return false;
    const Source source = entry.rank.source;
    const bool of_file = source == Source::user_file || source == Source::system_file;
    if (of_file && part == HandOverPart::without_files)
        return true;
    entry.key = traits->key;
    entry.value = record.value.view();
    entry.origin = record.origin.view();
    return settings.add(entry, why);
}

}  // namespace

size_t write_handover(const Settings& settings, std::span<char> buffer) {
    Writer writer(buffer);
    writer.put_plain(kVersion);
    for (const Entry& entry : settings.entries()) {
        if (!travels(settings, entry))
            continue;
        writer.put(';');
        writer.put_plain(name_of(entry.rank.source));
        writer.put('.');
        FixedText<8> level;
        writer.put_plain(level.append(*level_of(settings, entry)));
        writer.put(' ');
        if (entry.ceiling)
            writer.put_plain(kCeiling);
        writer.put_plain(traits_of(entry.key).name);
        for (const std::string_view field : {entry.selector.text, entry.value, entry.origin}) {
            writer.put(' ');
            writer.put_field(field);
        }
    }
    return writer.finish();
}

bool read_handover(Settings& settings, std::string_view text, HandOverPart part, ConfigError& error) {
    bool more = true;
    const std::string_view version = take_item(text, ';', more);
    if (version != kVersion) {
        return error.set(kHandOver, version,
                         "not as this version of cuslice run writes it: unset it, or use one version of cuslice");
    }
    while (!text.empty()) {
        const std::string_view record = take_item(text, ';', more);
        Reason why;
        if (!add_record(settings, record, part, why))
            return error.set(kHandOver, record, why);
    }
    return true;
}

}  // namespace cuslice
