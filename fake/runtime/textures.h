// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace cuslice::fake {

/// A texture object, and the sampling of one, with the description that 12 and 13 have.
cudaError_t create_texture(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                           const cudaTextureDesc* texture, const cudaResourceViewDesc* view);
cudaError_t describe_texture(cudaTextureDesc* out, cudaTextureObject_t object);

}  // namespace cuslice::fake
