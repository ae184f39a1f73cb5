// SPDX-License-Identifier: Apache-2.0
#include "cli/text/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace cuslice::cli {
namespace {

std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// 0: it isn't set, or says nothing that a table could be drawn in.
size_t columns_asked_for() {
    constexpr size_t kLeast = 20, kMost = 100'000;
    const std::string text = variable("COLUMNS");
    size_t columns = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), columns);
    const bool whole = failure == std::errc() && end == text.data() + text.size();
    return whole && columns >= kLeast && columns <= kMost ? columns : 0;
}

}  // namespace

bool locale_is_utf8() {
    // The first that is set and not empty decides. Not setlocale(): where a locale isn't installed, as in most
    // containers, it says nothing about the terminal.
    std::string name = variable("LC_ALL");
    if (name.empty())
        name = variable("LC_CTYPE");
    if (name.empty())
        name = variable("LANG");
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? c - 32 : c; });
    return name.find("UTF-8") != name.npos || name.find("UTF8") != name.npos;
}

bool terminal_has_colours() {
    if (!variable("NO_COLOR").empty())
        return false;
    const std::string kind = variable("TERM");
    if (kind == "dumb")
        return false;
    if (!variable("COLORTERM").empty())
        return true;
    if (kind.ends_with("-mono") || kind.ends_with("-m"))
        return false;
    constexpr std::string_view kWithColours[] = {"xterm",     "screen", "tmux", "rxvt",    "linux", "konsole",
                                                 "alacritty", "kitty",  "foot", "wezterm", "vte",   "gnome",
                                                 "putty",     "cygwin", "ansi", "st-"};
    for (const std::string_view known : kWithColours)
        if (kind.starts_with(known))
            return true;
    return kind.find("color") != kind.npos;
}

size_t output_columns() {
    if (const size_t asked = columns_asked_for(); asked != 0)
        return asked;
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
    return known ? size.ws_col : kTerminal;
}

TableStyle style_of_output(size_t keys, bool whole) {
    TableStyle style;
    style.keys = keys;
    style.width = whole ? kUnlimited : output_columns();
    style.colours = ::isatty(STDOUT_FILENO) != 0 && terminal_has_colours();
    style.utf8 = locale_is_utf8();
    return style;
}

}  // namespace cuslice::cli
