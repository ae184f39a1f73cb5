// SPDX-License-Identifier: Apache-2.0
// Selects the GPUs that a setting is for: every one, or one named by index, UUID or PCI id.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config/text.h"

namespace cuslice {

/// Names of a GPU. `index` counts in PCI order, as nvidia-smi and `cuslice devices` print it (-1: not known); `uuid`
/// is "GPU-…" or "MIG-…" in full; `pci` is "0000:81:00.0" or, as NVML gives it, "00000000:81:00.0". Both are ended by
/// a NUL and may be empty if not known.
struct GpuIdentity {
    int index = -1;
    char uuid[48] = {};
    char pci[20] = {};
};

/// A UUID as nvidia-smi writes it, from the bytes and the name that CUDA tells: "GPU-…", or "MIG-…" of an instance.
/// CUDA doesn't say which it is; NVIDIA names an instance after its GPU, "NVIDIA A100-SXM4-40GB MIG 1g.5gb".
void write_uuid(const void* bytes, std::string_view name, char (&text)[sizeof(GpuIdentity::uuid)]);

/// The same of 16 bytes, behind "GPU-" or "MIG-".
void spell_uuid(std::string_view kind, const void* bytes, char (&text)[sizeof(GpuIdentity::uuid)]);

/// True of a MIG instance's UUID.
bool is_mig_uuid(std::string_view uuid);

/// Names one GPU, or all. `text` is what was written and is not owned.
struct GpuSelector {
    enum class Kind : uint8_t { every, index, uuid, pci };

    Kind kind = Kind::every;
    int index = -1;
    std::string_view text = "*";

    /// True of `*`.
    bool is_general() const { return kind == Kind::every; }
    /// A GPU whose index (or UUID, or PCI id) is not known is matched by no selector of that kind.
    bool matches(const GpuIdentity& gpu) const;
    /// True if both are written for the same GPU as far as the text tells: 0000:81:00.0 is 00000000:81:00.0.
    bool same_as(const GpuSelector& other) const;
    /// True if it selects all that `other` does, as far as the text tells.
    bool covers(const GpuSelector& other) const { return is_general() || same_as(other); }
};

/// Reads `*`, an index (0 … 9999), a UUID prefix (GPU-5f, MIG-0c) or a PCI id (0000:81:00.0, 00000000:81:00.0,
/// 81:00.0), the last two in any case. Returns false and says why for anything else. Pure; `selector.text` points into
/// `text`.
bool parse_gpu_selector(std::string_view text, GpuSelector& selector, Reason& why);

/// Says in `why` that the selector fits `matches` of these GPUs, which is not one, and which they are, by all that
/// tells them apart, so that the reader can pick the right name.
void explain_matches(const GpuSelector& selector, std::span<const GpuIdentity> gpus, int matches, Reason& why);
/// Appends `separator` and "0 GPU-…".
void append_gpu(const GpuIdentity& gpu, std::string_view separator, Reason& why);

}  // namespace cuslice
