// SPDX-License-Identifier: Apache-2.0
// The linker that programs call at run time.

#include <string>
#include <utility>
#include <vector>

#include "fake/driver/api_prologue.h"
#include "fake/driver/context.h"
#include "fake/driver/handles.h"
#include "fake/driver/image_file.h"
#include "fake/driver/jit_log.h"
#include "fake/driver/link.h"

using namespace cuslice::fake;

namespace {

struct Link {
    Linked inputs;
    std::string image;  // once it is complete
    JitLog log = {};    // documented: the buffers last as long as the link
};

constinit HandleTable<Link, CUlinkState, HandleKind::Link> links;

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_FIND_CURRENT(context);
    Link link{Linked(context->gpu->spec.capability())};
    CUSLICE_TRY(link.log.read(count, options, values));
    link.log.write("");
    *out = links.create(std::move(link)).first;
    return CUDA_SUCCESS;
}

CUresult add(CUlinkState handle, CUjitInputType type, const char* data, size_t size) {
    CUSLICE_FIND_IN(link, links, handle);
    if (data == nullptr || size == 0 || !link->image.empty())
        return CUDA_ERROR_INVALID_VALUE;
    std::string fault;
    const CUresult result = link->inputs.add(type, data, size, fault);
    link->log.write(fault);
    return result;
}

CUresult add_file(CUlinkState handle, CUjitInputType type, const char* path) {
    std::vector<unsigned char> contents;
    if (path == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(read_image_file(path, contents));
    return add(handle, type, reinterpret_cast<const char*>(contents.data()), contents.size());
}

}  // namespace

CUSLICE_ENTRY_PAIR(cuLinkCreate, create, count, options, values, out)

CUSLICE_ENTRY(cuLinkAddData, link, type, data, size, name, count, options, values) {
    return add(link, type, static_cast<const char*>(data), size);
}

CUSLICE_ENTRY(cuLinkAddData_v2, link, type, data, size, name, count, options, values) {
    return add(link, type, static_cast<const char*>(data), size);
}

CUSLICE_ENTRY(cuLinkAddFile, link, type, path, count, options, values) { return add_file(link, type, path); }

CUSLICE_ENTRY(cuLinkAddFile_v2, link, type, path, count, options, values) { return add_file(link, type, path); }

CUSLICE_ENTRY(cuLinkComplete, handle, image, size) {
    CUSLICE_FIND_IN(link, links, handle);
    if (image == nullptr || link->inputs.empty())
        return CUDA_ERROR_INVALID_VALUE;
    if (link->image.empty())
        link->image = link->inputs.complete();
    *image = link->image.data();  // documented: it belongs to the link and ends with it
    if (size != nullptr)
        *size = link->image.size();
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuLinkDestroy, link) { return links.destroy(link) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
