// SPDX-License-Identifier: Apache-2.0
#include "cli/gpus/gpu_query.h"

#include <unistd.h>

#include <chrono>

#include "cli/gpus/ask_child.h"
#include "cli/gpus/gpu_answer.h"
#include "cli/launch/program_environment.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

// A driver of many GPUs may start for a minute where nothing keeps them up. NVML answers in seconds, or hangs.
constexpr std::chrono::seconds kDriverPatience{120}, kNvmlPatience{15};

Gpus query(const Installation& installation, Environment environment, const std::vector<std::string>& question,
           std::chrono::seconds patience) {
    const Answer answer = ask_child(installation, std::move(environment), question, patience);
    return answer.failure.empty() ? parse_answer(answer.text) : Gpus{answer.failure, {}, 0, answer.hung};
}

// As the program will have it, but without the library.
Environment without_library(const Environment& environment, const Settings& settings) {
    Environment raw = environment;
    remove_preload(raw);
    if (const Entry* fake = find(settings, Key::fake))
        raw.set(traits_of(Key::fake).variable, fake->value);
    return raw;
}

// The library's rule: beside the driver where one was named, if it is there, else wherever the loader finds it.
std::string nvml_file(const Settings& settings, const Installation& installation) {
    std::string name = "libnvidia-ml.so.1";
    if (find(settings, Key::fake))
        return installation.fake_folder + "/" + name;
    const Entry* const driver = find(settings, Key::driver);
    if (driver == nullptr)
        return name;
    const std::string path(driver->value);
    const std::string beside = path.substr(0, path.rfind('/') + 1) + name;
    return ::access(beside.c_str(), R_OK) == 0 ? beside : name;
}

}  // namespace

Gpus query_nvml(const Environment& environment, const Settings& settings, const Installation& installation, size_t most,
                bool with_sensors) {
    std::vector<std::string> words = {kAskNvml, nvml_file(settings, installation), std::to_string(most)};
    if (with_sensors)
        words.emplace_back(kWithSensors);
    return query(installation, without_library(environment, settings), words, kNvmlPatience);
}

Gpus query_visible(const Environment& environment, const Settings& settings, const Installation& installation) {
    const Entry* const driver = find(settings, Key::driver);
    const bool fake = find(settings, Key::fake) != nullptr;
    const std::string file = fake                ? installation.fake_driver()
                             : driver == nullptr ? std::string("libcuda.so.1")
                                                 : std::string(driver->value);
    return query(installation, without_library(environment, settings), {kAskDriver, file}, kDriverPatience);
}

Gpus query_driver(const Environment& environment, const Settings& settings, const Installation& installation) {
    // The whole machine in the order by which settings name it.
    Environment whole = environment;
    whole.unset("CUDA_VISIBLE_DEVICES");
    whole.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    return query_visible(whole, settings, installation);
}

Gpus query_as_program(Environment environment, const Installation& installation) {
    return query(installation, std::move(environment), {kAskDriver, "libcuda.so.1", kAsPrograms}, kDriverPatience);
}

GpuIdentity identity_of(const Gpu& gpu, int index) {
    GpuIdentity identity;
    identity.index = index;
    gpu.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    gpu.pci.copy(identity.pci, sizeof identity.pci - 1);
    return identity;
}

}  // namespace cuslice::cli
