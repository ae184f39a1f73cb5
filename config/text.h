// SPDX-License-Identifier: Apache-2.0
// Text in fixed space: what the settings are kept in, since they are read inside programs whose allocator is not ours.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cuslice {

/// Text of at most Capacity - 1 bytes, always ended by a NUL. What does not fit is cut off, never written past the end.
/// Not safe for two threads at once.
template <size_t Capacity>
class FixedText {
  public:
    FixedText() = default;
    explicit FixedText(std::string_view text) { append(text); }

    /// Appends one part after the other: text, characters, and whole numbers in decimal digits.
    template <typename... Parts>
    [[gnu::always_inline]] FixedText& append(const Parts&... parts) {
        (add(parts), ...);
        return *this;
    }
    /// The same, instead of what was there. `text` may be a part of it.
    template <typename... Parts>
    [[gnu::always_inline]] FixedText& assign(std::string_view text, const Parts&... parts) {
        set(text);
        return append(parts...);
    }

    void clear() {
        size_ = 0;
        cut_ = false;
        bytes_[0] = '\0';
    }

    std::string_view view() const { return {bytes_, size_}; }
    operator std::string_view() const { return view(); }
    const char* c_str() const { return bytes_; }
    bool empty() const { return size_ == 0; }
    /// True if something did not fit.
    bool cut() const { return cut_; }

  private:
    void set(std::string_view text) {
        size_ = text.size() < Capacity - 1 ? text.size() : Capacity - 1;
        if (size_ != 0)
            std::memmove(bytes_, text.data(), size_);
        bytes_[size_] = '\0';
        cut_ = size_ != text.size();
    }
    void add(std::string_view text) {
        const size_t room = Capacity - 1 - size_;
        const size_t count = text.size() < room ? text.size() : room;
        if (count != 0)
            std::memcpy(bytes_ + size_, text.data(), count);
        cut_ = cut_ || count != text.size();
        size_ += count;
        bytes_[size_] = '\0';
    }
    template <size_t Other>
    void add(const FixedText<Other>& text) {
        add(text.view());
    }
    void add(char character) { add(std::string_view(&character, 1)); }
    template <std::integral Number>
    void add(Number number) {
        char digits[20];
        size_t first = sizeof digits;
        auto left = static_cast<uint64_t>(number);
        do {
            digits[--first] = static_cast<char>('0' + left % 10);
            left /= 10;
        } while (left != 0);
        add(std::string_view(digits + first, sizeof digits - first));
    }

    char bytes_[Capacity] = {};
    size_t size_ = 0;
    bool cut_ = false;
};

/// Why a value was refused and what would be right: the last part of an error line.
using Reason = FixedText<512>;

/// The part of `text` from `first` on, `count` bytes of it at most; empty past the end. (string_view::substr can throw,
/// which would bring libstdc++ into the host.)
constexpr std::string_view slice(std::string_view text, size_t first, size_t count = std::string_view::npos) {
    if (first >= text.size())
        return {};
    const size_t left = text.size() - first;
    return {text.data() + first, count < left ? count : left};
}

constexpr bool starts_with(std::string_view text, std::string_view start) {
    return text.size() >= start.size() && slice(text, 0, start.size()) == start;
}

constexpr bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// ASCII only, whatever the host's locale.
constexpr char to_lower(char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a') : character;
}

constexpr bool is_hex_digit(char character) {
    return is_digit(character) || (to_lower(character) >= 'a' && to_lower(character) <= 'f');
}

constexpr bool is_letter(char character) {
    const char lower = to_lower(character);
    return lower >= 'a' && lower <= 'z';
}

/// True of the characters that names of ours may have: letters, digits, '.', '_' and '-'.
constexpr bool is_name_character(char character) {
    if (is_letter(character) || is_digit(character))
        return true;
    return std::string_view("._-").find(character) != std::string_view::npos;
}

constexpr bool are_name_characters(std::string_view text) {
    for (const char character : text)
        if (!is_name_character(character))
            return false;
    return true;
}

/// True if there is a control character of ASCII in it, as a newline, which would break the one line of a message.
constexpr bool has_control_character(std::string_view text) {
    for (const char character : text)
        if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f)
            return true;
    return false;
}

/// The decimal digits that the text begins with; all of it at most.
constexpr std::string_view leading_digits(std::string_view text) {
    size_t count = 0;
    while (count < text.size() && is_digit(text[count]))
        ++count;
    return slice(text, 0, count);
}

/// True of one decimal digit or more, and nothing else.
constexpr bool are_digits(std::string_view text) { return !text.empty() && leading_digits(text).size() == text.size(); }

/// The number that one decimal digit stands for.
constexpr uint64_t value_of_digit(char digit) { return static_cast<uint64_t>(digit - '0'); }

/// The number that decimal digits write; 0 of none. As many of them as 64 bits can hold.
constexpr uint64_t decimal_number(std::string_view digits) {
    uint64_t number = 0;
    for (const char digit : digits)
        number = number * 10 + value_of_digit(digit);
    return number;
}

/// Takes the first item of a list off its front, with the `mark` that ends it. `more` says if another one follows,
/// which may be empty: a list of no characters is one empty item.
constexpr std::string_view take_item(std::string_view& list, char mark, bool& more) {
    const size_t end = list.find(mark);
    const std::string_view item = slice(list, 0, end);
    more = end != list.npos;
    list = more ? slice(list, end + 1) : std::string_view();
    return item;
}

constexpr bool equal_ignoring_case(std::string_view left, std::string_view right) {
    if (left.size() != right.size())
        return false;
    for (size_t i = 0; i < left.size(); ++i) {
        if (to_lower(left[i]) != to_lower(right[i]))
            return false;
    }
    return true;
}

/// floor(left × right / divisor) without a wider type. Needs left ≤ divisor ≤ 10^9; the result then is at most `right`.
constexpr uint64_t scale(uint64_t left, uint64_t right, uint64_t divisor) {
    return left * (right / divisor) + left * (right % divisor) / divisor;
}

/// How many letters must be added, dropped, changed or swapped with a neighbour to make one name of the other; counted
/// on the first 48 letters.
unsigned edit_distance(std::string_view left, std::string_view right);

}  // namespace cuslice
