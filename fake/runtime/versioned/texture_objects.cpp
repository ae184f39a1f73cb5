// SPDX-License-Identifier: Apache-2.0
// Texture objects, whose description has a member more (seamlessCubemap) in 12 and 13, and in the _v2 forms of 11.

#include "fake/runtime/textures.h"
#include "fake/runtime/versioned/form.h"

#include <cstring>

using namespace cuslice::fake;

#if CUSLICE_CUDART_VERSION >= 12000

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    return create_texture(object, resource, texture, view);
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* out, cudaTextureObject_t object) {
    return describe_texture(out, object);
}

#else

extern "C" {
cudaError_t texture_create(cudaTextureObject_t*, const cudaResourceDesc*, const void*, const cudaResourceViewDesc*)
    CUSLICE_EXPORT_AS(cudaCreateTextureObject);
cudaError_t texture_create_v2(cudaTextureObject_t*, const cudaResourceDesc*, const cudaTextureDesc*,
                              const cudaResourceViewDesc*) CUSLICE_EXPORT_AS(cudaCreateTextureObject_v2);
cudaError_t texture_describe(void*, cudaTextureObject_t) CUSLICE_EXPORT_AS(cudaGetTextureObjectTextureDesc);
cudaError_t texture_describe_v2(cudaTextureDesc*, cudaTextureObject_t)
    CUSLICE_EXPORT_AS(cudaGetTextureObjectTextureDesc_v2);
}

namespace {

// NVIDIA's documentation of the runtime API 11.8.
constexpr size_t kBytesKnown = offsetof(cudaTextureDesc, seamlessCubemap);
static_assert(kBytesKnown == 68);

}  // namespace

cudaError_t texture_create(cudaTextureObject_t* object, const cudaResourceDesc* resource, const void* texture,
                           const cudaResourceViewDesc* view) {
    cudaTextureDesc whole{};
    if (texture != nullptr)
        std::memcpy(static_cast<void*>(&whole), texture, kBytesKnown);
    return create_texture(object, resource, texture != nullptr ? &whole : nullptr, view);
}

cudaError_t texture_create_v2(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                              const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    return create_texture(object, resource, texture, view);
}

cudaError_t texture_describe(void* out, cudaTextureObject_t object) {
    if (out == nullptr)
        return describe_texture(nullptr, object);
    cudaTextureDesc whole{};
    const cudaError_t result = describe_texture(&whole, object);
    if (result == cudaSuccess)
        std::memcpy(out, static_cast<const void*>(&whole), kBytesKnown);
    return result;
}

cudaError_t texture_describe_v2(cudaTextureDesc* out, cudaTextureObject_t object) {
    return describe_texture(out, object);
}

#endif
