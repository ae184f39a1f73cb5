// SPDX-License-Identifier: Apache-2.0
#include "fake/driver/texture.h"

namespace cuslice::fake {

void end_textures(const Context& context) {
    textures.each([&](CUtexObject handle, const Texture& texture) {
        if (texture.context == context.handle)
            textures.destroy(handle);
    });
    surfaces.each([&](CUsurfObject handle, const Surface& surface) {
        if (surface.context == context.handle)
            surfaces.destroy(handle);
    });
}

}  // namespace cuslice::fake
