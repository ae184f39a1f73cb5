// SPDX-License-Identifier: Apache-2.0
// Images of modules, as a program hands them over: anything that looks like a cubin, a fat binary or PTX. The fake's
// reader and the library's, which know nothing of each other, must not read outside; and what the library charges
// before the driver is asked must not be more than the variables of any image that the driver would take.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "fake/driver/image.h"
#include "virtual_gpu/gpu/image_size.h"

using namespace cuslice;

namespace {

void expect(bool holds) {
    if (!holds)
        std::abort();
}

// The image as a file, as cuModuleLoad has it.
class File {
  public:
    File(const uint8_t* data, size_t size) : file_(memfd_create("image", MFD_CLOEXEC)) {
        expect(file_ >= 0 && write(file_, data, size) == static_cast<ssize_t>(size));
    }
    ~File() { close(file_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

  private:
    int file_;
};

uint64_t bytes_of(const fake::Image& image) {
    uint64_t bytes = 0;
    for (const fake::VariableInfo& variable : image.variables)
        if (!variable.managed)
            bytes = std::max(bytes, bytes + variable.size);
    return bytes;
}

// Where parts can't be read, the driver may take one that has more; and of a text with a fault there is no telling.
bool all_known(const fake::Image& image) {
    const auto is_text = [](const auto& part) { return part->is_ptx; };
    const bool texts = image.is_ptx || std::any_of(image.parts.begin(), image.parts.end(), is_text);
    return image.opaque.empty() && !texts && image.targets.size() <= image.parts.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const uint64_t least = least_size_of_image_file(File(data, size).path().c_str());
    fake::Image image;
    if (fake::read_image(data, 0, image, size) != CUDA_SUCCESS || !all_known(image))
        return 0;
    uint64_t most = bytes_of(image);
    for (const auto& part : image.parts)
        most = std::min(most, bytes_of(*part));
    expect(least <= most);
    return 0;
}
