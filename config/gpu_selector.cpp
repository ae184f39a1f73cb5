// SPDX-License-Identifier: Apache-2.0
#include "config/gpu_selector.h"

#include <algorithm>
#include <cstring>

#include "config/number.h"

namespace cuslice {
namespace {

// Compared as numbers: "0000:81:00.0", "00000000:81:00.0" and "81:00.0" are written differently and are the same.
struct PciId {
    uint32_t domain = 0;
    uint32_t bus = 0;
    uint32_t device = 0;
    uint32_t function = 0;

    bool operator==(const PciId&) const = default;
};

// Takes hex digits up to `end`, or all, off the front of `text`. False unless there are from `least` to `most` of them.
bool take_hex(std::string_view& text, char end, size_t least, size_t most, uint32_t& value) {
    const size_t length = std::min(text.find(end), text.size());
    if (length < least || length > most)
        return false;
    value = 0;
    for (const char character : slice(text, 0, length)) {
        const unsigned digit = digit_value(character);
        if (digit >= 16)
            return false;
        value = value * 16 + digit;
    }
    text = slice(text, length + 1);
    return true;
}

bool parse_pci(std::string_view text, PciId& id) {
    // lspci leaves the domain out where there is only one.
    const bool has_domain = text.find(':') != text.rfind(':');
    if (has_domain && !take_hex(text, ':', 4, 8, id.domain))
        return false;
    if (!take_hex(text, ':', 2, 2, id.bus))
        return false;
    if (!take_hex(text, '.', 2, 2, id.device))
        return false;
    return take_hex(text, '\0', 1, 1, id.function);
}

bool same_pci(std::string_view left, std::string_view right) {
    PciId first;
    PciId second;
    return parse_pci(left, first) && parse_pci(right, second) && first == second;
}

// The prefix is what tells a UUID from an index; without it GPUs could not be named by short prefixes.
bool has_uuid_start(std::string_view text) {
    const std::string_view start = slice(text, 0, 4);
    return equal_ignoring_case(start, "GPU-") || equal_ignoring_case(start, "MIG-");
}

// A slash stands before the instances of a MIG device of older drivers: MIG-GPU-<uuid>/<instance>/<instance>.
bool is_uuid_character(char character) { return is_hex_digit(character) || character == '-' || character == '/'; }

bool is_uuid_prefix(std::string_view text) {
    constexpr size_t kUuidRoom = sizeof(GpuIdentity::uuid);
    if (!has_uuid_start(text))
        return false;
    if (text.size() == 4 || text.size() >= kUuidRoom)
        return false;
    text = slice(text, 4);
    if (has_uuid_start(text))
        text = slice(text, 4);
    return std::ranges::all_of(text, is_uuid_character);
}

// No leading zeros: 010 is eight for some readers.
bool parse_index(std::string_view text, int& index) {
    const bool leading_zero = text.size() > 1 && text[0] == '0';
    if (!are_digits(text) || text.size() > 4 || leading_zero)
        return false;
    index = static_cast<int>(decimal_number(text));
    return true;
}

}  // namespace

bool is_mig_uuid(std::string_view uuid) { return equal_ignoring_case(slice(uuid, 0, 4), "MIG-"); }

void write_uuid(const void* bytes, std::string_view name, char (&text)[sizeof(GpuIdentity::uuid)]) {
    spell_uuid(name.find(" MIG ") != name.npos ? "MIG-" : "GPU-", bytes, text);
}

void spell_uuid(std::string_view kind, const void* bytes, char (&text)[sizeof(GpuIdentity::uuid)]) {
    constexpr char kHex[] = "0123456789abcdef";
    constexpr unsigned kDashesBefore = 1u << 4 | 1u << 6 | 1u << 8 | 1u << 10;  // these bytes
    FixedText<sizeof text> uuid(kind);
    for (unsigned i = 0; i < 16; ++i) {
        const unsigned byte = static_cast<const unsigned char*>(bytes)[i];
        if ((kDashesBefore >> i & 1) != 0)
            uuid.append('-');
        uuid.append(kHex[byte >> 4]);
        uuid.append(kHex[byte & 15]);
    }
    std::memcpy(text, uuid.c_str(), uuid.view().size() + 1);
}

bool GpuSelector::matches(const GpuIdentity& gpu) const {
    switch (kind) {
        case Kind::every:
            return true;
        case Kind::index:
            return gpu.index == index;
        case Kind::uuid:
            return equal_ignoring_case(slice(gpu.uuid, 0, text.size()), text);
        case Kind::pci:
            return same_pci(text, gpu.pci);
    }
    return false;
}

bool GpuSelector::same_as(const GpuSelector& other) const {
    if (kind != other.kind)
        return false;
    if (kind == Kind::index)
        return index == other.index;
    return kind == Kind::pci ? same_pci(text, other.text) : equal_ignoring_case(text, other.text);
}

bool parse_gpu_selector(std::string_view text, GpuSelector& selector, Reason& why) {
    PciId unused;
    int index = -1;
    if (text == "*") {
        selector = {GpuSelector::Kind::every, -1, text};
    } else if (parse_index(text, index)) {
        selector = {GpuSelector::Kind::index, index, text};
    } else if (is_uuid_prefix(text)) {
        selector = {GpuSelector::Kind::uuid, -1, text};
    } else if (parse_pci(text, unused)) {
        selector = {GpuSelector::Kind::pci, -1, text};
    } else {
        why.assign("'", slice(text, 0, 64), "' names no GPU: use its index (0), the start of its UUID (GPU-5f), ");
        why.append("its PCI id (0000:81:00.0) or * for every GPU");
        return false;
    }
    return true;
}

void append_gpu(const GpuIdentity& gpu, std::string_view separator, Reason& why) {
    why.append(separator);
    if (gpu.index >= 0)
        why.append(gpu.index, " ");
    why.append(gpu.uuid);
}

void explain_matches(const GpuSelector& selector, std::span<const GpuIdentity> gpus, int matches, Reason& why) {
    why.assign("'", selector.text, "' names ");
    if (matches == 0) {
        const bool one = gpus.size() == 1;
        why.append("no GPU that is here; there ", one ? "is " : "are ", gpus.size(), one ? " GPU" : " GPUs");
    } else {
        why.append(matches, " GPUs; write more of its UUID");
    }
    const char* separator = ": ";
    for (const GpuIdentity& gpu : gpus) {
        if (matches != 0 && !selector.matches(gpu))
            continue;
        append_gpu(gpu, separator, why);
        separator = ", ";
    }
}

}  // namespace cuslice
