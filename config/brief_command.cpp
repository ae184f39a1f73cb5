// SPDX-License-Identifier: Apache-2.0
#include "config/brief_command.h"

#include <algorithm>
#include <span>

namespace cuslice {
namespace {

constexpr std::string_view kInterpreters[] = {"sh", "bash", "dash", "zsh", "perl", "ruby", "node", "julia"};
// Python's options: behind these is a module's name, or code, and no script; behind those a value of theirs.
constexpr std::string_view kInsteadOfScript[] = {"-m", "-c"};
constexpr std::string_view kWithValue[] = {"-W", "-X"};

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_python(std::string_view program) { return starts_with(program, "python") || starts_with(program, "pypy"); }

// A program that runs the file that its first argument names.
bool is_interpreter(std::string_view program) { return is_python(program) || is_one_of(program, kInterpreters); }

bool is_option(std::string_view word) { return starts_with(word, "-"); }

}  // namespace

std::string_view CommandWords::from(size_t number) const {
    std::string_view left = bytes_;
    for (; number != 0 && !left.empty(); number--) {
        const size_t end = left.find('\0');
        left = end == left.npos ? std::string_view() : slice(left, end + 1);
    }
    return left;
}

std::string_view CommandWords::operator[](size_t number) const {
    const std::string_view left = from(number);
    return slice(left, 0, left.find('\0'));
}

bool CommandWords::has(size_t number) const { return !from(number).empty(); }

std::string_view CommandWords::program() const {
    const std::string_view word = (*this)[0];
    return word.find(' ') == word.npos ? file_name_of(word) : word;
}

// The number of the first word that is no option, or that stands in a script's place.
size_t CommandWords::behind_options() const {
    const bool python = is_python(program());
    size_t number = 1;
    std::string_view word = (*this)[number];
    while (is_option(word) && !is_one_of(word, kInsteadOfScript)) {
        number += python && is_one_of(word, kWithValue) ? 2 : 1;
        word = (*this)[number];
    }
    return number;
}

std::optional<size_t> CommandWords::script() const {
    const size_t number = behind_options();
    const bool there = is_interpreter(program()) && has(number) && !is_one_of((*this)[number], kInsteadOfScript);
    return there ? std::optional(number) : std::nullopt;
}

BriefCommand brief_command(const CommandWords& words) {
    BriefCommand text(words.program());
    const size_t number = words.behind_options();
    if (!is_interpreter(words.program()) || !words.has(number))
        return text;
    text.append(' ', file_name_of(words[number]));
    if (words[number] == "-m" && words.has(number + 1))
        text.append(' ', words[number + 1]);
    return text;
}

}  // namespace cuslice
