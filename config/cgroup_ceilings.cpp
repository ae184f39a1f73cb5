// SPDX-License-Identifier: Apache-2.0
#include "config/cgroup_ceilings.h"

#include "config/text_file.h"

namespace cuslice {
namespace {

constexpr size_t kMostOfFile = size_t{64} * 1024;
using Path = FixedText<4200>;

// The smallest so far of one GPU.
struct Region {
    FixedText<24> gpu;
    uint64_t bytes = 0;
    size_t cgroup_size = 0;  // of the path of the cgroup that says it: each is the beginning of the next
};

struct Regions {
    static constexpr size_t kMax = 64;
    Region list[kMax];
    size_t count = 0;
};

bool has_word(std::string_view text, std::string_view word) {
    while (!text.empty()) {
        const size_t end = text.find_first_of(" \n");
        if (slice(text, 0, end) == word)
            return true;
        text = end == text.npos ? std::string_view() : slice(text, end + 1);
    }
    return false;
}

// Parses a line such as "drm/0000:03:00.0/vram0 8589934592". False also for "max", which is no limit.
bool read_line(std::string_view line, std::string_view& gpu, uint64_t& bytes) {
    constexpr std::string_view kStart = "drm/";
    if (!starts_with(line, kStart))
        return false;
    line = slice(line, kStart.size());
    const size_t end = line.find('/');
    if (end == line.npos || !starts_with(slice(line, end + 1), "vram"))
        return false;
    gpu = slice(line, 0, end);
    GpuSelector selector;
    Reason unused;
    const bool by_pci = parse_gpu_selector(gpu, selector, unused) && selector.kind == GpuSelector::Kind::pci;
    if (!by_pci)
        return false;
    const size_t space = line.find(' ', end);
    const std::string_view number = slice(line, space == line.npos ? space : space + 1);
    bytes = 0;
    if (!are_digits(number) || number.size() > 19)
        return false;
    bytes = decimal_number(number);
    return true;
}

// A GPU's own, or a new one for it. Null where there is no room or nothing to lower.
Region* region_to_lower(Regions& regions, std::string_view gpu, uint64_t bytes) {
    for (size_t i = 0; i < regions.count; ++i) {
        Region& region = regions.list[i];
        if (region.gpu.view() == gpu)
            return bytes < region.bytes ? &region : nullptr;
    }
    return regions.count == Regions::kMax ? nullptr : &regions.list[regions.count++];
}

void note(Regions& regions, std::string_view gpu, uint64_t bytes, size_t cgroup_size) {
    Region* const region = region_to_lower(regions, gpu, bytes);
    if (region == nullptr)
        return;
    region->gpu.assign(gpu);
    region->bytes = bytes;
    region->cgroup_size = cgroup_size;
}

// A path that leads out of the namespace leads nowhere here: what is left is where the namespace begins.
std::string_view own_cgroup(std::string_view file) {
    constexpr std::string_view kUnified = "0::/";
    std::string_view line;
    while (take_line(file, line))
        if (starts_with(line, kUnified))
            return starts_with(line, "0::/..") ? slice(line, 3, 1) : slice(line, 3);
    return {};
}

bool add(Settings& settings, const Region& region, std::string_view cgroup, ConfigError& error) {
    FixedText<4200> origin("dmem.max of cgroup ");
    origin.append(slice(cgroup, 0, region.cgroup_size));
    FixedText<24> value;
    value.append(region.bytes);
    NewEntry entry{.key = Key::limit,
                   .ceiling = true,
                   .rank = {Source::cgroup, 0},
                   .value = value,
                   .origin = origin,
                   .number = region.bytes == 0 ? 1 : region.bytes};  // none is no limit that a GPU can have
    Reason why;
    if (parse_gpu_selector(region.gpu, entry.selector, why) && settings.add(entry, why))
        return true;
    return error.set(origin, value, why);
}

// A cgroup is the beginning of its children's paths, and the root is "/". 0 of the root.
size_t size_of_parent(std::string_view path, size_t size) {
    if (size == 1)
        return 0;
    const size_t slash = slice(path, 0, size).rfind('/');
    return slash == 0 ? 1 : slash;
}

}  // namespace

bool load_cgroup_ceilings(Settings& settings, const SystemPlaces& system, ConfigError& error) {
    Path path(system.root);
    TextFile controllers, own;
    TextFile::read(controllers, path.append("/sys/fs/cgroup/cgroup.controllers").c_str(), kMostOfFile);
    if (!has_word(controllers.view(), "dmem"))
        return true;
    path.assign(system.root);
    TextFile::read(own, path.append("/proc/self/cgroup").c_str(), kMostOfFile);
    const std::string_view cgroup = own_cgroup(own.view());
    Regions regions;
    for (size_t size = cgroup.size(); size != 0; size = size_of_parent(cgroup, size)) {
        path.assign(system.root);
        path.append("/sys/fs/cgroup", slice(cgroup, 0, size), "/dmem.max");
        TextFile file;
        if (!path.cut())
            TextFile::read(file, path.c_str(), kMostOfFile);
        std::string_view text = file.view(), line, gpu;
        uint64_t bytes = 0;
        while (take_line(text, line))
            if (read_line(line, gpu, bytes))
                note(regions, gpu, bytes, size);
    }
    for (size_t i = 0; i < regions.count; ++i)
        if (!add(settings, regions.list[i], cgroup, error))
            return false;
    return true;
}

}  // namespace cuslice
