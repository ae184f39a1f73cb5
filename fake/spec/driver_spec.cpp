// SPDX-License-Identifier: Apache-2.0
#include "fake/spec/driver_spec.h"

#include <cstdio>
#include <cstdlib>

#include "fake/duration.h"

namespace cuslice::fake {
namespace {

// The first branch of each CUDA version that the fake driver can stand for.
struct Release {
    unsigned branch;
    int cuda_version;
};
constexpr Release kReleases[] = {{450, 11000}, {455, 11010}, {460, 11020}, {465, 11030}, {470, 11040}, {495, 11050},
                                 {510, 11060}, {515, 11070}, {520, 11080}, {525, 12000}, {530, 12010}, {535, 12020},
                                 {545, 12030}, {550, 12040}, {555, 12050}, {560, 12060}, {565, 12070}, {570, 12080},
                                 {575, 12090}, {580, 13000}, {590, 13010}};

bool is_version(const std::string& text) {
    unsigned major = 0, minor = 0, patch = 0;
    int two = 0, three = 0;
    const int size = static_cast<int>(text.size());
    const int read = std::sscanf(text.c_str(), "%4u.%4u%n.%4u%n", &major, &minor, &two, &patch, &three);
    return (read == 2 ? two == size : read == 3 && three == size) && major >= kReleases[0].branch;
}

// 13040 of "13.4"; 0 if it is no CUDA version.
int cuda_version_of(const std::string& text) {
    unsigned major = 0, minor = 0;
    int read = 0;
    const bool whole = std::sscanf(text.c_str(), "%2u.%1u%n", &major, &minor, &read) == 2;
    return whole && read == static_cast<int>(text.size()) ? static_cast<int>(major * 1000 + minor * 10) : 0;
}

}  // namespace

unsigned DriverSpec::branch() const { return static_cast<unsigned>(std::strtoul(version.c_str(), nullptr, 10)); }

int DriverSpec::cuda_version() const { return cuda.empty() ? release_cuda_version() : cuda_version_of(cuda); }

int DriverSpec::release_cuda_version() const {
    int found = kReleases[0].cuda_version;
    for (const Release& release : kReleases) {
        if (release.branch <= branch())
            found = release.cuda_version;
    }
    return found;
}

const std::vector<DriverKey>& driver_keys() {
    using S = DriverSpec;
    using enum DriverKeyKind;
    static const auto* all = new std::vector<DriverKey>{
        {"version", Version, &S::version, "such as \"535.183.06\", 450 or newer"},
        {"cuda", CudaVersion, &S::cuda, "libcuda's CUDA version, such as \"13.4\", if it is newer than the release's"},
        {"init-time", Duration, &S::init_time, "what the first cuInit of a process takes, such as \"1s\""},
        {"nvml-time", Duration, &S::nvml_time, "what each call of NVML takes, such as \"5ms\""},
        {"process-list", Word, &S::process_list, "listed, empty or unsupported"},
        {"process-id-offset", Number, &S::process_id_offset, "added to each pid in NVML's lists, before driver 545"},
        {"process-memory", Flag, &S::process_memory, "whether NVML tells the memory of each process"},
    };
    return *all;
}

bool set_driver_key(const DriverKey& key, const std::string& text, DriverSpec& driver, std::string& why) {
    switch (key.kind) {
        case DriverKeyKind::Version:
            why = "must look like \"535.183.06\", and be 450 or newer";
            if (!is_version(text))
                return false;
            break;
        case DriverKeyKind::CudaVersion:
            why = "must look like \"13.4\", and be 11.0 or newer";
            if (cuda_version_of(text) < kReleases[0].cuda_version)
                return false;
            break;
        case DriverKeyKind::Duration:
            why = "must be a duration with its unit, such as \"1s\" or \"5ms\"";
            return parse_duration(text, driver.*std::get<uint64_t DriverSpec::*>(key.member));
        case DriverKeyKind::Word:
            why = "is one of listed, empty, unsupported";
            if (text != "listed" && text != "empty" && text != "unsupported")
                return false;
            break;
        case DriverKeyKind::Number:
        case DriverKeyKind::Flag:
            return false;
    }
    driver.*std::get<std::string DriverSpec::*>(key.member) = text;
    return true;
}

}  // namespace cuslice::fake
