// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texture and surface objects: what they read is checked and kept. Kernels, which would read it, aren't run.

#include "fake/driver/context.h"

namespace cuslice::fake {

struct Texture {
    CUcontext context = nullptr;
    CUDA_RESOURCE_DESC resource{};
    CUDA_TEXTURE_DESC texture{};
    bool has_view = false;
    CUDA_RESOURCE_VIEW_DESC view{};
};
inline constinit HandleTable<Texture, CUtexObject, HandleKind::Texture> textures;

struct Surface {
    CUcontext context = nullptr;
    CUDA_RESOURCE_DESC resource{};
};
inline constinit HandleTable<Surface, CUsurfObject, HandleKind::Surface> surfaces;

/// CUDA_SUCCESS if the memory that an object is to read exists.
CUresult check_resource(const Context& context, const CUDA_RESOURCE_DESC& resource);
}  // namespace cuslice::fake
