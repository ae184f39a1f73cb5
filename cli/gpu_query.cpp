#include "cli/gpu_query.h"

#include "cli/ask_child.h"
#include "cli/gpu_answer.h"
#include "cli/program_environment.h"
#include "config/resolve.h"

namespace cuslice::cli {
namespace {

Gpus query(const Installation& installation, Environment environment, const std::string& driver,
           const std::string& nvml) {
    const Answer answer = ask_child(installation, std::move(environment), {"gpus", driver, nvml});
    return answer.failure.empty() ? parse_answer(answer.text) : Gpus{answer.failure, {}};
}

}  // namespace

Gpus query_visible(const Environment& environment, const Settings& settings, const Installation& installation) {
    Environment raw = environment;
    remove_preload(raw);
    if (const Entry* fake = find(settings, Key::fake)) {
        raw.set(traits_of(Key::fake).variable, fake->value);
        return query(installation, raw, installation.fake_driver(), installation.fake_folder + "/libnvidia-ml.so.1");
    }
    const Entry* driver = find(settings, Key::driver);
    return query(installation, raw, driver == nullptr ? "libcuda.so.1" : std::string(driver->value),
                 "libnvidia-ml.so.1");
}

Gpus query_driver(const Environment& environment, const Settings& settings, const Installation& installation) {
    // The whole machine in the order by which settings name it.
    Environment whole = environment;
    whole.unset("CUDA_VISIBLE_DEVICES");
    whole.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    return query_visible(whole, settings, installation);
}

Gpus query_as_program(Environment environment, const Installation& installation) {
    return query(installation, std::move(environment), "libcuda.so.1", "");
}

GpuIdentity identity_of(const Gpu& gpu, int index) {
    GpuIdentity identity;
    identity.index = index;
    gpu.uuid.copy(identity.uuid, sizeof identity.uuid - 1);
    gpu.pci.copy(identity.pci, sizeof identity.pci - 1);
    return identity;
}

}  // namespace cuslice::cli
