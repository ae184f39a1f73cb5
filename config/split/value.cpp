// SPDX-License-Identifier: Apache-2.0
#include "config/split/value.h"

#include <algorithm>
#include <span>

#include "config/fraction.h"
#include "config/plus_context.h"
#include "config/refuse.h"
#include "config/size.h"

namespace cuslice {
namespace {

constexpr unsigned kMaxPlace = 9999;
constexpr std::string_view kRest = "rest";

// Stays at `most` + 1 where it is more.
unsigned count_of(std::string_view digits, unsigned most) {
    unsigned count = 0;
    for (const char digit : digits)
        count = std::min(count * 10 + static_cast<unsigned>(digit - '0'), most + 1);
    return count;
}

bool is_fraction(std::string_view text) {
    Fraction unused;
    Reason why;
    const bool looks_so = text.find('.') != text.npos || text.find('%') != text.npos;
    return looks_so && parse_fraction(text, unused, why);
}

bool read_equal(std::string_view text, unsigned& equal, Reason& why) {
    constexpr auto kMax = static_cast<unsigned>(kMaxParts);
    equal = count_of(text, kMax);
    if (equal == 0)
        return refuse("0 partitions leave no GPU: a number from 1, which leaves it whole, to 64", why);
    if (equal <= kMax)
        return true;
    why.assign(text, " partitions? at most 64; if a size is meant, it needs its unit, as ", text);
    why.append("MiB");
    return false;
}

bool read_place(std::string_view text, unsigned& place, Reason& why) {
    if (!are_digits(text))
        return refuse("a number is needed after the @, the partition's place in the order, as 1GiB@1+2GiB@0", why);
    place = count_of(text, kMaxPlace);
    return place <= kMaxPlace || refuse("a place is a number up to 9999", why);
}

bool read_number(std::string_view text, unsigned& number, Reason& why) {
    constexpr auto kLast = static_cast<unsigned>(kMaxParts) - 1;
    number = are_digits(text) ? count_of(text, kLast) : kNoNumber;
    return number <= kLast ||
           refuse("a number from 0 to 63 is needed after the #, of which the partition's identity is made, as rest#3",
                  why);
}

// A text, divided at a mark.
struct Halves {
    std::string_view before;
    std::optional<std::string_view> behind;  // none without the mark
};

Halves halves_of(std::string_view text, char mark) {
    const size_t at = text.find(mark);
    if (at == text.npos)
        return {text, std::nullopt};
    return {slice(text, 0, at), slice(text, at + 1)};
}

bool read_priority(std::string_view text, std::optional<int>& priority, Reason& why) {
    const bool urgent = starts_with(text, "-");
    const std::string_view digits = slice(text, urgent ? 1 : 0);
    if (text.find('@') != text.npos)
        return refuse("a partition's place comes before its priority, as 1GiB@1:-1", why);
    if (text.find('#') != text.npos)
        return refuse("a partition's number comes before its priority, as 1GiB#2:-1", why);
    if (!are_digits(digits))
        return refuse(
            "a whole number is needed after the colon, the priority of the partition's streams, as 1GiB:-1+rest", why);
    const auto amount = static_cast<int>(count_of(digits, kFarthestPriority));
    priority = urgent ? -amount : amount;
    return amount <= static_cast<int>(kFarthestPriority) ||
           refuse("a priority is a whole number from -32 to 32; most GPUs have priorities from 0 to -5", why);
}

// Number, place and priority, which stand behind a size. They are taken off `text`.
bool read_marks(std::string_view& text, WrittenPart& part, Reason& why) {
    const Halves priority = halves_of(text, ':');
    if (priority.behind && !read_priority(*priority.behind, part.priority, why))
        return false;
    const Halves place = halves_of(priority.before, '@');
    const bool number_behind_place = place.behind && place.behind->find('#') != text.npos;
    if (number_behind_place)
        return refuse("a partition's number comes before its place, as 1GiB#2@1", why);
    if (place.behind && !read_place(*place.behind, part.place, why))
        return false;
    const Halves number = halves_of(place.before, '#');
    text = number.before;
    return !number.behind || read_number(*number.behind, part.number, why);
}

bool read_part(std::string_view size, WrittenPart& part, Reason& why) {
    if (!read_marks(size, part, why))
        return false;
    part.rest = size == kRest;
    if (part.rest)
        return true;
    if (size.empty())
        return refuse("an empty partition: a size is needed on both sides of a plus, as 1GiB+rest", why);
    if (is_fraction(size)) {
        why.assign(size, " is a fraction: a partition is a size, as 1GiB, or the rest; a number alone, as 4, is so ");
        why.append("many equal partitions");
        return false;
    }
    if (!parse_size(size, part.bytes, why)) {
        if (!is_digit(size[0]) && size[0] != '-')
            why.append("; or rest, or a number of equal partitions");
        return false;
    }
    if (part.bytes >= kMinPart)
        return true;
    why.assign(size, " is too little for a GPU: a partition has at least 64MiB");
    return false;
}

// True if a part written earlier has this number.
bool has_number(const WrittenSplit& written, unsigned number) {
    const auto parts = std::span(written.parts).first(written.count);
    return std::ranges::find(parts, number, &WrittenPart::number) != parts.end();
}

bool add_part(WrittenSplit& written, const WrittenPart& part, Reason& why) {
    if (part.rest && written.has_rest())
        return refuse("rest is there twice: one partition can have what the others leave", why);
    if (written.count == kMaxParts)
        return refuse("more than 64 partitions", why);
    const bool numbered = part.number != kNoNumber;
    if (numbered && has_number(written, part.number))
        return refuse("two partitions have the same number, and would have the same identity", why);
    written.parts[written.count++] = part;
    const WrittenPart& first = written.parts[0];
    if (numbered != (first.number != kNoNumber))
        return refuse("either each partition has a number of its own, as in 1GiB#2+2GiB#5, or none has", why);
    if ((part.place == kNoPlace) != (first.place == kNoPlace))
        return refuse("either each partition has a place in the order, as in 1GiB@1+2GiB@0, or none has", why);
    return true;
}

bool read_sizes(std::string_view text, WrittenSplit& written, Reason& why) {
    for (bool more = true; more;) {
        WrittenPart part;
        if (!read_part(take_item(text, '+', more), part, why))
            return false;
        if (!add_part(written, part, why))
            return false;
    }
    return true;
}

// Refuses a mark behind equal partitions that only sizes may have.
bool refuse_behind_equal(char mark, Reason& why) {
    if (mark == '#')
        return refuse("equal partitions are numbered as they come; sizes may have numbers, as 1GiB#2+2GiB#5", why);
    if (mark == '@')
        return refuse("equal partitions have no places in an order: they are all alike; sizes have, as 1GiB@1+2GiB@0",
                      why);
    return refuse("equal partitions have no priorities: they are all alike; sizes have, as 1GiB:-1+2GiB:0", why);
}

}  // namespace

bool read_split(std::string_view text, WrittenSplit& written, Reason& why) {
    if (text.empty())
        return refuse("empty: a number of equal partitions is needed, as 4, or sizes, as 1GiB+2GiB or 1GiB+rest", why);
    written.plus_context = has_plus_context(text);
    text = without_plus_context(text);
    if (are_digits(text))
        return read_equal(text, written.equal, why);
    const size_t mark = text.find_first_of("#@:");
    const bool one = mark != text.npos && text.find('+') == text.npos;
    if (one && are_digits(slice(text, 0, mark)))
        return refuse_behind_equal(text[mark], why);
    return read_sizes(text, written, why);
}

bool parse_split(std::string_view text, uint64_t& equal, Reason& why) {
    WrittenSplit written;
    if (!read_split(text, written, why))
        return false;
    equal = written.equal;
    return true;
}

}  // namespace cuslice
