// SPDX-License-Identifier: Apache-2.0
// The linker that programs call at run time. It compiles nothing: PTX texts are put behind each other, which is an
// image that cuModuleLoadData takes. A cubin can be passed through alone.

#include <string>

#include "fake/driver/api_prologue.h"
#include "fake/driver/handles.h"
#include "fake/driver/image.h"
#include "fake/driver/image_file.h"
#include "fake/driver/jit_log.h"
#include "fake/driver/ptx_text.h"

using namespace cuslice::fake;

namespace {

struct Link {
    std::string text;   // of all PTX added so far
    std::string cubin;  // the one cubin, if that is all there is
    bool complete = false;
    JitLog log;  // documented: the buffers last as long as the link
};

constinit HandleTable<Link, CUlinkState, HandleKind::Link> links;

CUresult create(unsigned count, CUjit_option* options, void** values, CUlinkState* out) {
    Link link;
    if (out == nullptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUSLICE_TRY(link.log.read(count, options, values));
    link.log.write("");
    *out = links.create(std::move(link)).first;
    return CUDA_SUCCESS;
}

CUresult add(CUlinkState handle, CUjitInputType type, const char* data, size_t size) {
    CUSLICE_FIND_IN(link, links, handle);
    if (data == nullptr || size == 0 || link->complete)
        return CUDA_ERROR_INVALID_VALUE;
    if (type == CU_JIT_INPUT_PTX) {
        Image image;
        size_t length = size;
        while (length > 0 && data[length - 1] == '\0')
            length--;
        const CUresult read = compile_ptx(data, length, image);
        link->log.write(image.fault);
        if (read != CUDA_SUCCESS)
            return read;
        if (!link->cubin.empty())
            CUSLICE_UNSUPPORTED("linking a cubin with anything else");
        const std::string_view text(data, length);
        link->text.append(link->text.empty() ? text : ptx_without_header(text)).append("\n");
        return CUDA_SUCCESS;
    }
    if (type != CU_JIT_INPUT_CUBIN)
        CUSLICE_UNSUPPORTED("linking objects, libraries and fat binaries");
    if (!link->text.empty() || !link->cubin.empty())
        CUSLICE_UNSUPPORTED("linking a cubin with anything else");
    Image image;
    if (!read_cubin(reinterpret_cast<const unsigned char*>(data), size, image))
        return CUDA_ERROR_INVALID_IMAGE;
    link->cubin.assign(data, size);
    return CUDA_SUCCESS;
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
    if (image == nullptr || (link->text.empty() && link->cubin.empty()))
        return CUDA_ERROR_INVALID_VALUE;
    link->complete = true;
    std::string& out = link->cubin.empty() ? link->text : link->cubin;
    *image = out.data();  // documented: it belongs to the link and ends with it
    if (size != nullptr)
        *size = out.size() + (link->cubin.empty() ? 1 : 0);
    return CUDA_SUCCESS;
}

CUSLICE_ENTRY(cuLinkDestroy, link) { return links.destroy(link) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }
