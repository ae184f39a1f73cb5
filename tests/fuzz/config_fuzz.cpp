// SPDX-License-Identifier: Apache-2.0
// Every reader of settings, with anything in place of what it reads. The first byte says which one; whatever is taken
// must hold together: the number that is written, never more than the GPU has, and the same after it was handed on.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "config/fraction.h"
#include "config/handover.h"
#include "config/load.h"
#include "config/resolve.h"
#include "config/size.h"
#include "config/split/identity.h"
#include "config/split/plan.h"
#include "config/toml/reader.h"
#include "config/visible.h"

using namespace cuslice;

namespace {

constexpr uint64_t kTotal = 2002ull << 20;

void expect(bool holds) {
    if (!holds)
        std::abort();
}

GpuIdentity gpu() {
    GpuIdentity identity;
    identity.index = 0;
    std::string("GPU-5f1c0d1e-0000-1111-2222-333344445555").copy(identity.uuid, sizeof identity.uuid - 1);
    std::string("0000:81:00.0").copy(identity.pci, sizeof identity.pci - 1);
    return identity;
}

// The bytes that a size stands for, by the C library's reader of numbers. `unit`: from its letter on.
long double bytes_of(long double number, std::string_view unit) {
    const int power = static_cast<int>(std::string_view("kmgt").find(to_lower(unit[0]))) + 1;
    const bool of_thousands = unit.size() == 2 && to_lower(unit[1]) == 'b';
    return number * std::pow(of_thousands ? 1000.0L : 1024.0L, static_cast<long double>(power));
}

void check_size(const std::string& text) {
    uint64_t bytes = 0;
    Reason why;
    if (!parse_size(text, bytes, why))
        return;
    char* unit = nullptr;
    const long double number = std::strtold(text.c_str(), &unit);
    const long double exact = bytes_of(number, unit);
    expect(std::fabs(static_cast<long double>(bytes) - exact) <= 1 + exact / 1e15L);
}

void check_fraction(const std::string& text) {
    Fraction fraction;
    Reason why;
    if (!parse_fraction(text, fraction, why))
        return;
    const long double percent = text.back() == '%' ? 100 : 1;
    const long double exact = std::strtold(text.c_str(), nullptr) / percent;
    const long double taken = static_cast<long double>(fraction.parts()) / Fraction::kWhole;
    expect(exact <= 1 && std::fabs(taken - exact) <= 1.5e-9L);
}

// A list of GPUs, as CUDA and `gpus` read it: places that are there, each once, and nothing that changes when it is
// read again.
void read_visible(std::string_view text) {
    GpuIdentity gpus[3];
    for (int i = 0; i < 3; ++i) {
        gpus[i].index = i;
        std::string("GPU-5f1c0d1" + std::to_string(i)).copy(gpus[i].uuid, sizeof gpus[i].uuid - 1);
    }
    const auto check = [](const GpuPlaces& places) {
        unsigned seen = 0;
        for (const uint8_t place : places.view()) {
            expect(place < 3 && !(seen & 1u << place));
            seen |= 1u << place;
        }
    };
    check(read_cuda_list(text, gpus));
    Reason why;
    ConfigError error;
    GpuPlaces chosen;
    if (text != kAnyGpu && parse_gpus(text, why))
        if (resolve_gpus({"--gpus", text, gpus, read_cuda_list({}, gpus), {}}, chosen, error))
            check(chosen);
    VisibleText list, again;
    if (count_in_chosen("GPU-5f1c0d12,GPU-5f1c0d10", text, list))
        expect(!count_in_chosen("GPU-5f1c0d12,GPU-5f1c0d10", list.view(), again));
}

// Checks how any settings split three GPUs: each partition fits into what is left of its GPU's slice, and so do all of
// them together unless oversubscription is set; every UUID is unique, and every GPU is there.
void split(const Settings& settings) {
    GpuIdentity gpus[3];
    uint64_t totals[3], left[3];
    for (int i = 0; i < 3; ++i) {
        gpus[i] = gpu();
        gpus[i].index = i;
        gpus[i].uuid[4] = static_cast<char>('5' + i);
        gpus[i].pci[5] = static_cast<char>('7' + i);
        totals[i] = kTotal << i;
        left[i] = amount_for(settings, gpus[i], totals[i]).bytes;
    }
    VirtualParts parts;
    ConfigError error;
    if (!plan_split(settings, gpus, totals, parts, error))
        return expect(!error.reason.empty());
    const Entry* over = find(settings, Key::oversubscribe);
    std::vector<std::string> names;
    unsigned there = 0;
    for (const VirtualPart& part : parts.view()) {
        const GpuIdentity identity = identity_of_virtual(part, gpus);
        expect(std::find(names.begin(), names.end(), identity.uuid) == names.end());
        names.emplace_back(identity.uuid);
        there |= 1u << part.gpu;
        if (!part.split)
            continue;
        expect(part.bytes >= kMinPart && part.part < part.parts && part.bytes <= left[part.gpu]);
        expect(!part.priority || std::abs(*part.priority) <= static_cast<int>(kFarthestPriority));
        if (over == nullptr || over->number == 0)
            left[part.gpu] -= part.bytes;
    }
    expect(there == 7);
    expect(splits_any(settings) || names.size() == 3);
}

void read(unsigned which, std::string_view text, Settings& settings) {
    ConfigError error;
    switch (which % 6) {
        case 0: {
            const auto keys = all_keys();
            const KeyTraits& traits = keys[(which / 6) % keys.size()];
            check_size(std::string(text));
            check_fraction(std::string(text));
            add_list(settings, traits.key, {Source::flag, 0}, "--option", text, error);
            return;
        }
        case 1:
            read_handover(settings, text, HandOverPart::all, error);
            return;
        case 2:
            load_file_text(settings, text, "/cuslice.toml", Source::system_file, cuslice_toml_parse, error);
            return;
        case 3:
        case 4: {
            // Lines of an environment; no NUL in any of them.
            std::vector<std::string> lines;
            for (size_t at = 0; at < text.size();) {
                const size_t end = std::min(text.find('\0', at), text.size());
                lines.emplace_back(text.substr(at, end - at));
                at = end + 1;
            }
            std::vector<const char*> pointers;
            for (const std::string& line : lines)
                pointers.push_back(line.c_str());
            pointers.push_back(nullptr);
            if (which % 6 == 3)
                load_environment(settings, pointers.data(), error);
            else
                load_other_tools(settings, pointers.data(), error);
            return;
        }
        case 5:
            return read_visible(text);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0)
        return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    static Settings* settings = nullptr;
    delete settings;
    settings = new Settings;
    read(data[0], text, *settings);

    const Amount amount = amount_for(*settings, gpu(), kTotal);
    expect(amount.bytes <= kTotal);
    ConfigError error;
    const GpuIdentity here = gpu();
    split(*settings);
    if (!check_against(*settings, {&here, 1}, true, error))
        return 0;

    static char handed[512 * 1024];
    const size_t length = write_handover(*settings, handed);
    if (length == 0)
        return 0;
    bool others = false;  // other tools' variables are left for the next to read
    for (const Entry& entry : settings->entries())
        others = others || entry.rank.source == Source::other_tools;
    Settings again;
    expect(read_handover(again, {handed, length}, HandOverPart::all, error));
    if (!others)
        expect(amount_for(again, here, kTotal).bytes == amount.bytes);
    return 0;
}
