// SPDX-License-Identifier: Apache-2.0
// Checks that there is a driver, and NVML with it.
#include <unistd.h>

#include <algorithm>

#include "cli/doctor/checks.h"
#include "cli/gpus/gpu_query.h"
#include "config/resolve.h"
#include "config/visible.h"
#include "virtual_gpu/driver/load.h"

namespace cuslice::cli::doctor {
namespace {

constexpr std::string_view kNoDriver = "no NVIDIA driver here: ";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The first of its folders that has a driver: what the loader takes.
std::string driver_of_library_path(const Environment& environment) {
    const std::string list = environment.get("LD_LIBRARY_PATH").value_or("");
    for (size_t at = 0; at < list.size();) {
        const size_t end = std::min(list.find_first_of(":;", at), list.size());
        std::string path = list.substr(at, end - at) + "/libcuda.so.1";
        if (::access(path.c_str(), R_OK) == 0)
            return path;
        at = end + 1;
    }
    return {};
}

// " The kernel's driver is 580.95.05", from the line of /proc/driver/nvidia/version that has it.
std::string kernel_driver(const Setup& setup) {
    const std::string version = kernel_driver_version(setup);
    return version.empty() ? "" : "; the kernel's driver is " + version;
}

void name_driver_failure(const Environment& asking, const Gpus& driver, Findings& findings) {
    std::string failure = driver.failure;
    if (const size_t at = failure.find(kNoDriverAdvice); at != failure.npos && at >= 2)
        failure.resize(at - 2);
    const std::string stub = driver_of_library_path(asking);
    if (contains(stub, "/stubs/") || contains(failure, "(34)"))
        return findings.problem(
            "driver-stub", (stub.empty() ? "libcuda.so.1" : stub) + " is the toolkit's stub, to link with: " + failure,
            "Take the stubs' folder out of LD_LIBRARY_PATH");
    if (failure.starts_with(kNoDriver))
        return findings.problem("driver-missing", failure,
                                "Install NVIDIA's driver; in a container, start it with the GPUs (docker run --gpus "
                                "all); to go on without a GPU, add --fake 1xh200");
    std::string advice = "Look whether nvidia-smi lists the GPUs, and at the kernel's messages (dmesg)";
    if (contains(failure, "(100)"))
        advice = "The driver sees no GPU: look at /dev/nvidia*, and in a container at how it was given GPUs";
    if (contains(failure, "(803)"))
        advice = "Restart the machine, or load the kernel's module of the driver's version";
    if (contains(failure, "lacks functions"))
        advice = "Install a driver of version 450 or newer";
    findings.problem("driver-start", failure, advice);
}

void name_nvml_failure(const Setup& setup, const Gpus& nvml, Findings& findings) {
    if (contains(nvml.failure, "mismatch"))
        return findings.problem("nvml-version", nvml.failure + kernel_driver(setup),
                                "Restart the machine, or load the kernel's module of the library's version: the driver "
                                "was updated while it ran");
    if (nvml.failure.starts_with("NVML says"))
        return findings.warning("nvml-start", nvml.failure, "Look what nvidia-smi says");
    findings.warning("nvml-missing",
                     "there is no NVML (" + nvml.failure +
                         "), so nobody knows what is free, and what the driver takes is measured less exactly",
                     "Install libnvidia-ml.so.1 of the driver's version; in a container, set "
                     "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
}

}  // namespace

void check_driver(Setup& setup, Findings& findings) {
    if (!setup.configured || setup.installation.executable.empty())
        return;
    const Environment asking = setup.asking_driver();
    const Gpus nvml = query_nvml(asking, setup.settings, setup.installation, GpuPlaces::kMax);
    if (nvml.hung)  // the driver waits for the same kernel
        return findings.problem("nvml-hangs", nvml.failure + ", and neither will a program's calls",
                                "Look whether nvidia-smi hangs too; a GPU that fell off the bus shows in dmesg");
    const Gpus driver = query_driver(asking, setup.settings, setup.installation);
    const bool none = driver.failure.starts_with(kNoDriver);
    const bool mismatch = contains(nvml.failure, "mismatch");
    if (!nvml.failure.empty() && !none)
        name_nvml_failure(setup, nvml, findings);
    setup.driver_answers = driver.failure.empty();
    if (!driver.failure.empty() && !(mismatch && contains(driver.failure, "(803)")))
        return name_driver_failure(asking, driver, findings);
    if (!setup.driver_answers)
        return;
    const bool fake = find(setup.settings, Key::fake) != nullptr;
    std::string seen = fake ? "the fake driver has " : "the driver has ";
    seen += std::to_string(driver.list.size()) + (driver.list.size() == 1 ? " GPU" : " GPUs");
    if (!driver.list.empty())
        seen += ", the first of them " + driver.list.front().name;
    findings.ok("driver", seen);
}

}  // namespace cuslice::cli::doctor
