// SPDX-License-Identifier: Apache-2.0
// The program of `cuslice demo`: on each GPU that it sees it allocates until it is refused, and draws what it got. An
// ordinary program on the CUDA driver API, which knows nothing of cuslice.
#include <cuda.h>
#include <dlfcn.h>
#include <langinfo.h>
#include <locale.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;
// Blocks that a slice is filled with: enough of them for a picture, and few calls on the largest GPU.
constexpr size_t kBlocks = 64;
constexpr size_t kBarColumns = 44;

#define DEMO_FUNCTION(name, symbol) decltype(&::name) name = find<decltype(&::name)>(symbol)

// The functions of the driver that this program calls, as the loader finds them.
class Driver {
    void* library_ = dlopen("libcuda.so.1", RTLD_NOW);

    template <typename Function>
    Function find(const char* symbol) const {
        return library_ ? reinterpret_cast<Function>(dlsym(library_, symbol)) : nullptr;
    }

  public:
    bool loaded() const { return library_ != nullptr; }
    DEMO_FUNCTION(cuInit, "cuInit");
    DEMO_FUNCTION(cuGetErrorName, "cuGetErrorName");
    DEMO_FUNCTION(cuDeviceGetCount, "cuDeviceGetCount");
    DEMO_FUNCTION(cuDeviceGet, "cuDeviceGet");
    DEMO_FUNCTION(cuDeviceGetName, "cuDeviceGetName");
    DEMO_FUNCTION(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
    DEMO_FUNCTION(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
    DEMO_FUNCTION(cuCtxSetCurrent, "cuCtxSetCurrent");
    DEMO_FUNCTION(cuMemGetInfo, "cuMemGetInfo_v2");
    DEMO_FUNCTION(cuMemAlloc, "cuMemAlloc_v2");
    DEMO_FUNCTION(cuMemFree, "cuMemFree_v2");

    std::string error(CUresult result) const {
        const char* name = nullptr;
        return cuGetErrorName(result, &name) == CUDA_SUCCESS && name ? name : std::to_string(result);
    }
};

// The result of filling one GPU; sizes are in bytes.
struct Filled {
    int ordinal = 0;
    char name[128] = {};
    size_t total = 0, free_before = 0, allocated = 0, block = 0, blocks = 0;
    CUresult refusal = CUDA_SUCCESS;
    // The call that failed and was not to fail; empty where the GPU was filled.
    std::string failed;
};

Filled fill(const Driver& driver, int ordinal) {
    Filled filled;
    filled.ordinal = ordinal;
    CUdevice device = 0;
    CUcontext context = nullptr;
    const auto fails = [&](const char* call, CUresult result) {
        if (result != CUDA_SUCCESS)
            filled.failed = std::string(call) + ": " + driver.error(result);
        return result != CUDA_SUCCESS;
    };
    if (fails("cuDeviceGet", driver.cuDeviceGet(&device, ordinal)) ||
        fails("cuDeviceGetName", driver.cuDeviceGetName(filled.name, sizeof filled.name, device)) ||
        fails("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(&context, device)))
        return filled;
    if (!fails("cuCtxSetCurrent", driver.cuCtxSetCurrent(context)) &&
        !fails("cuMemGetInfo", driver.cuMemGetInfo(&filled.free_before, &filled.total))) {
        filled.block = std::max<size_t>(2, filled.total / kBlocks / kMiB) * kMiB;
        std::vector<CUdeviceptr> blocks;
        CUdeviceptr block = 0;
        while ((filled.refusal = driver.cuMemAlloc(&block, filled.block)) == CUDA_SUCCESS)
            blocks.push_back(block);
        filled.blocks = blocks.size();
        filled.allocated = blocks.size() * filled.block;
        if (filled.refusal != CUDA_ERROR_OUT_OF_MEMORY)
            fails("cuMemAlloc", filled.refusal);
        for (const CUdeviceptr each : blocks)
            driver.cuMemFree(each);
    }
    driver.cuCtxSetCurrent(nullptr);
    driver.cuDevicePrimaryCtxRelease(device);
    return filled;
}

// A bar for `bytes` of `most`, with blanks to its full width. Eighths of a column where the terminal has such
// characters.
std::string bar(size_t bytes, size_t most, bool blocks) {
    static const char* const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    const size_t all = most == 0 ? 0 : (bytes * kBarColumns * 8 + most / 2) / most;
    size_t columns = all / 8;
    std::string drawn;
    for (size_t i = 0; i < columns; ++i)
        drawn += blocks ? "█" : "#";
    if (blocks && all % 8 != 0) {
        drawn += eighths[all % 8];
        columns++;
    }
    return drawn + std::string(kBarColumns - columns, ' ');
}

void draw_row(const char* label, size_t bytes, size_t most) {
    const bool blocks = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    std::printf("  %-12s %s %10.1f MiB\n", label, bar(bytes, most, blocks).c_str(),
                static_cast<double>(bytes) / static_cast<double>(kMiB));
}

void draw(const Driver& driver, const Filled& filled, size_t whole, size_t most) {
    std::printf("GPU %d: %s\n", filled.ordinal, filled.name);
    if (whole != 0)
        draw_row("whole GPU", whole, most);
    if (filled.total != 0) {
        draw_row("visible", filled.total, most);
        draw_row("driver", filled.total - filled.free_before, most);
        draw_row("allocated", filled.allocated, most);
    }
    if (filled.failed.empty()) {
        std::printf("  %zu blocks of %zu MiB; the next one: %s\n", filled.blocks, filled.block / kMiB,
                    driver.error(filled.refusal).c_str());
    } else {
        std::printf("  %s\n", filled.failed.c_str());
    }
}

// A name of a GPU has no character that JSON wants escaped but these two.
std::string quoted(const char* text) {
    std::string all = "\"";
    for (; *text; ++text) {
        if (*text == '"' || *text == '\\')
            all += '\\';
        all += *text;
    }
    return all + "\"";
}

void print_json(const Driver& driver, const std::vector<Filled>& gpus) {
    std::printf("{\"version\": 1, \"gpus\": [");
    for (size_t i = 0; i < gpus.size(); ++i) {
        const Filled& gpu = gpus[i];
        std::printf("%s\n  {\"ordinal\": %d, \"name\": %s, \"total\": %zu, \"free_before\": %zu, \"allocated\": %zu, ",
                    i ? "," : "", gpu.ordinal, quoted(gpu.name).c_str(), gpu.total, gpu.free_before, gpu.allocated);
        std::printf("\"blocks\": %zu, \"block\": %zu, \"refusal\": %s, \"error\": %s}", gpu.blocks, gpu.block,
                    gpu.refusal == CUDA_SUCCESS ? "null" : quoted(driver.error(gpu.refusal).c_str()).c_str(),
                    gpu.failed.empty() ? "null" : quoted(gpu.failed.c_str()).c_str());
    }
    std::printf("\n]}\n");
}

int fail(const std::string& why) {
    std::fprintf(stderr, "cuslice demo: %s\n", why.c_str());
    return 1;
}

// The launcher knows how large the GPUs are; the program sees its slices: --whole=BYTES[,BYTES…], by ordinal.
std::vector<size_t> read_sizes(const char* text) {
    std::vector<size_t> sizes;
    while (*text) {
        char* end = nullptr;
        sizes.push_back(std::strtoull(text, &end, 10));
        if (end == text)
            break;
        text = *end == ',' ? end + 1 : end;
    }
    return sizes;
}

}  // namespace

int main(int count, char** words) {
    setlocale(LC_CTYPE, "");
    constexpr char kWhole[] = "--whole=";
    bool json = false;
    std::vector<size_t> whole;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(words[i], "--json") == 0)
            json = true;
        if (std::strncmp(words[i], kWhole, sizeof kWhole - 1) == 0)
            whole = read_sizes(words[i] + sizeof kWhole - 1);
    }
    const Driver driver;
    if (!driver.loaded())
        return fail("there is no NVIDIA driver here; try: cuslice demo --fake t4");
    if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS)
        return fail("cuInit: " + driver.error(result));
    int devices = 0;
    if (const CUresult result = driver.cuDeviceGetCount(&devices); result != CUDA_SUCCESS)
        return fail("cuDeviceGetCount: " + driver.error(result));
    whole.resize(static_cast<size_t>(devices));
    std::vector<Filled> gpus;
    size_t most = 0;
    for (int ordinal = 0; ordinal < devices; ++ordinal) {
        gpus.push_back(fill(driver, ordinal));
        most = std::max({most, gpus.back().total, whole[static_cast<size_t>(ordinal)]});
    }
    if (json)
        print_json(driver, gpus);
    bool filled = !gpus.empty();
    for (size_t i = 0; i < gpus.size(); ++i) {
        if (!json)
            draw(driver, gpus[i], whole[i], most);
        filled = filled && gpus[i].failed.empty();
    }
    return filled ? 0 : 1;
}
