// SPDX-License-Identifier: Apache-2.0
#include "cli/top/keys.h"

#include <algorithm>
#include <cstddef>

namespace cuslice::cli::top {
namespace {

using Wish = Keys::Wish;

struct Key {
    char byte;
    Wish wish;
};
constexpr Key kKeys[] = {{'q', Wish::quit},  {'Q', Wish::quit},    {'?', Wish::help},   {'h', Wish::help},
                         {'s', Wish::sort},  {'r', Wish::reverse}, {'/', Wish::filter}, {'t', Wish::tree},
                         {'l', Wish::limit}, {'k', Wish::up},      {'j', Wish::down},   {' ', Wish::page_down},
                         {'g', Wish::top},   {'G', Wish::bottom}};

constexpr KeyHelp kHelp[] = {{"s", "sort by the next column, r the other way round"},
                             {"/", "show only what has a text in it; Esc shows all"},
                             {"t", "fold the processes of a job, or unfold them"},
                             {"l", "change the limit of a job or a group of yours"},
                             {"↑ ↓ PgUp PgDn", "scroll, also by k, j, Space, g and G"},
                             {"? h", "this help"},
                             {"q Ctrl-C", "quit"}};

}  // namespace

Wish Keys::read(char byte) {
    if (sequence_.empty() && byte != '\x1b') {
        const auto* const key =
            std::find_if(std::begin(kKeys), std::end(kKeys), [&](Key one) { return one.byte == byte; });
        return key == std::end(kKeys) ? Wish::none : key->wish;
    }
    // An escape that begins nothing: what comes behind it is a key of its own.
    if (sequence_ == "\x1b" && byte != '[' && byte != 'O') {
        sequence_.clear();
        return read(byte);
    }
    sequence_ += byte;
    const bool ends = sequence_.size() > 2 && byte >= '@' && byte <= '~';
    if (!ends && sequence_.size() < 16)
        return Wish::none;
    const std::string whole = sequence_.substr(std::min<size_t>(sequence_.size(), 2));
    sequence_.clear();
    constexpr struct {
        std::string_view sequence;
        Wish wish;
    } kSequences[] = {{"A", Wish::up},  {"B", Wish::down}, {"5~", Wish::page_up}, {"6~", Wish::page_down},
                      {"H", Wish::top}, {"1~", Wish::top}, {"F", Wish::bottom},   {"4~", Wish::bottom}};
    for (const auto& known : kSequences)
        if (whole == known.sequence)
            return known.wish;
    return Wish::none;
}

Wish Keys::pause() {
    const bool alone = sequence_ == "\x1b";
    if (alone)
        sequence_.clear();
    return alone ? Wish::escape : Wish::none;
}

std::span<const KeyHelp> key_help() { return kHelp; }

}  // namespace cuslice::cli::top
