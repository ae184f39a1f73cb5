#include "config/handover.h"

namespace cuslice {
namespace {

constexpr std::string_view kVersion = "1";
constexpr std::string_view kCeiling = "ceiling.";
constexpr std::size_t kSources = static_cast<std::size_t>(Source::other_tools) + 1;

// Counts on past the end of the buffer, so that one comparison at the end tells whether all of it fitted.
class Writer {
  public:
    explicit Writer(std::span<char> buffer) : buffer_(buffer) {}

    void put(char character) {
        if (size_ < buffer_.size()) buffer_[size_] = character;
        ++size_;
    }
    void put_plain(std::string_view text) {
        for (const char character : text) put(character);
    }
    void put_field(std::string_view text) {
        constexpr char kHex[] = "0123456789ABCDEF";
        for (const char character : text) {
            const auto byte = static_cast<unsigned char>(character);
            if (byte > 0x20 && byte != 0x7f && byte != ';' && byte != '%') {
                put(character);
                continue;
            }
            put('%');
            put(kHex[byte >> 4]);
            put(kHex[byte & 15]);
        }
    }
    /// The length without the NUL that it adds; 0 if something did not fit.
    std::size_t finish() {
        put('\0');
        return size_ <= buffer_.size() ? size_ - 1 : 0;
    }

  private:
    std::span<char> buffer_;
    std::size_t size_ = 0;
};

// The limits of outer jobs hold beside each other: of three at most, so that depth does not fill the environment. They
// are the nearest and the two outermost, whose accounts a process joins in any case. Counted anew from 0.
std::optional<std::uint8_t> level_on_the_way(const Settings& settings, std::uint8_t level) {
    constexpr int kAll = 3;
    bool known[256] = {};
    for (const Entry& entry : settings.entries())
        if (entry.rank.source == Source::outer_job) known[entry.rank.level] = true;
    int nearer = 0, farther = 0;
    for (int other = 0; other < 256; ++other) {
        nearer += known[other] && other < level;
        farther += known[other] && other > level;
    }
    if (nearer != 0 && farther > kAll - 2) return std::nullopt;
    const int most = kAll - 1 - farther;
    return static_cast<std::uint8_t>(nearer == 0 || nearer < most ? nearer : most);
}

// False if the other side finds the entry by itself or would never use it.
bool travels(const Settings& settings, const Entry& entry) {
    if (entry.rank.source >= Source::other_tools) return false;
    switch (entry.key) {
        case Key::fake:
        case Key::fake_kernels:
        case Key::fake_machine:
        case Key::config:
            return false;
        default:
            break;
    }
    // An empty list is a choice that the launcher has made already; no other value is empty.
    if (entry.value.empty()) return false;
    if (entry.rank.source == Source::outer_job) return level_on_the_way(settings, entry.rank.level).has_value();
    for (const Entry& other : settings.entries()) {
        const bool same_question = other.key == entry.key || (is_amount(other.key) && is_amount(entry.key));
        if (same_question && other.ceiling == entry.ceiling && other.rank < entry.rank &&
            other.selector.same_as(entry.selector)) {
            return false;
        }
    }
    return true;
}

int hex_value(char digit) {
    if (is_digit(digit)) return digit - '0';
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

// Takes one field off the front of a record and undoes the %XX.
template <std::size_t Capacity>
bool take_field(std::string_view& record, FixedText<Capacity>& field) {
    field.clear();
    std::size_t at = 0;
    for (; at < record.size() && record[at] != ' '; ++at) {
        if (record[at] != '%') {
            field.append(record[at]);
            continue;
        }
        if (record.size() - at < 3) return false;
        const int high = hex_value(record[at + 1]);
        const int low = hex_value(record[at + 2]);
        if (high < 0 || low < 0) return false;
        field.append(static_cast<char>(high * 16 + low));
        at += 2;
    }
    record = slice(record, at + 1);
    return at != 0 && !field.cut();
}

// Everything handed on was nearer to somebody else: one level weaker than what this process says itself.
bool parse_rank(std::string_view text, Rank& rank) {
    const std::size_t dot = text.find('.');
    if (dot == text.npos || dot + 1 == text.size() || text.size() - dot > 4) return false;
    unsigned level = 0;
    for (const char digit : slice(text, dot + 1)) {
        if (!is_digit(digit)) return false;
        level = level * 10 + static_cast<unsigned>(digit - '0');
    }
    for (std::size_t i = 0; i < kSources; ++i) {
        if (name_of(static_cast<Source>(i)) != slice(text, 0, dot)) continue;
        constexpr unsigned kWeakest = 255;
        rank = {static_cast<Source>(i), static_cast<std::uint8_t>(level < kWeakest ? level + 1 : kWeakest)};
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

// Values are checked again by Settings::add: the variable may have come from anywhere.
bool add_record(Settings& settings, std::string_view text, HandOverPart part, Reason& why) {
    Record record;
    why.assign("not as this version of cuslice run writes it");
    if (!take_field(text, record.rank) || !take_field(text, record.key) || !take_field(text, record.gpu) ||
        !take_field(text, record.value) || !take_field(text, record.origin) || !text.empty()) {
        return false;
    }
    std::string_view key = record.key.view();
    NewEntry entry;
    entry.ceiling = starts_with(key, kCeiling);
    if (entry.ceiling) key = slice(key, kCeiling.size());
    const KeyTraits* traits = find_key(key);
    if (traits == nullptr || !parse_rank(record.rank.view(), entry.rank)) return false;
    if (!parse_gpu_selector(record.gpu.view(), entry.selector, why)) return false;
    const Source source = entry.rank.source;
    if (part == HandOverPart::without_files && (source == Source::user_file || source == Source::system_file))
        return true;
    entry.key = traits->key;
    entry.value = record.value.view();
    entry.origin = record.origin.view();
    return settings.add(entry, why);
}

}  // namespace

std::size_t write_handover(const Settings& settings, std::span<char> buffer) {
    Writer writer(buffer);
    writer.put_plain(kVersion);
    for (const Entry& entry : settings.entries()) {
        if (!travels(settings, entry)) continue;
        writer.put(';');
        writer.put_plain(name_of(entry.rank.source));
        writer.put('.');
        FixedText<8> level;
        const auto of_outer = entry.rank.source == Source::outer_job ? level_on_the_way(settings, entry.rank.level)
                                                                     : std::optional(entry.rank.level);
        writer.put_plain(level.append_number(*of_outer).view());
        writer.put(' ');
        if (entry.ceiling) writer.put_plain(kCeiling);
        writer.put_plain(traits_of(entry.key).name);
        for (const std::string_view field : {entry.selector.text, entry.value, entry.origin}) {
            writer.put(' ');
            writer.put_field(field);
        }
    }
    return writer.finish();
}

bool read_handover(Settings& settings, std::string_view text, HandOverPart part, ConfigError& error) {
    const std::size_t first = text.find(';');
    if (slice(text, 0, first) != kVersion) {
        return error.set(kHandOver, slice(text, 0, first),
                         "not as this version of cuslice run writes it: unset it, or use one version of cuslice");
    }
    text = first == text.npos ? std::string_view() : slice(text, first + 1);
    while (!text.empty()) {
        const std::size_t end = text.find(';');
        const std::string_view record = slice(text, 0, end);
        text = end == text.npos ? std::string_view() : slice(text, end + 1);
        Reason why;
        if (!add_record(settings, record, part, why)) return error.set(kHandOver, record, why.view());
    }
    return true;
}

}  // namespace cuslice
