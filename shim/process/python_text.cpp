// SPDX-License-Identifier: Apache-2.0
#include "shim/process/python_text.h"

#include <algorithm>
#include <cstring>

#include "policy/base/own_memory.h"

namespace cuslice {

namespace {

// The head of a text object of CPython 3.8 to 3.13, and mostly all of its characters.
using Beginning = OwnMemory<320>;
constexpr size_t kTextType = 8, kTextLength = 16, kTextState = 32;

// The state's bits.
constexpr uint32_t character_bytes(uint32_t state) { return state >> 2 & 7; }
constexpr bool is_compact(uint32_t state) { return state >> 5 & 1; }  // the characters lie behind the head
constexpr bool is_ascii(uint32_t state) { return state >> 6 & 1; }

constexpr uint32_t kNoCharacter = 0xd800;  // and what follows it up to 0xdfff

void append_character(PythonText& text, uint32_t character) {
    constexpr uint32_t kEnds[] = {0x80, 0x800, 0x10000};
    if (character >> 11 == kNoCharacter >> 11)
        character = '?';
    const auto more = static_cast<size_t>(std::upper_bound(kEnds, kEnds + 3, character) - kEnds);
    const uint32_t mark = more != 0 ? 0xf00u >> (more + 1) & 0xff : 0;
    text.append(static_cast<char>(mark | character >> 6 * more));
    for (size_t left = more; left-- != 0;)
        text.append(static_cast<char>(0x80 | (character >> 6 * left & 63)));
}

}  // namespace

PythonText read_python_text(uintptr_t object, uintptr_t type, const PythonTextLayout& layout) {
    PythonText text;
    const Beginning head(object);
    const auto state = head.at<uint32_t>(kTextState);
    if (head.at<uintptr_t>(kTextType) != type || !is_compact(state))
        return text;
    const auto length = head.at<uint64_t>(kTextLength);
    const size_t size = std::min(character_bytes(state), 4u);
    const size_t count = std::min<uint64_t>(length, kMostOfPythonText);
    const uint64_t begin = (is_ascii(state) ? layout.ascii : layout.wide) + (length - count) * size;
    unsigned char elsewhere[4 * kMostOfPythonText];
    const unsigned char* characters = elsewhere;
    if (head.has(begin, count * size))
        characters = head.bytes(begin);
    else if (read_own_memory(object + begin, elsewhere, count * size) != count * size)
        return text;
    for (size_t at = 0; at < count; at++) {
        uint32_t character = 0;
        std::memcpy(&character, characters + at * size, size);
        append_character(text, character);
    }
    return text;
}

std::string_view without_packages_folder(std::string_view path) {
    constexpr std::string_view kFolders[] = {"/site-packages/", "/dist-packages/"};
    for (const std::string_view folder : kFolders)
        if (const size_t at = path.rfind(folder); at != path.npos)
            return slice(path, at + folder.size());
    constexpr std::string_view kLibrary = "lib/", kPython = "lib/python3.";
    const size_t at = path.rfind(kPython);
    return at == path.npos ? path : slice(path, at + kLibrary.size());
}

}  // namespace cuslice
